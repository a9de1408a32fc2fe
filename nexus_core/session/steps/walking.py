"""Going back through a thread: a few steps at a time, however long it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.ledger.threads import skip_reverted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nexus_core.types.ledger import Ledger, Step

AT_ONCE = 500
"""So many steps are read in one go."""
_FEW = 50
"""Steps that are read in one go where a few will do."""


def walk_back(ledger: Ledger, tip: str | None, *, at_once: int = AT_ONCE) -> Iterator[Step]:
    """The steps of a thread, newest first; no more are read than are asked for, but for some."""
    name = tip
    while name is not None:
        steps = ledger.thread(name, limit=at_once)
        yield from reversed(steps)
        name = steps[0].parent


def find_reverted(ledger: Ledger, revert: Step) -> list[Step]:
    """Return the steps that an import took back by a step, newest first."""
    found: list[Step] = []
    left = int(str(revert.data["popped"]))
    for step in skip_reverted(walk_back(ledger, revert.parent, at_once=_FEW)):
        if left <= 0:
            break
        if step.messages:
            found.append(step)
            left -= len(step.messages)
    return found


def is_in_thread(ledger: Ledger, step: Step, tip: Step) -> bool:
    """Whether a step is one of a thread, told from where its branches begin."""
    end: Step | None = tip
    while end is not None and end.branch != step.branch:
        first = ledger.step(end.branch)
        end = None if first is None or first.parent is None else ledger.step(first.parent)
    return end is not None and step.position <= end.position
