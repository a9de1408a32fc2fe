"""What Responses answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core.dialects.fields import at, list_in, mapping_in, number_in, optional_text_in, shown
from nexus_core.dialects.plain import plain_mapping
from nexus_core.dialects.requests import read_each
from nexus_core.dialects.responses.reading import read_item
from nexus_core.dialects.responses.stream import Begun
from nexus_core.errors import MessageError
from nexus_core.values.conversation import Reply, Usage
from nexus_core.values.parts import Opaque, Text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexus_core.values.conversation import Stop
    from nexus_core.values.message import Message

_FINAL = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")
_BROKEN = "broken"
"""The state of a response whose final event did not come; the API has no word for it."""
_STOPS: dict[str, Stop] = {
    "failed": "error",
    "cancelled": "error",
    "queued": "pause",
    "in_progress": "pause",
    _BROKEN: "broken",
}
_CUT: dict[str, Stop] = {"content_filter": "refusal", "steered": "pause"}


def read_reply(reply: object) -> Reply:
    """A response, or the list of the events that brought it."""
    body = _from_events(reply) if isinstance(reply, list | tuple) else plain_mapping(reply)
    _refuse_error(body)
    messages = read_each(list_in(body, "output"), read_item, "output")
    status, cut = optional_text_in(body, "status"), _cut(body)
    return Reply(
        messages=messages,
        stop=_stop(status, cut, messages),
        stop_reason=cut or _code(body) or ("" if status == _BROKEN else status),
        usage=_usage(body),
        id=optional_text_in(body, "id"),
        model=optional_text_in(body, "model"),
        api="responses",
    )


def _from_events(events: Sequence[object]) -> dict[str, Any]:
    """The response of the final event; what had come so far, where there is none or it leaves that out."""
    body: dict[str, Any] = {}
    done: list[Any] = []
    begun = Begun()
    for index, item in enumerate(events):
        with at(f"[{index}]"):
            event = plain_mapping(item)
            kind = optional_text_in(event, "type")
            begun.add(kind, event)
        if isinstance(event.get("response"), dict):
            body = event["response"]
        if kind == "error":
            return body | {"status": "failed", "error": event, "output": [*done, *begun.items()]}
        if kind == "response.output_item.done":
            done.append(event.get("item"))
        if kind in _FINAL:
            return body if body.get("output") else body | {"output": done}
    if not body and not done:
        raise MessageError("there is no response in these events", hint="give all events of a stream, in their order")
    return body | {"status": _BROKEN, "output": body.get("output") or [*done, *begun.items()]}


def _refuse_error(body: dict[str, Any]) -> None:
    error = body.get("error")
    if error and "output" not in body:
        said = error.get("message") if isinstance(error, dict) else error
        raise MessageError(f"the server answered with an error: {shown(said)}", path="error")


def _stop(status: str, cut: str, messages: Sequence[Message]) -> Stop:
    if status == "incomplete":
        return _CUT.get(cut, "length")
    if status in _STOPS:
        return _STOPS[status]
    answered = {result.call_id for message in messages for result in message.tool_results}
    if any(call.id not in answered for message in messages for call in message.tool_calls):
        return "tools"
    parts = [part for message in messages for part in message.parts]
    if any(isinstance(part, Opaque) and part.block.get("type") == "mcp_approval_request" for part in parts):
        return "tools"
    if any(isinstance(part, Text) and "_refusal" in part.extra for part in parts):
        return "refusal"
    return "end" if status == "completed" else ""


def _cut(body: dict[str, Any]) -> str:
    if body.get("incomplete_details") is None:
        return ""
    with at("incomplete_details"):
        return optional_text_in(mapping_in(body, "incomplete_details"), "reason")


def _code(body: dict[str, Any]) -> str:
    error = body.get("error")
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, str) else ""


def _usage(body: dict[str, Any]) -> Usage | None:
    if body.get("usage") is None:
        return None
    with at("usage"):
        usage = mapping_in(body, "usage")
        read, written = (
            {} if usage.get(key) is None else mapping_in(usage, key)
            for key in ("input_tokens_details", "output_tokens_details")
        )
        return Usage(
            input_tokens=number_in(usage, "input_tokens"),
            output_tokens=number_in(usage, "output_tokens"),
            cached_input_tokens=number_in(read, "cached_tokens"),
            cache_write_tokens=number_in(read, "cache_write_tokens"),
            reasoning_tokens=number_in(written, "reasoning_tokens"),
        )
