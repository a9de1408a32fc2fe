"""Tables of tokens with bars, as wide as the terminal allows."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.cli.tables import right_aligned
from nexus_core.text.console import share
from nexus_core.text.visible import shortened, visible_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nexus_core.text.console import Console

PLAIN_WIDTH = 100
"""The width of a line where no terminal has one."""
_GAP = 2
_NARROWEST, _WIDEST = 8, 40
_NAME = 32
"""How much of a name is shown."""


class Row(NamedTuple):
    """A line of a table.

    Attributes:
        name: What it is about.
        tokens: What that takes.
        numbers: Further columns, right-aligned.
        remark: What stands behind the bar, cut where the line ends.
    """

    name: str
    tokens: int
    numbers: tuple[str, ...] = ()
    remark: str = ""


def print_bars(
    console: Console,
    heading: tuple[str, ...],
    rows: Sequence[Row],
    total: int,
    *,
    share_of: str = "SHARE",
    sum_name: str = "total",
) -> None:
    """Print a table of tokens, their shares of `total` and bars as long as the shares; nothing for no rows.

    A full bar is the whole of `total`. The last line has the sum of the others.

    Args:
        console: Where to print.
        heading: The headings of the names, the further columns and the remarks.
        rows: The lines.
        total: The tokens that shares are of.
        share_of: The heading of the shares.
        sum_name: The name of the last line.
    """
    if not rows:
        return
    rows = [*rows, Row(sum_name, sum(row.tokens for row in rows), ("",) * len(rows[0].numbers))]
    name, *columns = heading
    numbers = len(rows[0].numbers)
    head = [name, "TOKENS", share_of, *columns[:numbers]]
    cells = [[_in_room(row.name, _NAME), f"{row.tokens:,}", share(row.tokens, total), *row.numbers] for row in rows]
    aligned = right_aligned([head, *cells], range(1, len(head)))
    taken = sum(max(map(len, column)) + _GAP for column in zip(*aligned, strict=True))
    bar = _bar_width(taken, remarks=any(row.remark for row in rows))
    bars = ["#" * min(round(bar * row.tokens / total), bar) if total else "" for row in rows[:-1]]
    room = line_width() - taken - _GAP - max(map(len, bars))
    lines = [[*aligned[0], "", *columns[numbers:]]]
    for row, line, drawn in zip(rows[:-1], aligned[1:-1], bars, strict=True):
        lines.append([*line, drawn, _in_room(row.remark, room)])
    lines.append([*aligned[-1], "", ""])
    console.text("")
    console.table([line[: len(head) + 1 + bool(columns[numbers:])] for line in lines], styles=["bold"])


def limit_rows(rows: Iterable[Row], limit: int, noun: str) -> list[Row]:
    """Return the rows with the most tokens, of equal ones the earlier first, and the others in one row.

    Args:
        rows: All rows.
        limit: How many to list; 0 lists nothing.
        noun: The name of one of them: "message".
    """
    ranked = sorted(rows, key=lambda row: -row.tokens)
    listed, others = ranked[:limit], ranked[limit:]
    if listed and others:
        more = f"{len(others):,} more {noun}{'s' * (len(others) > 1)}"
        listed.append(Row(more, sum(row.tokens for row in others), ("",) * len(listed[0].numbers)))
    return listed


def _bar_width(taken: int, *, remarks: bool) -> int:
    free = line_width() - taken - _GAP
    return max(_NARROWEST, min(_WIDEST, free // 3 if remarks else free))


def line_width() -> int:
    """How wide a line may be: as the terminal is, if there is one."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else PLAIN_WIDTH


def _in_room(text: str, room: int) -> str:
    return shortened(visible_line(text), room)
