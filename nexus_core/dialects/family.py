"""What OpenAI's two APIs have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core.dialects.notes import fields_of

if TYPE_CHECKING:
    from nexus_core.values.conversation import Conversation

FAMILY = ("openai", "responses", "")
"""Who means the same by a file's id, a refusal or a custom tool: both of them, and messages made here."""

_SHARED = frozenset(
    {
        "metadata",
        "model",
        "parallel_tool_calls",
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "safety_identifier",
        "service_tier",
        "store",
        "stream",
        "temperature",
        "top_logprobs",
        "top_p",
        "user",
        "extra_body",
        "extra_headers",
        "extra_query",
        "timeout",
    }
)
"""Arguments that both call by one name and mean the same by."""


def carried(conversation: Conversation, api: str) -> dict[str, Any]:
    """The other arguments of a request: all of them to the API they are of, to its sister what both understand."""
    arguments = fields_of(conversation.extra)
    if conversation.api in (api, ""):
        return arguments
    if conversation.api in FAMILY:
        return {name: value for name, value in arguments.items() if name in _SHARED}
    return {}
