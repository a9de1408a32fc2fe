"""A tree of turns as text: one line for each that is remarkable, a number for the others between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.text.console import counted
from nexus_core.text.visible import shortened, visible_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from nexus_core.cli.session.branches import Item, Line, Noted

_DEEPEST = 20
"""Branches of branches of branches stand no farther to the right than that."""
_SHORTEST = 20
_GAP = "  "
_SIGNS = {"turn": "*", "compaction": "#", "revert": "~", "pin": "^", "start": "-", "damaged": "!"}


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
    sign = "o" if item.is_open else _SIGNS[item.kind]
    about = [f"({', '.join(words)})"] if (words := [*_remarks(item)]) else []
    about += [f"<- {visible_line(', '.join(item.sessions))}"] if item.sessions else []
    room = max(width - len(_GAP.join((f"{sign} {item.turn}", "", *about))), _SHORTEST)
    said = shortened(visible_line(item.said), room)
    return _GAP.join(filter(None, (f"{sign} {item.turn}", said, *about)))


def _remarks(item: Noted) -> Iterator[str]:
    if item.kind != "turn":
        yield item.kind
    if item.is_compacted:
        yield "compacted"
    if item.is_open:
        yield "open"
