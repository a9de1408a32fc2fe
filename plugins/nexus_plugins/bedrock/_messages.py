"""Messages, from Converse's list to neutral ones and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core import Message, MessageError
from nexus_core.plugin import ToolResult, fields_of, json_kind, noted, plain_mapping, with_ids
from nexus_plugins.bedrock._fields import API, list_in, text_in, without
from nexus_plugins.bedrock._media import Names
from nexus_plugins.bedrock._reading import read_blocks
from nexus_plugins.bedrock._writing import MARK, is_blank, new_mark, note_names, with_words, write_blocks

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from nexus_plugins.bedrock._fields import Block

ROLES = ("user", "assistant", "system")
_MARKABLE = frozenset({"text", "image", "toolUse", "toolResult", "guardContent", "citationsContent"})
"""What a mark may follow. Behind a document it is refused for some formats (pizza-bot-app/pizza-bot#6)."""


class _Element(NamedTuple):
    """One element of the list.

    Attributes:
        body: As it is sent.
        own: Whether Bedrock's own message stands in it alone.
    """

    body: Block
    own: bool


def read_message(item: object) -> Message:
    """One element of `messages`."""
    return read_plain(plain_mapping(item))


def read_plain(block: Block) -> Message:
    """The same of a dict that is nobody else's."""
    role = text_in(block, "role")
    if role not in ROLES:
        raise MessageError(f"unknown role {role!a}", path="role", hint=f"Bedrock knows {', '.join(ROLES)}")
    if isinstance(block.get("content"), str):
        hint = 'Converse has a list of blocks: [{"text": "…"}]'
        raise MessageError(f"expected a list, not {json_kind(block['content'])}", path="content", hint=hint)
    parts = read_blocks(list_in(block, "content"), "content")
    speaker: Any = "tool" if role == "user" and {*map(type, parts)} == {ToolResult} else role
    return Message(speaker, parts, api=API, extra=noted(without(block, "role", "content")))


def read_system(blocks: list[Any]) -> Message:
    """The field beside the messages."""
    return Message("system", read_blocks(blocks, "system"), api=API, extra={"_field": True})


def write_messages(
    messages: Iterable[Message], marks: Mapping[int, str] | None = None, *, strictly: bool = False
) -> list[Block]:
    """The list of messages, in which roles alternate; all results of an answer's calls are in the next, and come first.

    Args:
        messages: What to write.
        marks: The messages at whose ends the cache is marked.
        strictly: Whether Bedrock's own messages too become what every model takes: neighbours of one role are joined,
            and results say something.
    """
    given = with_ids(messages, API)
    names = Names()
    for message in given:
        if message.api == API:
            note_names(message.parts, names)
    elements: list[_Element] = []
    for place, message in enumerate(given):
        element = _write_message(message, names)
        if element is None:
            continue
        if marks and place in marks:
            element = _Element(_marked(element.body, marks[place]), element.own)
        if elements and _belong_together(elements[-1], element, strictly=strictly):
            element = _together(elements.pop(), element)
        elements.append(element)
    return [element.body if element.own and not strictly else _worded(element.body) for element in elements]


def write_system(messages: Iterable[Message], marks: Mapping[int, str] | None = None) -> list[Block]:
    """The field beside the list: all instructions but those that Bedrock itself had among the messages."""
    blocks: list[Block] = []
    for place, message in enumerate(messages):
        if message.role == "system" and not _is_listed(message):
            blocks += write_blocks(message.parts, message.api, Names(), media=False)
            if marks and place in marks:
                blocks = with_mark(blocks, marks[place])
    return blocks


def with_mark(blocks: Sequence[Block], lifetime: str) -> list[Block]:
    """Blocks with a mark behind the last one that takes it; one that is marked already stays so."""
    last = next((place for place in reversed(range(len(blocks))) if _takes_mark(blocks[place])), None)
    if last is None or (last + 1 < len(blocks) and MARK in blocks[last + 1]):
        return list(blocks)
    return [*blocks[: last + 1], new_mark(lifetime), *blocks[last + 1 :]]


def _takes_mark(block: Block) -> bool:
    return bool(_MARKABLE & block.keys()) and not is_blank(block)


def _is_listed(message: Message) -> bool:
    return message.api == API and "_field" not in message.extra


def _write_message(message: Message, names: Names) -> _Element | None:
    own = message.api == API
    if message.role == "system" and not _is_listed(message):
        return None
    blocks = write_blocks(message.parts, message.api, names, media=message.role != "assistant")
    role = "user" if message.role == "tool" else message.role
    if own:
        return _Element({"role": role, "content": blocks, **fields_of(message.extra)}, own)
    return _Element({"role": role, "content": _results_first(blocks)}, own) if blocks else None


def _marked(body: Block, lifetime: str) -> Block:
    return body | {"content": with_mark(body["content"], lifetime)}


def _belong_together(before: _Element, after: _Element, *, strictly: bool) -> bool:
    # "A conversation must alternate between user and assistant roles" (Portkey-AI/gateway#748).
    alike: bool = before.body["role"] == after.body["role"] != "system"
    return alike and (strictly or not (before.own and after.own))


def _together(before: _Element, after: _Element) -> _Element:
    blocks = [block for block in (*before.body["content"], *after.body["content"]) if not is_blank(block)]
    return _Element(after.body | before.body | {"content": _results_first(blocks)}, own=False)


def _results_first(blocks: Sequence[Block]) -> list[Block]:
    return sorted(blocks, key=lambda block: "toolResult" not in block)


def _worded(body: Block) -> Block:
    """A message with words beside its documents and in its results, without which they are refused."""
    content = [with_words(block) for block in body["content"]]
    documents = [held.get("name") for block in content if isinstance(held := block.get("document"), dict)]
    if not documents or any("text" in block for block in content):
        return body | {"content": content}
    return body | {"content": [*content, {"text": f"[documents: {', '.join(map(str, documents))}]"}]}
