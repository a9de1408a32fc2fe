"""Tables of tokens with bars, as wide as the terminal allows."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.cli.tables import right_aligned
from nexus_core.text.console import share
from nexus_core.text.visible import shortened, visible_line

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    console: Console, heading: tuple[str, ...], rows: Sequence[Row], total: int, share_of: str = "SHARE"
) -> None:
    """Print a table: names, tokens, shares of `total`, bars up to the largest; nothing for no rows.

    Args:
        console: Where to print.
        heading: What the names, the further columns and the remarks are.
        rows: The lines.
        total: What all of it takes.
        share_of: The heading of the shares.
    """
    if not rows:
        return
    name, *columns = heading
    numbers = len(rows[0].numbers)
    head = [name, "TOKENS", share_of, *columns[:numbers]]
    cells = [[_in_room(row.name, _NAME), f"{row.tokens:,}", share(row.tokens, total), *row.numbers] for row in rows]
    aligned = right_aligned([head, *cells], range(1, len(head)))
    taken = sum(max(map(len, column)) + _GAP for column in zip(*aligned, strict=True))
    bar = _bar_width(taken, remarks=any(row.remark for row in rows))
    largest = max(row.tokens for row in rows)
    lines = [[*aligned[0], "", *columns[numbers:]]]
    for row, line in zip(rows, aligned[1:], strict=True):
        drawn = "#" * round(bar * row.tokens / largest) if largest else ""
        lines.append([*line, drawn, _in_room(row.remark, line_width() - taken - _GAP - bar)])
    console.text("")
    console.table([line[: len(head) + 1 + bool(columns[numbers:])] for line in lines], styles=["bold"])


def _bar_width(taken: int, *, remarks: bool) -> int:
    free = line_width() - taken - _GAP
    return max(_NARROWEST, min(_WIDEST, free // 3 if remarks else free))


def line_width() -> int:
    """How wide a line may be: as the terminal is, if there is one."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else PLAIN_WIDTH


def _in_room(text: str, room: int) -> str:
    return shortened(visible_line(text), room)
