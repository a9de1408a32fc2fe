"""Layout of tables and sentences for a terminal of a given width.

A table that fits is printed as it is. Otherwise columns of text get narrower and wrap between words, and paths behind
a slash. Numbers, dates and words are never cut, except a word that is longer than the terminal is wide. If the columns
still do not fit side by side, the last ones move to further lines of each row, under headings that move along.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Sequence

COLUMN_GAP = "  "
_INDENT = "  "
"""Before the columns that have moved to a further line."""
_MIN_PATH_SLASHES = 2
"""A word with fewer slashes is not a path: `and/or`."""
_COMFORTABLE_WIDTHS = (24, 12, 0)
"""Least widths of a text column that are tried. One that gets less room moves to a further line."""
_MAX_COMPARED_ROWS = 100
"""Rows for which layouts are compared."""
_COMMAND = "nexus "
_PIECE_PATTERN = r"`[^`\n]*`\S*|\S+"
_LETTER_PATTERN = r"[^\W\d_]"


class TableLine(NamedTuple):
    """A line of a table.

    Attributes:
        row: The index of its row.
        cells: The column and the text of each cell, padded.
        is_moved: True if its columns did not fit beside the first ones.
    """

    row: int
    cells: tuple[tuple[int, str], ...]
    is_moved: bool = False

    @property
    def text(self) -> str:
        """The line without styles."""
        return COLUMN_GAP.join(text for _, text in self.cells).rstrip()


def measure_width(text: str) -> int:
    """Return how many cells of a terminal a text occupies. Many Asian characters and emoji occupy two."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def shorten_to_width(text: str, width: int) -> str:
    """Return a text, or its beginning and `…`, that occupies at most `width` cells of a terminal."""
    if measure_width(text) <= width:
        return text
    beginning = text[: _cut_at(text, width - 1)]
    return f"{beginning if measure_width(beginning) < width else ''}…"


def shorten_to_words(text: str, width: int) -> str:
    """Return a text, or its first words and `…`, that occupies at most `width` cells of a terminal.

    A word is cut only if less than half of the width would be left.
    """
    shown = shorten_to_width(text, width)
    if shown == text or text[len(shown) - 1].isspace():
        return shown
    words = shown[:-1].rpartition(" ")[0]
    return f"{words.rstrip()}…" if 2 * measure_width(words) >= width else shown


def wrap_line(line: str, width: int) -> list[str]:
    """Split a line between words, so that each part fits, and repeat its indentation.

    A command, in backticks or in a line of its own, is not split, so that it can be copied. What is longer than a line
    stays whole.
    """
    if measure_width(line) <= width or line.lstrip().startswith(_COMMAND):
        return [line]
    indent = line[: len(line) - len(line.lstrip())]
    if not line.strip() or len(indent) * 2 > width:
        return [line]
    lines, end = [indent], len(indent)
    for match in re.finditer(_PIECE_PATTERN, line):
        blanks = "" if lines[-1] == indent else line[end : match.start()]
        end = match.end()
        if blanks and measure_width(lines[-1] + blanks + match[0]) > width:
            lines.append(indent)
            blanks = ""
        lines[-1] += blanks + match[0]
    return lines


def lay_out_table(
    cells: Sequence[Sequence[str]], width: int | None, *, right: Container[int] = (), whole: Container[int] = ()
) -> Iterator[TableLine]:
    """Yield the lines of a table.

    Args:
        cells: The rows; each cell is one line.
        width: Cells of the terminal; None if lines may have any length, and a character counts as one cell.
        right: The columns that are aligned on the right.
        whole: The columns that move to a further line rather than wrap.
    """
    measure = len if width is None else measure_width
    natural = [max(map(measure, column)) for column in zip(*cells, strict=True)]
    groups, widths = [range(len(natural))], natural
    wrapped = [[[cell] for cell in row] for row in cells]
    if width is not None and _sum_widths(natural) > width:
        groups, widths = _choose_layout(cells, natural, width, whole)
        wrapped = [[_wrap_cell(cell, widths[column]) for column, cell in enumerate(row)] for row in cells]
        widths = [max(measure(line) for lines in column for line in lines) for column in zip(*wrapped, strict=True)]
    for index, row in enumerate(wrapped):
        for number, group in enumerate(groups):
            for place in range(max(len(row[column]) for column in group)):
                line = []
                for column in group:
                    text = row[column][place] if place < len(row[column]) else ""
                    blanks = " " * (widths[column] - measure(text))
                    line.append((column, blanks + text if column in right else text + blanks))
                line[0] = (line[0][0], _INDENT * (number > 0) + line[0][1])
                yield TableLine(index, tuple(line), is_moved=number > 0)


