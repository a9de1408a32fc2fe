"""What Gemini answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core.dialects.fields import at, mapping_in, number_in, optional_text_in
from nexus_core.dialects.gemini.reading import read_content
from nexus_core.dialects.gemini.stream import CONTENT, merged
from nexus_core.values.conversation import Reply, Usage

if TYPE_CHECKING:
    from nexus_core.values.conversation import Stop

_STOPS: dict[str, Stop] = {
    "": "",
    "FINISH_REASON_UNSPECIFIED": "",
    "STOP": "end",
    "MAX_TOKENS": "length",
    "CONTINUATION": "pause",
    "SAFETY": "refusal",
    "RECITATION": "refusal",
    "BLOCKLIST": "refusal",
    "PROHIBITED_CONTENT": "refusal",
    "SPII": "refusal",
    "IMAGE_SAFETY": "refusal",
    "IMAGE_PROHIBITED_CONTENT": "refusal",
    "IMAGE_RECITATION": "refusal",
}
"""Why Gemini stops. All its other reasons are failures: a malformed call, an unsupported language."""


def read_reply(reply: object) -> Reply:
    """A response, or the list of a stream's responses. Of several candidates it is the first."""
    answer = merged(reply if isinstance(reply, list | tuple) else [reply])
    with at(CONTENT):
        message = read_content({"role": "model", "parts": answer["parts"]})
    blocked = optional_text_in(answer["promptFeedback"], "blockReason")
    reason = blocked or optional_text_in(answer, "finishReason")
    stop = "refusal" if blocked else _STOPS.get(reason, "error")
    if not reason and isinstance(reply, list | tuple):
        stop = "broken"
    return Reply(
        messages=(message,),
        # Gemini has no word of its own for calls that wait.
        stop="tools" if stop == "end" and message.tool_calls else stop,
        stop_reason=reason,
        usage=_usage(answer),
        id=optional_text_in(answer, "responseId"),
        model=optional_text_in(answer, "modelVersion"),
        api="gemini",
    )


def _usage(answer: dict[str, Any]) -> Usage | None:
    if answer.get("usageMetadata") is None:
        return None
    usage = mapping_in(answer, "usageMetadata")
    with at("usageMetadata"):
        thoughts = number_in(usage, "thoughtsTokenCount")
        return Usage(
            # What the provider's own tools brought is read too, and counted apart.
            input_tokens=number_in(usage, "promptTokenCount") + number_in(usage, "toolUsePromptTokenCount"),
            output_tokens=number_in(usage, "candidatesTokenCount") + thoughts,
            cached_input_tokens=number_in(usage, "cachedContentTokenCount"),
            reasoning_tokens=thoughts,
        )
