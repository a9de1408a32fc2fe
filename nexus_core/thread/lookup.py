"""Steps of a ledger by id or part of an id, and turns by their steps."""

from __future__ import annotations

from itertools import takewhile
from shlex import quote
from typing import TYPE_CHECKING

from nexus_core.dialects.fields import read_text
from nexus_core.errors import TurnError, UsageError
from nexus_core.ledger.ledger import walk_back
from nexus_core.thread.state import RecordedStep
from nexus_core.types.ledger import Step

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from nexus_core.types.ledger import Ledger, SessionRecord

MIN_ID_CHARACTERS = 4
"""A shorter part would match too many steps."""
ID_CHARACTERS = 26
"""Characters of a whole id."""
MAX_LISTED_STEPS = 8
"""Candidates that the error for an ambiguous part lists."""
_ID_ALPHABET = frozenset("0123456789ABCDEFGHJKMNPQRSTVWXYZ")


def find_step(ledger: Ledger, name: object, tip: Step | None = None) -> Step | None:
    """Return the step with an id or a unique part of one; None if there is none.

    Args:
        ledger: The ledger to search.
        name: A step, its id, or at least four characters of the start or the end of its id.
        tip: The newest step of the thread to search; None for the whole ledger, which is scanned for a part of an id.

    Raises:
        UsageError: The id is not a text, or several steps match; the error lists them.
    """
    wanted = read_step_id(name)
    step = ledger.step(wanted)
    if step is not None:
        return step if tip is None or is_in_thread(ledger, step, tip) else None
    candidates = find_steps_by_part(ledger, wanted, tip)
    if len(candidates) > 1:
        listed = ", ".join(each.id for each in candidates[:MAX_LISTED_STEPS]) + (
            ", …" if len(candidates) > MAX_LISTED_STEPS else ""
        )
        raise UsageError(
            f"{len(candidates):,} steps could be meant by {wanted!r}: {listed}", hint="give more of the name"
        )
    return candidates[0] if candidates else None


def read_step_id(value: object, name: str = "a step") -> str:
    """Return the id of a step that is passed itself or by its id.

    Raises:
        UsageError: The value is neither.
    """
    return read_text(
        value.id if isinstance(value, RecordedStep | Step) else value, name, hint="give a step, or its id: step.id"
    )


def find_steps_by_part(ledger: Ledger, part: str, tip: Step | None) -> list[Step]:
    """Return the steps whose id starts or ends with a part, sorted by id.

    None for a text that cannot be part of an id.
    """
    if not MIN_ID_CHARACTERS <= len(part) < ID_CHARACTERS or not _ID_ALPHABET.issuperset(part):
        return []
    steps: Iterable[Step] = ledger.steps() if tip is None else walk_back(ledger, tip.id)
    return sorted(
        (step for step in steps if step.id.startswith(part) or step.id.endswith(part)), key=lambda each: each.id
    )


def is_in_thread(ledger: Ledger, step: Step, tip: Step) -> bool:
    """True if a step belongs to the thread that ends in `tip`.

    Reads one or two steps for each branch in between.
    """
    end = next((each for each in _walk_branch_ends(ledger, tip) if each.branch == step.branch), None)
    return end is not None and step.position <= end.position


def _walk_branch_ends(ledger: Ledger, tip: Step) -> Iterator[Step]:
    """Yield the last step of a thread on each of its branches, newest first."""
    end: Step | None = tip
    seen: set[str] = set()
    while end is not None and end.branch not in seen:  # a damaged ledger may have a circle
        seen.add(end.branch)
        yield end
        first = ledger.step(end.branch)
        end = None if first is None or first.parent is None else ledger.step(first.parent)


def find_sessions_with(ledger: Ledger, steps: Collection[Step]) -> Iterator[tuple[SessionRecord, list[Step]]]:
    """Yield the sessions that have some steps, each with these; forks share steps."""
    for record in ledger.sessions(status=None) if steps else ():
        tip = None if record.tip is None else ledger.step(record.tip)
        ends = {} if tip is None else {end.branch: end.position for end in _walk_branch_ends(ledger, tip)}
        if inside := [step for step in steps if step.position <= ends.get(step.branch, -1)]:
            yield record, inside


def find_turn_steps(ledger: Ledger, first: Step) -> list[Step]:
    """Return the steps of the turn that `first` opens, oldest first.

    Only `first` if no session's thread contains it.
    """
    for record, _ in find_sessions_with(ledger, [first]):
        back = takewhile(lambda step: step.position >= first.position, walk_back(ledger, record.tip or ""))
        return [step for step in back if step.turn == first.turn][::-1]
    return [first]


def find_turn_end(ledger: Ledger, record: SessionRecord, at: str) -> Step:
    """Return the last step of a closed turn of a session.

    Args:
        ledger: The ledger of the session.
        record: The session.
        at: The turn or its last step: an id, or a part of one.

    Raises:
        UsageError: The session's thread has no such step.
        TurnError: The turn is still open, or the step is neither its first nor its last.
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
        raise TurnError(f"step {step.id} is inside a turn", hint=f"its turn is {step.turn}, which ended with {end.id}")
    return end
