"""From neutral messages to chat messages."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeGuard

from nexus_core.dialects.family import FAMILY
from nexus_core.dialects.merging import with_calls_together
from nexus_core.dialects.notes import filled
from nexus_core.dialects.openai.calls import write_calls
from nexus_core.dialects.openai.marking import marked
from nexus_core.dialects.openai.parts import write_content, write_part
from nexus_core.dialects.openai.reading import AUDIO
from nexus_core.dialects.openai.reasoning import write_reasoning
from nexus_core.dialects.pairing import with_ids
from nexus_core.values.parts import File, Image, Opaque, Text, ToolResult

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nexus_core.values.api import Marks
    from nexus_core.values.message import Message
    from nexus_core.values.parts import Part, ResultPart

Body = dict[str, Any]
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_BELOW = "[{} in the next message from the user]"


def write_messages(messages: Iterable[Message], marks: Marks | None = None) -> list[Body]:
    """The list of chat completions."""
    given = list(messages)
    together = with_calls_together(given, "openai")
    ends = {id(given[place]) for place in marks or () if place >= 0}  # what is put together is never marked
    bodies: list[Body] = []
    waiting: list[Body] = []  # pictures in results, which only a user may show, and only after the last result
    for message, before in zip(with_ids(together, "openai"), together, strict=True):
        written = _write_message(message)
        if id(before) in ends and written and message.role != "assistant":
            last = written[-1][0]
            last["content"] = marked(last.get("content"), "text")
        for body, shown in written:
            if waiting and body["role"] != "tool":
                bodies.append({"role": "user", "content": waiting})
                waiting = []
            bodies.append(body)
            waiting += shown
    return [*bodies, {"role": "user", "content": waiting}] if waiting else bodies


def _write_message(message: Message) -> list[tuple[Body, list[Body]]]:
    results = [_write_result(part, message) for part in message.parts if isinstance(part, ToolResult)]
    body = _write_assistant(message) if message.role == "assistant" else _write_said(message)
    if body is None:
        return results
    # Nothing may stand between a call and its results.
    return [(body, []), *results] if message.role == "assistant" else [*results, (body, [])]


def _write_said(message: Message) -> Body | None:
    own = message.api == "openai"
    if own and message.role == "tool":
        return None
    parts = [part for part in message.parts if _is_content(part)]
    role = "user" if message.role == "tool" else spelled_role(message)
    content = write_content(parts, message.api, spelling=message.extra.get("_content"), media=role == "user")
    if not own and not content:
        return None
    body: Body = {"role": role}
    if parts or "content" not in message.extra:
        body["content"] = content
    return _finished(body, message)


def _write_assistant(message: Message) -> Body | None:
    own = message.api == "openai"
    parts = [part for part in message.parts if _is_content(part) and not (own and _is_aside(part))]
    fields = write_reasoning(message.parts) | write_calls(message.parts, message.api)
    if own:
        fields |= _write_aside(message.parts)
    content = write_content(parts, message.api, spelling=message.extra.get("_content"), media=False)
    if not (own or content or fields):
        return None
    body: Body = {"role": "assistant"}
    if not own:
        body["content"] = content or None  # as the API itself says it, which refuses an empty list
    elif parts or "_content" in message.extra:
        body["content"] = content
    return _finished(body | fields, message)


def _write_result(result: ToolResult, message: Message) -> tuple[Body, list[Body]]:
    if message.api == "openai":
        return _write_own_result(result), []
    parts: list[ResultPart] = []
    shown: list[Body] = []
    for part in result.parts:
        block = write_part(part, message.api, media=True)
        if block is not None and isinstance(part, Image | File) and block["type"] != "text":
            shown.append(block)
            parts.append(Text(_BELOW.format("image" if isinstance(part, Image) else "file")))
        else:
            parts.append(part)
    content = write_content(parts, message.api, spelling="", media=False)
    return {"role": "tool", "tool_call_id": result.call_id, "content": content}, shown


def _write_own_result(result: ToolResult) -> Body:
    former = "_former" in result.extra
    body: Body = {"role": "function"} if former else {"role": "tool", "tool_call_id": result.call_id}
    if former or result.name:
        body["name"] = result.name
    if result.parts or "content" not in result.extra:
        spelling = result.extra.get("_content")
        body["content"] = write_content(result.parts, "openai", spelling=spelling, media=True)
    return filled(body, result.extra)


def _write_aside(parts: Sequence[Part]) -> Body:
    """What OpenAI has a field for beside the content."""
    body: Body = {}
    refusals = [part.text for part in parts if isinstance(part, Text) and part.extra.get("_refusal") == "field"]
    if refusals:
        body["refusal"] = "\n".join(refusals)
    for part in parts:
        if isinstance(part, Text) and "_voice" in part.extra:
            body[AUDIO] = part.extra["_voice"] | {"transcript": part.text}  # type: ignore[operator]
        elif isinstance(part, Opaque) and part.api == "openai" and AUDIO in part.block:
            body[AUDIO] = part.block[AUDIO]
    return body


def _is_content(part: Part) -> TypeGuard[ResultPart]:
    # A block that has no type was a field of the message.
    return isinstance(part, Text | Image | File) or (isinstance(part, Opaque) and "type" in part.block)


def _is_aside(part: ResultPart) -> bool:
    return isinstance(part, Text) and ("_voice" in part.extra or part.extra.get("_refusal") == "field")


def spelled_role(message: Message) -> str:
    """`developer` where OpenAI said so; otherwise the role itself."""
    developer = message.role == "system" and message.api in FAMILY and message.extra.get("_role") == "developer"
    return "developer" if developer else message.role


def _finished(body: Body, message: Message) -> Body:
    if message.name and (message.api == "openai" or _NAME.fullmatch(message.name)):
        body["name"] = message.name
    return filled(body, message.extra) if message.api == "openai" else body