def _choose_layout(
    cells: Sequence[Sequence[str]], natural: Sequence[int], width: int, whole: Container[int]
) -> tuple[list[range], list[int]]:
    """Return the columns of each line of a row, and the width of every column, so that there are few lines."""
    smallest = [
        min(natural[index], width - len(_INDENT)) if index in whole else max(map(_find_smallest_width, column))
        for index, column in enumerate(zip(*cells, strict=True))
    ]
    sample = cells[:_MAX_COMPARED_ROWS]
    layouts = [
        _divide_columns(smallest, natural, width, comfortable=comfortable, is_fair=is_fair)
        for comfortable in _COMFORTABLE_WIDTHS
        for is_fair in (False, True)
    ]
    return min(layouts, key=lambda layout: _count_lines(sample, *layout))


def _count_lines(cells: Sequence[Sequence[str]], groups: Sequence[range], widths: Sequence[int]) -> int:
    return sum(
        max(len(_wrap_cell(row[column], widths[column])) for column in group) for row in cells for group in groups
    )


def _divide_columns(
    smallest: Sequence[int], natural: Sequence[int], width: int, *, comfortable: int, is_fair: bool
) -> tuple[list[range], list[int]]:
    # A column that must wrap looks better with some room, as long as it does not need more.
    wanted = [min(max(least, comfortable), most) for least, most in zip(smallest, natural, strict=True)]
    widths = [*natural]
    groups: list[range] = []
    start = 0
    while start < len(natural):
        room = width - (len(_INDENT) if groups else 0)
        end = start + 1
        while end < len(natural) and _sum_widths(wanted[start : end + 1]) <= room:
            end += 1
        groups.append(range(start, end))
        widths[start:end] = _share_room(wanted[start:end], natural[start:end], room, is_fair=is_fair)
        start = end
    return groups, widths


def _share_room(wanted: Sequence[int], natural: Sequence[int], width: int, *, is_fair: bool) -> list[int]:
    """Return the widths of columns in one line: each gets a share of the room, or those that need least all of it."""
    left = width - len(COLUMN_GAP) * (len(natural) - 1)
    if sum(wanted) > left:  # a single column, with a word that no line can hold
        return [max(left, 1)]
    widths = [*wanted]
    spare = left - sum(wanted)
    columns = sorted(range(len(natural)), key=lambda column: natural[column] - wanted[column])
    for place, column in enumerate(columns):
        share = spare // (len(columns) - place) if is_fair else spare
        more = min(natural[column] - wanted[column], share)
        widths[column] += more
        spare -= more
    return widths


def _find_smallest_width(cell: str) -> int:
    """Return the width of the longest part of a cell that cannot be wrapped."""
    return max(map(measure_width, _split_cell(cell)), default=0)


def _split_cell(cell: str) -> list[str]:
    """Return the parts of a cell between which it may be wrapped; blanks stay with the part before them."""
    if not re.search(_LETTER_PATTERN, cell):  # numbers, dates, ranges
        return [cell.strip()]
    parts: list[str] = []
    for word in cell.split():
        is_path = word.count("/") + word.count("\\") >= _MIN_PATH_SLASHES
        parts += re.findall(r"[^/\\]*[/\\]+|[^/\\]+", word) if is_path else [word]
    return parts


def _wrap_cell(cell: str, width: int) -> list[str]:
    """Return a cell in lines of at most `width`."""
    if measure_width(cell) <= width:
        return [cell]
    indent = " " * (len(cell) - len(cell.lstrip())) if len(cell) - len(cell.lstrip()) < width // 2 else ""
    lines, position = [indent], 0
    for part in _split_cell(cell):
        begin = cell.index(part, position)
        blanks = "" if lines[-1] == indent else cell[position:begin]
        position = begin + len(part)
        if lines[-1] != indent and measure_width(lines[-1] + blanks + part) > width:
            lines.append(indent)
            blanks = ""
        lines[-1] += blanks + part
        while measure_width(lines[-1]) > width:
            kept = _cut_at(lines[-1], width)
            lines[-1:] = [lines[-1][:kept], indent + lines[-1][kept:]]
    return lines


def _cut_at(text: str, width: int) -> int:
    """Return how many characters of a text fit, at least one."""
    end = min(len(text), max(width, 1))
    while end > 1 and measure_width(text[:end]) > width:
        end -= 1
    return end


def _sum_widths(widths: Sequence[int]) -> int:
    return sum(widths) + len(COLUMN_GAP) * (len(widths) - 1)
