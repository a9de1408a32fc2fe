"""A tree of turns as text: one line for each that is remarkable, a number for the others between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.text.console import counted
from nexus_core.text.visible import visible_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from nexus_core.cli.session.branches import Item, Line, Noted

_DEEPEST = 20
"""Branches of branches of branches stand no farther to the right than that."""
_SHORTEST = 20
_SIGNS = {"turn": "*", "compaction": "#", "revert": "~"}


def draw(lines: Mapping[str, Line], root: str, width: int) -> Iterator[str]:
    """The lines of a tree, oldest first; what forks is drawn before the branch it left goes on.

    Args:
        lines: The branches, by their names.
        root: The first of them.
        width: Columns there are.
    """
    # Not by calling itself: a conversation may be a fork of a fork of a fork, deeper than Python goes.
    stack = [(0, iter(lines[root].items))]
    while stack:
        depth, items = stack[-1]
        item = next(items, None)
        if item is None:
            stack.pop()
            if stack and stack[-1][0] == depth:  # another that left from the same turn
                yield f"{_before(depth - 1)}|\\"
            continue
        yield _before(depth) + _drawn(item, width - len(_before(depth)))
        forks = () if isinstance(item, int) else item.forks
        if forks:
            yield f"{_before(depth)}|\\"
        stack += [(depth + 1, iter(lines[name].items)) for name in reversed(forks)]


def _before(depth: int) -> str:
    return "| " * depth if depth <= _DEEPEST else "| " * _DEEPEST + f"({depth}) "


def _drawn(item: Item, width: int) -> str:
    if isinstance(item, int):
        return f": {counted(item, 'turn')}"
    about = _about(item)
    line = f"{'o' if item.is_open else _SIGNS[item.kind]} {item.turn}  "
    room = max(width - len(line) - len(about), _SHORTEST)
    said = visible_line(item.said)
    return (line + (said if len(said) <= room else f"{said[: room - 1]}…") + about).rstrip()


def _about(item: Noted) -> str:
    words = [item.kind] if item.kind != "turn" else []
    words += ["compacted"] if item.is_compacted else []
    words += ["open"] if item.is_open else []
    notes = f"  ({', '.join(words)})" if words else ""
    return notes + (f"  <- {visible_line(', '.join(item.sessions))}" if item.sessions else "")
