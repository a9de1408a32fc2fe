"""From neutral messages to Anthropic's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.dialects.anthropic.blocks import is_blank, write_blocks, write_content
from nexus_core.dialects.anthropic.marking import mark_last
from nexus_core.dialects.notes import filled
from nexus_core.dialects.pairing import with_ids

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nexus_core.values.api import Marks
    from nexus_core.values.message import Message

Body = dict[str, Any]

_ROLES = {"tool": "user"}


class _Element(NamedTuple):
    """One element of the list.

    Attributes:
        body: As it is sent.
        own: Whether Anthropic's own message stands in it alone.
        tied: Whether calls or results stand in it.
    """

    body: Body
    own: bool
    tied: bool


def write_messages(messages: Iterable[Message], marks: Marks | None = None) -> list[Body]:
    """The list of messages. An answer with calls is one message; all results of it are in the next, and come first."""
    elements: list[_Element] = []
    for place, message in enumerate(with_ids(messages, "anthropic")):
        element = _write_message(message)
        if element is None:
            continue
        if marks and place in marks:
            _mark(element, marks[place])
        if elements and _belong_together(elements[-1], element):
            element = _together(elements.pop(), element)
        elements.append(element)
    return [element.body for element in elements]


def write_system(messages: Iterable[Message], marks: Marks | None = None) -> str | list[Body]:
    """The field beside the list: all instructions but those that Anthropic itself had among the messages."""
    found: list[Message] = []
    blocks: list[Body] = []
    for place, message in enumerate(messages):
        if message.role == "system" and not _is_listed(message):
            found.append(message)
            blocks += write_blocks(message.parts, message.api, media=False)
            if marks and place in marks:
                mark_last(blocks, marks[place])
    own = len(found) == 1 and found[0].api == "anthropic"
    return write_content(blocks, found[0].extra.get("_content") if own else "")


def _is_listed(message: Message) -> bool:
    return message.api == "anthropic" and "_field" not in message.extra


def _write_message(message: Message) -> _Element | None:
    own = message.api == "anthropic"
    if message.role == "system" and not _is_listed(message):
        return None
    blocks = write_blocks(message.parts, message.api, media=message.role != "assistant")
    if not own and not blocks:
        return None
    tied = any(block.get("type") in ("tool_use", "tool_result") for block in blocks)
    body: Body = {"role": _ROLES.get(message.role, message.role)}
    if own:
        spelling = message.extra.get("_content")
        # Null stays among the other fields.
        if message.parts or not (spelling == "missing" or "content" in message.extra):
            body["content"] = write_content(blocks, spelling)
        return _Element(filled(body, message.extra), own, tied)
    return _Element(body | {"content": write_content(_results_first(blocks), "")}, own, tied)


def _mark(element: _Element, lifetime: str) -> None:
    blocks = _listed(element.body)
    if blocks:
        mark_last(blocks, lifetime)
        element.body["content"] = write_content(blocks, "list")


def _belong_together(before: _Element, after: _Element) -> bool:
    # Anthropic itself reads neighbours of one role as one message, but looks for results in the next one only.
    alike = before.body["role"] == after.body["role"] != "system"
    return alike and (before.tied or after.tied) and not (before.own and after.own)


def _together(before: _Element, after: _Element) -> _Element:
    blocks = _results_first([*_listed(before.body), *_listed(after.body)])
    body = after.body | before.body | {"content": write_content(blocks, "list")}
    return _Element(body, own=False, tied=True)


def _listed(body: Body) -> list[Body]:
    content = body.get("content") or []
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return [block for block in blocks if not is_blank(block)]


def _results_first(blocks: Sequence[Body]) -> list[Body]:
    return sorted(blocks, key=lambda block: block.get("type") != "tool_result")
