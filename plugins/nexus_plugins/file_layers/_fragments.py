"""The parts of a text that is made of several files, each with the place that it comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nexus_core.plugin import Piece

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


class Fragment(NamedTuple):
    """A part of a file, and where in the file it begins."""

    text: str
    path: Path
    line: int
    column: int


class Cutter:
    """Cuts a file into fragments, from its beginning to its end.

    Args:
        path: The file.
        text: Its content.
    """

    def __init__(self, path: Path, text: str) -> None:
        self.text = text
        self._path = path
        self._offset = 0
        self._line = 1
        self._line_start = 0

    def cut(self, start: int, end: int) -> Fragment:
        """The part from `start` to `end`; it must not begin before the last one."""
        self._line += self.text.count("\n", self._offset, start)
        self._line_start = max(self._line_start, self.text.rfind("\n", self._offset, start) + 1)
        self._offset = start
        return Fragment(self.text[start:end], self._path, self._line, start - self._line_start + 1)


def without_last_newlines(fragments: list[Fragment]) -> list[Fragment]:
    """The same text without the newlines it ends with."""
    kept = list(fragments)
    while kept:
        last = kept.pop()
        text = last.text.rstrip("\n")
        if text:
            return [*kept, last._replace(text=text)]
    return []


def joined(fragments: Iterable[Fragment]) -> tuple[str, tuple[Piece, ...]]:
    """The whole text, and where its parts come from."""
    pieces: list[Piece] = []
    start = 0
    for fragment in fragments:
        pieces.append(Piece(start, fragment.path, fragment.line, fragment.column))
        start += len(fragment.text)
    return "".join(fragment.text for fragment in fragments), tuple(pieces)
