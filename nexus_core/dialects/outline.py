"""Outlines of raw messages: enough to see that nothing is wrong, without reading them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from nexus_core.values.message import Role

    AddBlock = Callable[["Outline", dict[str, Any]], bool]


class Outline:
    """Content of an element that has the plain shape of its API: texts, tool calls or tool results, and no other field.

    A dialect returns one only if reading the element gives a message of just these parts; anything rare is left to the
    full rules. Its methods return False for what is not of the type that it must be.

    Attributes:
        role: The role of the message that would be read.
        texts: Every text in it, also of results and signed thoughts.
        calls: The id, the tool and the arguments of each call, an object or the text of one; an id is "" where the API
            has none.
        results: The id and the tool of each result; the tool is "" where the API does not repeat it.
    """

    __slots__ = ("calls", "results", "role", "texts")

    def __init__(self, role: Role) -> None:
        self.role = role
        self.texts: list[str] = []
        self.calls: list[tuple[str, str, Any]] = []
        self.results: list[tuple[str, str]] = []

    def add_text(self, text: object) -> bool:
        """Add a text."""
        if type(text) is not str:
            return False
        self.texts.append(text)
        return True

    def add_texts(self, blocks: object, kind: str) -> bool:
        """Add a text, or those of blocks `{"type": kind, "text": …}`."""
        if type(blocks) is str:
            self.texts.append(blocks)
            return True
        if type(blocks) is not list or not blocks:
            return False
        for block in blocks:
            is_plain = type(block) is dict and len(block) == 2 and block.get("type") == kind  # noqa: PLR2004 - these two
            if not is_plain or not self.add_text(block.get("text")):
                return False
        return True

    def add_call(self, call_id: object, name: object, arguments: object, kind: type) -> bool:
        """Add a tool call whose arguments must be of a type."""
        if type(call_id) is not str or type(name) is not str or type(arguments) is not kind:
            return False
        self.calls.append((call_id, name, arguments))
        return True

    def add_result(self, call_id: object, name: object) -> bool:
        """Add a tool result, without its texts."""
        if type(call_id) is not str or type(name) is not str:
            return False
        self.results.append((call_id, name))
        return True

    def with_tool_role(self, blocks: int) -> Outline | None:
        """Return it, with the role `tool` if all of its blocks are tool results.

        None where results are mixed with other blocks or part of a reply, or where a user message has calls.
        """
        if self.results:
            is_alone = self.role == "user" and len(self.results) == blocks
            self.role = "tool"
            return self if is_alone else None
        return None if self.calls and self.role == "user" else self

    def add_blocks(self, blocks: Iterable[object], adders: Mapping[str, AddBlock]) -> bool:
        """Add blocks by their `type`, each with the function for it."""
        for block in blocks:
            if type(block) is not dict:
                return False
            kind = block.get("type")
            add = adders.get(kind) if type(kind) is str else None
            if add is None or not add(self, block):
                return False
        return True
