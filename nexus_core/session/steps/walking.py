"""Going back through a thread: a few steps at a time, however long it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nexus_core.values.ledger import Ledger, Step

AT_ONCE = 500
"""So many steps are read in one go."""


def walk_back(ledger: Ledger, tip: str | None, *, at_once: int = AT_ONCE) -> Iterator[Step]:
    """The steps of a thread, newest first; no more are read than are asked for, but for some."""
    name = tip
    while name is not None:
        steps = ledger.thread(name, limit=at_once)
        yield from reversed(steps)
        name = steps[0].parent


def is_in_thread(ledger: Ledger, step: Step, tip: Step) -> bool:
    """Whether a step is one of a thread, told from where its branches begin."""
    end: Step | None = tip
    while end is not None and end.branch != step.branch:
        first = ledger.step(end.branch)
        end = None if first is None or first.parent is None else ledger.step(first.parent)
    return end is not None and step.position <= end.position
