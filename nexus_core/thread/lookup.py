"""Going back through a thread: a few steps at a time, however long it is."""

from __future__ import annotations

from itertools import takewhile
from shlex import quote
from typing import TYPE_CHECKING

from nexus_core.errors import TurnError, UsageError
from nexus_core.ledger.threads import skip_reverted
from nexus_core.thread.arguments import read_text
from nexus_core.thread.turns import RecordedStep
from nexus_core.types.ledger import Step

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from nexus_core.types.ledger import Ledger, SessionRecord

STEPS_PER_READ = 500
"""So many steps are read in one go."""
_FEW = 50
"""Steps that are read in one go where a few will do."""


def walk_back(ledger: Ledger, tip: str | None, *, at_once: int = STEPS_PER_READ) -> Iterator[Step]:
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


MIN_ID_CHARACTERS = 4
"""Fewer characters name nothing; too many steps would have them."""
ID_CHARACTERS = 26
"""Characters of a whole name."""
MAX_LISTED_STEPS = 8
"""So many steps are listed of those that could be meant."""
_SIGNS = frozenset("0123456789ABCDEFGHJKMNPQRSTVWXYZ")


def read_step_id(given: object, name: str = "a step") -> str:
    """The name of a step, which may be given itself.

    Raises:
        UsageError: It is neither.
    """
    return read_text(
        given.id if isinstance(given, RecordedStep | Step) else given, name, hint="give a step, or its id: step.id"
    )


def find_step(ledger: Ledger, name: object, tip: Step | None = None) -> Step | None:
    """The step that is meant: the one of that name, or the only one whose name begins or ends so; None for none.

    Args:
        ledger: Where it is.
        name: Its name, or at least four characters of its beginning or end.
        tip: The newest step of the thread that it must be of; None for any in the ledger, all of which are looked at
            where the name is not a whole one.

    Raises:
        UsageError: It is no text, or several steps could be meant; it lists them.
    """
    given = read_step_id(name)
    step = ledger.step(given)
    if step is not None:
        return step if tip is None or is_in_thread(ledger, step, tip) else None
    found = find_steps_by_part(ledger, given, tip)
    if len(found) > 1:
        listed = ", ".join(each.id for each in found[:MAX_LISTED_STEPS]) + (
            ", …" if len(found) > MAX_LISTED_STEPS else ""
        )
        raise UsageError(f"{len(found):,} steps could be meant by {given!r}: {listed}", hint="give more of the name")
    return found[0] if found else None


def find_steps_by_part(ledger: Ledger, part: str, tip: Step | None) -> list[Step]:
    """The steps whose name begins or ends so; none where it can be no part of a name."""
    if not MIN_ID_CHARACTERS <= len(part) < ID_CHARACTERS or not _SIGNS.issuperset(part):
        return []
    steps: Iterable[Step] = ledger.steps() if tip is None else walk_back(ledger, tip.id)
    return sorted(
        (step for step in steps if step.id.startswith(part) or step.id.endswith(part)), key=lambda each: each.id
    )


def find_turn_steps(ledger: Ledger, first: Step) -> list[Step]:
    """The steps of the turn that begins with one, oldest first; the first alone where no session leads there."""
    for record in ledger.sessions(status=None):
        tip = None if record.tip is None else ledger.step(record.tip)
        if tip is not None and is_in_thread(ledger, first, tip):
            back = takewhile(lambda step: step.position >= first.position, walk_back(ledger, tip.id))
            return [step for step in back if step.turn == first.turn][::-1]
    return [first]


def find_turn_end(ledger: Ledger, record: SessionRecord, at: str) -> Step:
    """The step with which a closed turn of a session ended.

    Args:
        ledger: Where the session is.
        record: The session.
        at: The turn, or the step that ended it, by its name or a part of that.

    Raises:
        UsageError: There is no such step in the session's thread.
        TurnError: The turn is still open, or the step stands inside a turn.
    """
    tip = None if record.tip is None else ledger.step(record.tip)
    step = None if tip is None else find_step(ledger, at, tip)
    if step is None or tip is None:
        raise UsageError(
            f"there is no step {at!r} in session {record.label!r}",
            hint=f"`nexus session tree {quote(record.label)} --limit all` lists the turns to fork from",
        )
    if step.closes:
        return step
    end = next(each for each in walk_back(ledger, tip.id) if each.turn == step.turn)
    if not end.closes:
        hint = f"the last that is closed ended with step {record.head}" if record.head else "none is closed yet"
        raise TurnError(f"turn {step.turn} is still open", hint=hint)
    if step.id != step.turn:
        raise TurnError(
            f"step {step.id} stands inside a turn", hint=f"its turn is {step.turn}, which ended with {end.id}"
        )
    return end
