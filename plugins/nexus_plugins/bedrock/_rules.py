"""What Converse refuses, as data.

Beside each rule is its evidence, unless it stands in the service's own description of the API, which botocore has: the
words of an error, and a thread of somebody who met it. Where models differ, the rule is that of the stricter ones.
"""

from __future__ import annotations

from nexus_core.plugin import ApiRules
from nexus_plugins.bedrock._fields import API

_MEGABYTE = 1024 * 1024

RULES = ApiRules(
    name=API,
    # Instructions are `system`. Since 2026 the role `system` exists among messages too, to add and remove tools.
    system="field",
    later_system=True,
    # "A conversation must start with a user message" (langgenius/dify#12340).
    first=frozenset({"user"}),
    # "This model does not support assistant message prefill. The conversation must end with a user message"
    # (NousResearch/hermes-agent#101401).
    last=frozenset({"user", "tool"}),
    # "Expected toolResult blocks at messages.2.content for the following Ids" (agno-agi/agno#6698). That roles must
    # alternate is seen to when messages are written.
    results="together",
    # "The toolResult blocks at messages.X.content contain duplicate Ids" (BerriAI/litellm#20047).
    unique_ids=True,
    # The service takes dots and colons as well, Anthropic's models behind it do not.
    id_pattern=r"[a-zA-Z0-9_-]+",
    id_length=64,
    name_pattern=r"[a-zA-Z0-9_-]+",
    name_length=64,
    object_arguments=True,
    # "The text field in the ContentBlock object at messages.11.content.0 is blank" (continuedev/continue#9767).
    blank_text=False,
    silent_errors=False,
    final_blanks=False,
    # Anthropic's models refuse thoughts that they did not sign; others do without them.
    signed_reasoning=True,
    reasoning_keeps_next=True,
    # Pictures and documents are the user's, or stand in results.
    media=frozenset({"user", "tool"}),
    # 3.75 MB for a picture and 4.5 MB for a document, which are these in base64.
    image_size=5 * _MEGABYTE,
    file_size=6 * _MEGABYTE,
    # What Anthropic says of its models behind Bedrock.
    request_bytes=20_000_000,
    # A block of its own, which ends what is kept; at most four of them.
    cache_mark="cachePoint",
    cache_marks=4,
    serves=frozenset({"anthropic"}),
)
