"""Going back through a thread: a few steps at a time, however long it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.errors import TurnError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nexus_core.values.ledger import Ledger, SessionRecord, Step

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


def end_of_turn(ledger: Ledger, record: SessionRecord, at: str) -> Step:
    """The step with which a closed turn of a session ended.

    Args:
        ledger: Where the session is.
        record: The session.
        at: The turn, or the step that ended it.

    Raises:
        UsageError: There is no such step in the session's thread.
        TurnError: The turn is still open, or the step stands inside a turn.
    """
    step, tip = ledger.step(at), None if record.tip is None else ledger.step(record.tip)
    if step is None or tip is None or not is_in_thread(ledger, step, tip):
        raise UsageError(
            f"there is no step {at!r} in session {record.label!r}", hint="`nexus session tree` lists those to fork from"
        )
    if step.closes:
        return step
    end = next(each for each in walk_back(ledger, tip.id) if each.turn == step.turn)
    if not end.closes:
        hint = f"the last that is closed ended with step {record.head}" if record.head else "none is closed yet"
        raise TurnError(f"turn {step.turn} is still open", hint=hint)
    if step.id != step.turn:
        raise TurnError(f"step {at} stands inside a turn", hint=f"its turn is {step.turn}, which ended with {end.id}")
    return end
