"""How many turns a thread has and what they take: written down with every step, so that nobody has to read it all."""

from __future__ import annotations

from dataclasses import fields
from operator import attrgetter
from typing import TYPE_CHECKING

from nexus_core.history.groups import is_session_start
from nexus_core.thread.turns import get_step_usage, read_usage
from nexus_core.types.messages import Usage

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nexus_core.thread.cache import ThreadCache
    from nexus_core.types.ledger import NewStep, Step

TOKENS_FIELD = "all_tokens"
MARKER_KINDS = ("compaction", "revert", "pin")
"""Steps that say nothing by themselves; a turn that consists of one is not counted."""
CONTINUES_FIELD = "continues"
"""In the data of a turn that goes on with the one before it: a program kept one exchange in several pieces."""


def add_turn(tip: Step | NewStep | None, step: NewStep) -> dict[str, object]:
    """The number that a step behind another writes down; nothing behind steps that have none."""
    before = 0 if tip is None else tip.data.get("turns")
    if not isinstance(before, int):
        return {}
    return {"turns": before + ((tip is None or tip.closes) and counts_as_turn(step))}


def count_turns(cache: ThreadCache, tip: Step) -> int:
    """The number that is written down, and the turns since; where there is none, as many as all steps say."""
    if isinstance(written := tip.data.get("turns"), int):
        return written  # whatever lies around it need not be read

    def is_numbered(steps: Sequence[Step]) -> bool:
        return any("turns" in step.data for step in steps)

    found = 0
    for step in reversed(cache.read_newest(tip.id, is_numbered)):
        if isinstance(number := step.data.get("turns"), int):
            return found + number
        found += opens_turn(step)
    return found


def add_tokens(tip: Step | NewStep | None, step: NewStep) -> dict[str, object]:
    """The sum of tokens that a step behind another writes down; nothing behind steps that have none.

    The ledger's own sum, `total`, begins anew with each counter; this one is of all of them.
    """
    before = 0 if tip is None else tip.data.get(TOKENS_FIELD)
    return {TOKENS_FIELD: before + step.tokens} if isinstance(before, int) else {}


def count_tokens(cache: ThreadCache, tip: Step) -> int:
    """The sum that is written down, and what was added since; where there is none, what all steps say."""

    def is_summed(steps: Sequence[Step]) -> bool:
        return any(TOKENS_FIELD in step.data for step in steps)

    found = 0
    for step in reversed(cache.read_newest(tip.id, is_summed)):
        if isinstance(number := step.data.get(TOKENS_FIELD), int):
            return found + number
        found += step.tokens
    return found


def opens_turn(step: Step) -> bool:
    """Whether a turn that counts begins with a step."""
    return step.id == step.turn and counts_as_turn(step) and not continues_turn(step)


def counts_as_turn(step: Step | NewStep) -> bool:
    """True if a turn that begins with such a step counts; nobody replies to instructions or to the start alone."""
    if step.kind in MARKER_KINDS:
        return False
    is_told = step.kind == "input" and step.closes and bool(step.messages)
    return not (is_told and all(message.role == "system" or is_session_start(message) for message in step.messages))


def is_session_start_step(step: Step) -> bool:
    """True for the step that holds nothing but the time at which the session started."""
    return step.closes and step.parent is None and any(map(is_session_start, step.messages))


def get_parent_turn(cache: ThreadCache, parent: str | None) -> str | None:
    """Return the turn of a step's parent; None for the first turn, also behind the start of the session."""
    before = None if parent is None else cache.get_step(parent)
    return None if before is None or is_session_start_step(before) else before.turn


def continues_turn(step: Step | NewStep) -> bool:
    """Whether a step goes on with the turn before its own."""
    return step.kind in ("turn", "reply") and step.data.get(CONTINUES_FIELD) is True


_NAMES = tuple(field.name for field in fields(Usage))
_numbers = attrgetter(*_NAMES)


def add_usages(usages: Iterable[Usage]) -> Usage:
    """What calls cost together."""
    columns = zip(*map(_numbers, usages), strict=True)
    return Usage(**dict(zip(_NAMES, map(sum, columns), strict=False)))


def subtract_usage(spent: Usage, usage: Usage) -> Usage:
    """Return a sum without one of the calls in it."""
    numbers = (max(all_ - one, 0) for all_, one in zip(_numbers(spent), _numbers(usage), strict=True))
    return Usage(**dict(zip(_NAMES, numbers, strict=True)))


def usage_to_json(usage: Usage) -> dict[str, int]:
    """What a call cost, as it is written down."""
    return dict(zip(_NAMES, _numbers(usage), strict=True))


def add_spent(tip: Step | NewStep | None, step: NewStep) -> dict[str, object]:
    """The sum that a step behind another writes down; nothing behind steps that have none."""
    before = Usage() if tip is None else read_usage(tip.data.get("spent"))
    if before is None:
        return {}
    now = read_usage(step.data.get("usage"))
    return {"spent": usage_to_json(add_usages([before, now]) if now else before)}


def sum_usage(cache: ThreadCache, tip: Step) -> Usage:
    """The sum that is written down, and what was spent since; where there is none, what all steps say."""

    def is_summed(steps: Sequence[Step]) -> bool:
        return any("spent" in step.data for step in steps)

    found: list[Usage] = []
    for step in reversed(cache.read_newest(tip.id, is_summed)):
        if (spent := read_usage(step.data.get("spent"))) is not None:
            found.append(spent)
            break
        if (usage := get_step_usage(step)) is not None:
            found.append(usage)
    return add_usages(found)
