"""From neutral messages to Gemini's contents."""

from __future__ import annotations

from functools import reduce
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.dialects.gemini.parts import SIGNATURE, write_part
from nexus_core.dialects.gemini.spelling import camel
from nexus_core.dialects.media import absent
from nexus_core.dialects.notes import filled
from nexus_core.values.parts import File, Image, ToolResult

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from nexus_core.values.message import Message, Role
    from nexus_core.values.parts import Part

Body = dict[str, Any]

UNSIGNED = "skip_thought_signature_validator"
"""Gemini 3 refuses a call that it did not sign itself; for calls that others made, Google documents this word."""


class _Element(NamedTuple):
    """One content.

    Attributes:
        body: As it is sent.
        speaker: Whose it is; the tools' where it holds nothing but results.
        own: Whether Gemini's own content stands in it alone.
        calls: Whether functions are called in it.
    """

    body: Body
    speaker: Role
    own: bool = False
    calls: bool = False


def write_messages(messages: Iterable[Message]) -> list[Body]:
    """The list of contents. An answer with calls is one content; all results of it are alone in the next."""
    given = list(messages)
    names = {call.id: call.name for message in given for call in message.tool_calls if call.id}
    elements = (element for message in given for element in _write_message(message, names))
    bodies: list[Body] = []
    for speaker, run in groupby(elements, key=lambda element: element.speaker):
        neighbours = list(run)
        if not all(element.own for element in neighbours) and _belong_together(speaker, neighbours):
            neighbours = [reduce(_together, neighbours)]
        bodies += map(_marked, neighbours)
    return bodies


def write_system(messages: Iterable[Message], *, short: bool) -> str | Body | None:
    """The instructions beside the contents; a text alone where that is short for it and Gemini had no content."""
    found = [message for message in messages if message.role == "system"]
    parts = [block for message in found for block in _write_parts(_words(message), message.api, {})]
    if not parts:
        return None
    own = found[0] if len(found) == 1 and found[0].api == "gemini" else None
    if short and len(parts) == 1 and parts[0].keys() == {"text"} and not (own and "_content" in own.extra):
        text: str = parts[0]["text"]
        return text
    return filled({"parts": parts}, own.extra if own else {})


def _words(message: Message) -> list[Part]:
    own = message.api == "gemini"
    return [absent(part) if isinstance(part, Image | File) and not own else part for part in message.parts]


def _write_message(message: Message, names: Mapping[str, str]) -> list[_Element]:
    if message.role == "system":
        return []
    calls = bool(message.tool_calls)
    if message.api == "gemini":
        return [_Element(_write_own(message), message.role, own=True, calls=calls)]
    results = [part for part in message.parts if isinstance(part, ToolResult)]
    others = [part for part in message.parts if not isinstance(part, ToolResult)]
    elements = []
    if brought := _write_parts(results, message.api, names):
        elements.append(_Element({"role": "user", "parts": brought}, "tool"))
    if said := _write_parts(others, message.api, names):
        speaker: Role = "assistant" if message.role == "assistant" else "user"
        body = {"role": "model" if speaker == "assistant" else "user", "parts": said}
        elements.append(_Element(body, speaker, calls=calls))
    return elements


def _write_own(message: Message) -> Body:
    missing: Any = message.extra.get("_missing", ())
    body: Body = {}
    # What was null or missing stays so.
    if not ("role" in missing or "role" in message.extra):
        body["role"] = message.extra.get("_role", "model" if message.role == "assistant" else "user")
    if message.parts or not ("parts" in missing or "parts" in message.extra):
        body["parts"] = _write_parts(message.parts, "gemini", {})
    return filled(body, message.extra)


def _write_parts(parts: Iterable[Part], api: str, names: Mapping[str, str]) -> list[Body]:
    return [block for part in parts if (block := write_part(part, api, names)) is not None]


def _belong_together(speaker: Role, run: Sequence[_Element]) -> bool:
    return speaker == "tool" or (speaker == "assistant" and any(element.calls for element in run))


def _together(before: _Element, after: _Element) -> _Element:
    parts = [*(before.body.get("parts") or ()), *(after.body.get("parts") or ())]
    return _Element(after.body | before.body | {"parts": parts}, before.speaker)


def _marked(element: _Element) -> Body:
    """A content; in somebody else's answer the first call is marked as one that Gemini did not make."""
    first = next((part for part in element.body.get("parts") or () if "functionCall" in map(camel, part)), None)
    if element.own or first is None or SIGNATURE in map(camel, first):
        return element.body
    parts = [part | {SIGNATURE: UNSIGNED} if part is first else part for part in element.body["parts"]]
    return element.body | {"parts": parts}
