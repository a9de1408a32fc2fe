"""Shows a place in a file: its line between the two neighbours, and a caret under the character that is meant."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

from nexus_core.text.visible import visible_line

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from nexus_core.config.lines import Lines, Position

TAB_WIDTH = 4
MAX_CELLS = 100
"""How much of a line is shown; longer ones are cut around the place that is meant."""


def render_excerpt(lines: Lines, position: Position, withheld: Collection[int] = ()) -> str:
    """The numbered lines around a position, with a caret below its column; none if its line is among those withheld."""
    if position.line in withheld:
        return ""
    around = range(max(1, position.line - 1), position.line + 2)
    numbers = [number for number in around if number not in withheld and _is_shown(lines, position, number)]
    digits = len(str(numbers[-1]))
    rows: list[str] = []
    for number in numbers:
        gutter = f"  {number:>{digits}} | "
        is_meant = number == position.line
        text, caret = _fit(lines.line(number) or "", position.column - 1 if is_meant else None)
        rows.append(f"{gutter}{text}".rstrip())
        if is_meant:
            rows.append(" " * (len(gutter) + caret) + "^")
    return "\n".join(rows)


def _is_shown(lines: Lines, position: Position, number: int) -> bool:
    """Whether there is such a line; the nothing after a final line break is one only if it is meant itself."""
    return number == position.line or lines.line(number + 1) is not None or bool(lines.line(number))


def _fit(line: str, offset: int | None) -> tuple[str, int]:
    """A line as it is shown, cut to size around `offset` (its beginning when that is None), and the caret's cell."""
    place = min(offset or 0, len(line))
    start, end = _window(line, place)
    text, caret = _draw(line[start:end], None if offset is None else place - start)
    head, tail = "…" if start else "", "…" if end < len(line) else ""
    return f"{head}{text}{tail}", len(head) + caret


def _window(line: str, place: int) -> tuple[int, int]:
    """From where to where a line is shown: all of it if it fits, else half a window before the place and after it."""
    start = place - _fitting(reversed(line[max(0, place - MAX_CELLS) : place]), MAX_CELLS // 2)
    end = start + _fitting(line[start : start + MAX_CELLS + 1], MAX_CELLS)
    if end == len(line):
        start = end - _fitting(reversed(line[-MAX_CELLS - 1 :]), MAX_CELLS)
    return start, end


def _fitting(characters: Iterable[str], room: int) -> int:
    """How many of the characters fit into so many cells; none counts as nothing, to be done with them soon."""
    count = 0
    for character in characters:
        room -= TAB_WIDTH if character == "\t" else max(1, _cells(visible_line(character)))
        if room < 0:
            break
        count += 1
    return count


def _draw(line: str, caret: int | None) -> tuple[str, int]:
    """A line with nothing in it that moves the cursor, and the cell of the character at `caret`."""
    parts: list[str] = []
    cell = caret_cell = 0
    for index, character in enumerate(line):
        if index == caret:
            caret_cell = cell
        shown = " " * (TAB_WIDTH - cell % TAB_WIDTH) if character == "\t" else _shown(character, index == caret)
        parts.append(shown)
        cell += _cells(shown)
    return "".join(parts), cell if caret == len(line) else caret_cell


def _shown(character: str, is_meant: bool) -> str:
    # A no-break space or a zero-width joiner is fine inside a text, but not where it is what is wrong.
    if is_meant and (not character.isprintable() or not _cells(character)):
        return character.encode("unicode_escape").decode()
    return visible_line(character)


def _cells(text: str) -> int:
    """How many cells of a terminal a text takes."""
    return sum(
        0
        if unicodedata.category(character) in {"Mn", "Me", "Cf"}
        else 1 + (unicodedata.east_asian_width(character) in "WF")
        for character in text
    )
