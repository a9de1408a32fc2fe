"""Tables with numbers in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container, Sequence


def right_aligned(rows: Sequence[Sequence[str]], places: Container[int]) -> list[tuple[str, ...]]:
    """Rows with the cells of some columns on their right, the heading's included."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        tuple(
            cell.rjust(width) if place in places else cell
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
