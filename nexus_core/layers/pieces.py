"""Says in which file a place of a text stands that was made of several files."""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from nexus_core.values.layer import LayerText


class Pieces:
    """The files that a text was made of.

    Args:
        text: With `pieces`, unless it is one file.
    """

    def __init__(self, text: LayerText) -> None:
        self._text = text

    @cached_property
    def _lines(self) -> list[int]:
        return [0, *(newline.end() for newline in re.finditer("\n", self._text.text))]

    def origin(self, line: int, column: int) -> tuple[Path, int, int]:
        """The file, line and column of what stands at a line and column of the text, all from 1."""
        offset = self._lines[line - 1] + column - 1 if self._text.pieces else 0
        at = bisect_right(self._text.pieces, offset, key=lambda piece: piece.start) - 1
        if at < 0:
            return self._text.path, line, column
        piece = self._text.pieces[at]
        lines_before = line - bisect_right(self._lines, piece.start)
        if lines_before:
            return piece.path, piece.line + lines_before, column
        return piece.path, piece.line, piece.column + offset - piece.start
