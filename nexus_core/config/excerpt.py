"""Excerpts of settings files in errors, with a caret below the column."""

from __future__ import annotations

import unicodedata
from codecs import BOM_UTF16_BE, BOM_UTF16_LE, BOM_UTF32_BE, BOM_UTF32_LE
from typing import TYPE_CHECKING

from nexus_core.config.load import LineIndex, setting_error
from nexus_core.config.secrets import cover_text
from nexus_core.text.safety import visible_line

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from pathlib import Path

    from nexus_core.config.load import TextPosition
    from nexus_core.errors import ConfigError

TAB_WIDTH = 4
MAX_CELLS = 100
"""Terminal cells of a line that are shown; longer lines are cut around the position."""


def render_excerpt(lines: LineIndex, position: TextPosition, withheld: Collection[int] = ()) -> str:
    """Return the numbered lines around a position, with a caret below its column, or "" if its line is withheld."""
    if position.line in withheld:
        return ""
    around = range(max(1, position.line - 1), position.line + 2)
    numbers = [number for number in around if number not in withheld and _has_line(lines, position, number)]
    digits = len(str(numbers[-1]))
    rows: list[str] = []
    for number in numbers:
        gutter = f"  {number:>{digits}} | "
        is_meant = number == position.line
        text, caret = _fit_line(lines.line(number) or "", position.column - 1 if is_meant else None)
        rows.append(f"{gutter}{text}".rstrip())
        if is_meant:
            rows.append(" " * (len(gutter) + caret) + "^")
    return "\n".join(rows)


def _has_line(lines: LineIndex, position: TextPosition, number: int) -> bool:
    """Return True if the line exists. The empty line after a final line break counts only at the position itself."""
    return number == position.line or lines.line(number + 1) is not None or bool(lines.line(number))


def _fit_line(line: str, offset: int | None) -> tuple[str, int]:
    """Return a line cut around `offset` (None: from its beginning), and the cell of the caret."""
    place = min(offset or 0, len(line))
    start, end = _choose_window(line, place)
    text, caret = _draw_line(line[start:end], None if offset is None else place - start)
    head, tail = "…" if start else "", "…" if end < len(line) else ""
    return f"{head}{text}{tail}", len(head) + caret


def _choose_window(line: str, place: int) -> tuple[int, int]:
    """Return the range of a line to show: all of it if it fits, else half a window on each side."""
    start = place - _count_fitting(reversed(line[max(0, place - MAX_CELLS) : place]), MAX_CELLS // 2)
    end = start + _count_fitting(line[start : start + MAX_CELLS + 1], MAX_CELLS)
    if end == len(line):
        start = end - _count_fitting(reversed(line[-MAX_CELLS - 1 :]), MAX_CELLS)
    return start, end


def _count_fitting(characters: Iterable[str], room: int) -> int:
    """Return how many characters fit into this many cells. Zero-width ones count as one, to bound the loop."""
    count = 0
    for character in characters:
        room -= TAB_WIDTH if character == "\t" else max(1, _count_cells(visible_line(character)))
        if room < 0:
            break
        count += 1
    return count


def _draw_line(line: str, caret: int | None) -> tuple[str, int]:
    """Return a line without characters that move the cursor, and the cell of the character at `caret`."""
    parts: list[str] = []
    cell = caret_cell = 0
    for index, character in enumerate(line):
        if index == caret:
            caret_cell = cell
        shown = (
            " " * (TAB_WIDTH - cell % TAB_WIDTH) if character == "\t" else _draw_character(character, index == caret)
        )
        parts.append(shown)
        cell += _count_cells(shown)
    return "".join(parts), cell if caret == len(line) else caret_cell


def _draw_character(character: str, is_meant: bool) -> str:
    # A no-break space or a zero-width joiner is fine inside a text, but must be visible where it is the error.
    if is_meant and (not character.isprintable() or not _count_cells(character)):
        return character.encode("unicode_escape").decode()
    return visible_line(character)


def _count_cells(text: str) -> int:
    """Return the width of a text in terminal cells."""
    return sum(
        0
        if unicodedata.category(character) in {"Mn", "Me", "Cf"}
        else 1 + (unicodedata.east_asian_width(character) in "WF")
        for character in text
    )


# The longer marks first: one of UTF-32 begins with one of UTF-16.
_BYTE_ORDER_MARKS = {BOM_UTF32_LE: "UTF-32", BOM_UTF32_BE: "UTF-32", BOM_UTF16_LE: "UTF-16", BOM_UTF16_BE: "UTF-16"}


def encoding_error(path: Path, data: bytes, mark: int, offset: int, *, quote: bool) -> ConfigError:
    """Build the error for a file with a byte at `offset` that is not text, after a byte order mark of `mark` bytes."""
    # Bytes that are not text are shown as escapes. Everything before the first of them is text.
    lines = LineIndex(data[mark:].decode("utf-8", "backslashreplace"))
    place = len(data[mark:offset].decode("utf-8"))
    position = lines.position(place)
    encoding = _guess_encoding(data, offset)
    is_damage = encoding is None and data[offset] == 0
    return setting_error(
        path,
        lines if quote else LineIndex(cover_text(lines.text, place)),
        position,
        title=f"Invalid encoding in {path}",
        message=f"Byte 0x{data[offset]:02x} at offset {offset} is not {'text' if data[offset] == 0 else 'UTF-8'}"
        + (f"; the file looks like {encoding}" if encoding else ""),
        closing=f"{'Remove it' if is_damage else 'Save the file as UTF-8'} and try again.",
    )


def _guess_encoding(data: bytes, offset: int) -> str | None:
    """Return the probable encoding of a file that is not UTF-8 at `offset`, or None if it is rather damaged."""
    for mark, name in _BYTE_ORDER_MARKS.items():
        if data.startswith(mark):
            return name
    zero = data.find(0)
    if zero in (0, 1):
        # JSON begins with an ASCII character; it has zero bytes before it when big-endian, and after it otherwise.
        order = "LE" if zero else "BE"
        return next((name for name in ("UTF-32", "UTF-16") if _is_text(data, f"{name}-{order}")), None)
    if zero > 1:
        return None
    # Non-ASCII characters before the offset were valid UTF-8.
    return "Latin-1 or Windows-1252" if data[:offset].isascii() else None


def _is_text(data: bytes, encoding: str) -> bool:
    try:
        return "\0" not in data.decode(encoding)
    except UnicodeDecodeError:
        return False
