"""What Messages answers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nexus_core.dialects.anthropic.reading import read_plain
from nexus_core.dialects.anthropic.stream import Answer, merged
from nexus_core.dialects.fields import at, mapping_in, number_in, optional_text_in, shown
from nexus_core.dialects.plain import plain_mapping
from nexus_core.errors import MessageError
from nexus_core.values.conversation import Reply, Usage
from nexus_core.values.parts import ToolCall

if TYPE_CHECKING:
    from nexus_core.values.conversation import Stop
    from nexus_core.values.parts import Part

_STOPS: dict[str, Stop] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "tool_use": "tools",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "pause_turn": "pause",
    "compaction": "pause",
    "refusal": "refusal",
}


def read_reply(reply: object) -> Reply:
    """A message, or the list of a stream's events."""
    answer = merged(reply) if isinstance(reply, list | tuple) else Answer(plain_mapping(reply))
    body = answer.message
    if body.get("type") == "error":
        raise MessageError(f"the server answered with an error: {shown(_complaint(body))}", path="error")
    said = {"role": body.get("role", "assistant")}
    if "content" in body:
        said["content"] = body["content"]
    message = read_plain(said)
    if answer.unfinished:
        parts = tuple(_cut_off(part, answer.unfinished.get(index)) for index, part in enumerate(message.parts))
        message = replace(message, parts=parts)
    reason = answer.error or optional_text_in(body, "stop_reason")
    return Reply(
        messages=(message,),
        stop=_stop(reason, answer),
        stop_reason=reason,
        usage=_usage(body),
        id=optional_text_in(body, "id"),
        model=optional_text_in(body, "model"),
        api="anthropic",
    )


def _stop(reason: str, answer: Answer) -> Stop:
    if answer.error:
        return "error"
    return "broken" if answer.is_streamed and not reason else _STOPS.get(reason, "")


def _complaint(body: dict[str, Any]) -> object:
    error = body.get("error")
    return error.get("message") if isinstance(error, dict) else error


def _cut_off(part: Part, raw: str | None) -> Part:
    """A call whose arguments ended before they were complete keeps what there is of them."""
    return replace(part, raw=raw) if raw is not None and isinstance(part, ToolCall) else part


def _usage(body: dict[str, Any]) -> Usage | None:
    if body.get("usage") is None:
        return None
    usage = mapping_in(body, "usage")
    with at("usage"):
        read, written = number_in(usage, "cache_read_input_tokens"), number_in(usage, "cache_creation_input_tokens")
        key = "output_tokens_details"
        details = {} if usage.get(key) is None else mapping_in(usage, key)
        return Usage(
            # Anthropic counts what touches the cache apart.
            input_tokens=number_in(usage, "input_tokens") + read + written,
            output_tokens=number_in(usage, "output_tokens"),
            cached_input_tokens=read,
            cache_write_tokens=written,
            reasoning_tokens=number_in(details, "thinking_tokens"),
        )
