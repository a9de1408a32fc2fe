"""Rules of each API as data, the only source of `check` and `repair`.

Each rule has its evidence: the API's error message, and an issue (owner/repository#number) that reports it. Where the
models of one API differ, the rule follows the strictest, unless that would forbid a feature.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from nexus_core.types.api import ApiRules

if TYPE_CHECKING:
    from collections.abc import Mapping

SILENT_ERROR_TEXT = "[the tool failed and said nothing]"
"""Content of a failed tool result without output, for APIs that reject an empty one."""
_MEGABYTE = 1024 * 1024
_MILLION = 1000 * 1000
"""For request sizes. No API documents whether its megabytes are binary or decimal; decimal ones are smaller."""

OPENAI_RULES = ApiRules(
    name="openai",
    # "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'":
    # nothing may come between (BerriAI/litellm#28995, langgenius/dify#32222).
    results="each",
    # OpenAI pairs a result with the calls right before it. The compatible APIs of DeepSeek and Moonshot reject an id
    # that is used again in a later turn: "Duplicate value for 'tool_call_id'" (craft-ai-agents/craft-agents-oss#630),
    # "tool call id … is duplicated" (openclaw/openclaw#65924).
    unique_ids=True,
    # "Invalid 'messages[68].tool_calls[0].id': string too long. Expected a string with maximum length 40": still so at
    # Azure and Copilot (anomalyco/opencode#12653, Portkey-AI/gateway#1062), 64 at OpenAI (openclaw/openclaw#875).
    id_length=40,
    # "Invalid 'messages[9].tool_calls[0].function.name': string does not match pattern. Expected a string that matches
    # the pattern '^[a-zA-Z0-9_-]+$'" (mcp-use/mcp-use#94).
    name_pattern=r"[a-zA-Z0-9_-]+",
    name_length=64,
    # "Invalid 'messages[5].name': string does not match pattern. Expected a string that matches the pattern
    # '^[a-zA-Z0-9_-]+$'" (FlowiseAI/Flowise#2948), at most 64 of them (pollinations/pollinations#10653): as for tools.
    speaker_names=True,
    # "Invalid schema for function '…': schema must be a JSON Schema of 'type: "object"', got 'type: "None"'"
    # (ComposioHQ/composio#1829).
    schemas="object",
    # "Invalid 'messages[1].tool_calls': empty array" (openai/openai-python#2061, openai/openai-node#1341), and the same
    # of 'content' (langchain-ai/langchainjs#11419).
    filled_lists=frozenset({"tool_calls", "content"}),
    # OpenAI accepts any text; most compatible servers do not: "arguments must be a valid JSON object string"
    # (justrach/codegraff#752), vLLM and llama.cpp fail while parsing it (OpenHands/software-agent-sdk#2887).
    object_arguments=True,
    # "Invalid value for 'content': expected a string, got null" for a reply with nothing but reasoning
    # (docker/docker-agent#63).
    reasoning_keeps_next=True,
    # "Image URLs are only allowed for messages with role 'user', but this message with role 'tool' contains an image
    # URL" (OpenHands/OpenHands#7700, openai/openai-node#1030).
    media=frozenset({"user"}),
    # The guide: up to 50 MB for a request with images or files. Compatible servers may accept far less.
    image_size=50 * _MEGABYTE,
    file_size=50 * _MEGABYTE,
    request_bytes=50 * _MILLION,
    # If there are more breakpoints than it caches, the last ones count; none is rejected.
    cache_mark="prompt_cache_breakpoint",
)

RESPONSES_RULES = ApiRules(
    name="responses",
    # "No tool output found for function call call_…" (openai/openai-support-agent-demo#12); the output's position does
    # not matter (deepseek-ai/awesome-deepseek-integration#740 compares).
    results="anywhere",
    # One output per call_id, matched only by the id; two calls with one id cannot both have an output.
    unique_ids=True,
    # "Invalid 'input[2].call_id': string too long. Expected a string with maximum length 64".
    id_length=64,
    name_pattern=r"[a-zA-Z0-9_-]+",
    name_length=64,
    # As for Chat Completions (ComposioHQ/composio#1829 is about both).
    schemas="object",
    # "Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'" of an assistant's content
    # (jeremychone/rust-genai#119); "Invalid value: 'output_text'. Supported values are: 'input_text', …" of an output
    # (linanwx/nagobot#27); for other roles, `ResponseInputMessageContentListParam` in the SDK has only input types.
    text_types=True,
    # As for Chat Completions: vLLM rejects truncated arguments here, too (local-inference-lab/vllm#684).
    object_arguments=True,
    # "Item 'rs_…' of type 'reasoning' was provided without its required following item" (openai/openai-node#1567).
    reasoning_keeps_next=True,
    # An assistant's content is output_text or refusal; function_call_output allows input_image and input_file.
    media=frozenset({"system", "user", "tool"}),
    image_size=50 * _MEGABYTE,
    file_size=50 * _MEGABYTE,
    request_bytes=50 * _MILLION,
    # If there are more breakpoints than it caches, the last ones count; none is rejected.
    cache_mark="prompt_cache_breakpoint",
    serves=frozenset({"openai"}),
)

ANTHROPIC_RULES = ApiRules(
    name="anthropic",
    # "messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter"
    # (kennethreitz/simplemind#37). Since Claude Opus 4.8 a system message may follow a user's, if an assistant's or
    # nothing comes next (maximhq/bifrost#3945).
    system="field",
    later_system=True,
    # "messages: first message must use the "user" role" (langchain4j/langchain4j#940); Anthropic's own endpoint became
    # lenient, Bedrock did not (anthropics/anthropic-sdk-typescript#622).
    first=frozenset({"user"}),
    # "`tool_use` ids were found without `tool_result` blocks immediately after" (anthropics/claude-code#12526), and
    # results must come first in that message. Neighbours of one role are read as one message.
    results="together",
    # "`tool_use` ids must be unique" (anthropics/claude-code#20700).
    unique_ids=True,
    # "tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'" (maximhq/bifrost#5097).
    id_pattern=r"[a-zA-Z0-9_-]+",
    # "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'".
    name_pattern=r"[a-zA-Z0-9_-]+",
    name_length=128,
    # "tools.0.custom.input_schema.type: Field required" (Kilo-Org/kilocode#12238); `Literal["object"]` in the SDK.
    schemas="required",
    # "tool_use.input: Input should be a valid dictionary" (anthropics/anthropic-sdk-typescript#648).
    object_arguments=True,
    # "text content blocks must be non-empty", "… must contain non-whitespace text" (home-assistant/core#175637), "all
    # messages must have non-empty content except for the optional final assistant message" (claude-code#6774).
    blank_text=False,
    # "content cannot be empty if `is_error` is true" (anthropics/claude-agent-sdk-python#248).
    silent_errors=False,
    # "final assistant content cannot end with trailing whitespace" (tailcallhq/forgecode#1872).
    final_blanks=False,
    # "Invalid `signature` in `thinking` block": thinking must be sent back unchanged, or not at all.
    signed_reasoning=True,
    # "The final block in an assistant message cannot be `thinking`" (tailcallhq/forgecode#3071).
    reasoning_keeps_next=True,
    # "`web_search` tool use with id srvtoolu_… was found without a corresponding result block"
    # (anthropics/anthropic-sdk-python#1151).
    server_calls=frozenset({"server_tool_use", "mcp_tool_use"}),
    # Assistant messages have text, thinking and tools; only user messages and results have images and documents.
    media=frozenset({"user", "tool"}),
    # The SDK's `Base64ImageSourceParam` and `Base64PDFSourceParam` list these types; "image.source.base64: invalid
    # base64 data" (anthropics/anthropic-sdk-typescript#603). Documents of plain text are base64 only inside Nexus.
    image_types=frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"}),
    file_types=frozenset({"application/pdf", "text/plain"}),
    # "image exceeds 5 MB maximum: 5272940 bytes > 5242880 bytes", of base64 (daya0576/pi-imessage#5).
    image_size=5 * _MEGABYTE,
    file_size=32 * _MEGABYTE,
    # "Request exceeds the maximum size": 32 MB for Messages (anthropics/anthropic-sdk-python#938).
    request_bytes=32 * _MILLION,
    # "A maximum of 4 blocks with cache_control may be provided. Found 5." (continuedev/continue#6937), and "a ttl='1h'
    # cache_control block must not come after a ttl='5m' cache_control block" (headroomlabs-ai/headroom#2939). On
    # reasoning: "thinking.cache_control: Extra inputs are not permitted" (UKGovernmentBEIS/inspect_ai#3967).
    cache_mark="cache_control",
    cache_marks=4,
)

GEMINI_RULES = ApiRules(
    name="gemini",
    # "Please use a valid role: user, model."; instructions are systemInstruction.
    system="field",
    first=frozenset({"user"}),
    # "Please ensure that multiturn requests ends with a user role or a function response" (songquanpeng/one-api#836,
    # crewAIInc/crewAI#6973).
    last=frozenset({"user", "tool"}),
    # "Please ensure that the number of function response parts is equal to the number of function call parts of the
    # function call turn" (microsoft/vscode#299295, google-gemini/gemini-cli#6418): in one turn, right after the calls.
    results="together",
    # A turn with function responses holds nothing else (anomalyco/opencode#43479).
    results_alone=True,
    # "Please ensure that function call turn comes immediately after a user turn or after a function response turn"
    # (google-gemini/gemini-cli#26486, #11814).
    calls_after_user=True,
    # An id is optional; without one, calls and responses are matched by order and name.
    call_ids=False,
    # "Invalid function name. Must start with a letter or an underscore. Must be a-z, A-Z, 0-9, or contain underscores
    # (_), dots (.), colons (:), or dashes (-), with a maximum length of 64." (kaitranntt/ccs#25).
    name_pattern=r"[a-zA-Z_][a-zA-Z0-9_.:-]*",
    name_length=64,
    # "functionDeclaration parameters schema should be of type OBJECT" (diegosouzapw/OmniRoute#3360); the SDK says of
    # `parameters_json_schema` that it must describe an object.
    schemas="object",
    # "function_response.name: Name cannot be empty" (openclaw/openclaw#47857); it must be the call's (goclaw#843).
    result_names=True,
    object_arguments=True,
    # "contents.parts must not be empty" (vercel/ai#3775); an empty text does not count as a part: "required oneof field
    # 'data' must have one initialized field" (router-for-me/CLIProxyAPI#1292).
    blank_text=False,
    # Models can return images, which are sent back to them.
    media=frozenset({"user", "assistant", "tool"}),
    # Data inside a request: 100 MB of base64 since January 2026, 20 MB before.
    image_size=100 * _MEGABYTE,
    file_size=100 * _MEGABYTE,
    request_bytes=100 * _MILLION,
)

NEUTRAL_RULES = ApiRules(name="neutral", foreign=True, request_bytes=32 * _MILLION)
"""Rules for messages whose API is not known: what every API rejects, and the smallest request size of all."""

RULES_BY_API: Mapping[str, ApiRules] = MappingProxyType(
    {rules.name: rules for rules in (OPENAI_RULES, RESPONSES_RULES, ANTHROPIC_RULES, GEMINI_RULES, NEUTRAL_RULES)}
)
"""Rules by dialect name."""
