"""Parts that a stream brings in pieces: texts, and calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core.dialects.gemini.partial import PartialCall
from nexus_core.dialects.gemini.spelling import camel

if TYPE_CHECKING:
    from collections.abc import Iterable

Block = dict[str, Any]

_CALL = "functionCall"


class Parts:
    """The parts of an answer. What one response ends with, the next one may continue."""

    def __init__(self) -> None:
        self._parts: list[Block] = []
        self._text: list[str] = []
        self._call: PartialCall | None = None

    def add(self, parts: Iterable[Block]) -> None:
        """The parts of the next response."""
        for index, part in enumerate(parts):
            call = _call_of(part)
            if self._call is not None and call is not None and not call.get("name"):
                self._call.add(call)
            elif index == 0 and self._parts and _continues(part, self._parts[-1]):
                self._text.append(part["text"])
            else:
                self._close()
                self._start(part, call)

    def whole(self) -> list[Block]:
        """All of them, put together."""
        self._close()
        return self._parts

    def _start(self, part: Block, call: Block | None) -> None:
        if call is not None and PartialCall.starts(call):
            self._call = PartialCall(call)
        self._parts.append(part)

    def _close(self) -> None:
        if self._text:
            self._parts[-1] = self._parts[-1] | {"text": "".join([self._parts[-1]["text"], *self._text])}
        if self._call:
            rest = {key: value for key, value in self._parts[-1].items() if camel(key) != _CALL}
            self._parts[-1] = rest | {_CALL: self._call.whole()}
        self._text, self._call = [], None


def _call_of(part: Block) -> Block | None:
    call = next((value for key, value in part.items() if camel(key) == _CALL), None)
    return {camel(key): value for key, value in call.items()} if isinstance(call, dict) else None


def _continues(part: Block, before: Block) -> bool:
    """Whether a text goes on with the one before. What is signed stands for itself: the seal is for its words."""
    is_plain = all(each.keys() <= {"text", "thought"} and isinstance(each.get("text"), str) for each in (part, before))
    return is_plain and part.get("thought") == before.get("thought")
