"""A part of a text that was made of several files."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path


class Piece(NamedTuple):
    """Where a part of a text comes from, when the text was made of several files.

    Attributes:
        start: Where in the text it begins, in characters from 0; it reaches to the next.
        path: The file it comes from.
        line: The line of the file that it begins in, from 1.
        column: Where in the line, from 1.
    """

    start: int
    path: Path
    line: int
    column: int
