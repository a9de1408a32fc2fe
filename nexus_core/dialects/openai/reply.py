"""What chat completions answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core.dialects.fields import at, list_in, mapping_in, mapping_of, number_in, optional_text_in, shown, without
from nexus_core.dialects.openai.reading import read_message
from nexus_core.dialects.openai.stream import merged
from nexus_core.dialects.plain import plain_mapping
from nexus_core.errors import MessageError
from nexus_core.values.conversation import Reply, Usage

if TYPE_CHECKING:
    from nexus_core.values.conversation import Stop
    from nexus_core.values.message import Message

_STOPS: dict[str, Stop] = {
    "stop": "end",
    "length": "length",
    "tool_calls": "tools",
    "function_call": "tools",
    "content_filter": "refusal",
    "error": "error",
}


def read_reply(reply: object) -> Reply:
    """A completion, or the list of its chunks. Of several choices it is the first."""
    is_streamed = isinstance(reply, list | tuple)
    body = merged(reply) if isinstance(reply, list | tuple) else plain_mapping(reply)
    choice = _first_choice(body)
    with at("choices[0]"):
        given = mapping_in(choice, "message")
        with at("message"):
            message = read_message(_sendable(given))
        reason = optional_text_in(choice, "finish_reason")
    return Reply(
        messages=(message,),
        stop="broken" if is_streamed and not reason else _stop(reason, message),
        stop_reason=reason,
        usage=_usage(body),
        id=optional_text_in(body, "id"),
        model=optional_text_in(body, "model"),
        api="openai",
    )


def _first_choice(body: dict[str, Any]) -> dict[str, Any]:
    error = body.get("error")
    if error and not body.get("choices"):
        said = error.get("message") if isinstance(error, dict) else error
        raise MessageError(f"the server answered with an error: {shown(said)}", path="error")
    choices = list_in(body, "choices")
    if not choices:
        raise MessageError("there is no answer in it", path="choices")
    with at("choices[0]"):
        return mapping_of(choices[0])


def _sendable(message: dict[str, Any]) -> dict[str, Any]:
    """An answer as it may be sent back: SDKs and servers leave things in it that the API itself refuses."""
    body = {"role": "assistant"} | message
    calls = body.get("tool_calls")
    if not calls:
        body.pop("tool_calls", None)
    elif isinstance(calls, list):
        body["tool_calls"] = [without(call, "index") if isinstance(call, dict) else call for call in calls]
    return body


def _stop(reason: str, message: Message) -> Stop:
    if reason in ("stop", "eos", "end_turn"):
        # Some servers say so whatever the answer is.
        if message.tool_calls:
            return "tools"
        if any("_refusal" in getattr(part, "extra", ()) for part in message.parts):
            return "refusal"
        return "end"
    return _STOPS.get(reason, "")


def _usage(body: dict[str, Any]) -> Usage | None:
    if body.get("usage") is None:
        return None
    with at("usage"):
        usage = mapping_in(body, "usage")
        read, written = (_details(usage, f"{side}_tokens_details") for side in ("prompt", "completion"))
        return Usage(
            input_tokens=number_in(usage, "prompt_tokens"),
            output_tokens=number_in(usage, "completion_tokens"),
            # DeepSeek's word for it.
            cached_input_tokens=number_in(read, "cached_tokens") or number_in(usage, "prompt_cache_hit_tokens"),
            cache_write_tokens=number_in(read, "cache_write_tokens"),
            reasoning_tokens=number_in(written, "reasoning_tokens"),
        )


def _details(usage: dict[str, Any], key: str) -> dict[str, Any]:
    return {} if usage.get(key) is None else mapping_in(usage, key)
