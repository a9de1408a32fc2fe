"""Running totals of turns, tokens and usage, stored with each step so that no caller reads the whole thread."""

from __future__ import annotations

from dataclasses import fields
from operator import attrgetter
from typing import TYPE_CHECKING

from nexus_core.history.groups import is_session_start
from nexus_core.ledger.threads import is_import_revert
from nexus_core.thread.lookup import find_reverted
from nexus_core.thread.turns import get_step_usage, read_usage
from nexus_core.types.messages import Usage

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nexus_core.thread.cache import ThreadCache
    from nexus_core.types.ledger import Ledger, NewStep, Step

TOKENS_FIELD = "all_tokens"
MARKER_KINDS = ("compaction", "revert", "pin")
"""Kinds of steps without messages of their own; a turn of one such step is not counted."""
CONTINUES_FIELD = "continues"
"""Set in the data of an imported turn that continues the one before: the program stored one exchange in pieces."""
_USAGE_FIELDS = tuple(field.name for field in fields(Usage))
_get_numbers = attrgetter(*_USAGE_FIELDS)


# ---- turns ----------------------------------------------------------------------------------------------------------


def add_turn(tip: Step | NewStep | None, step: NewStep) -> dict[str, object]:
    """Return the `turns` field of a step after `tip`; empty if `tip` has none."""
    before = 0 if tip is None else tip.data.get("turns")
    if not isinstance(before, int):
        return {}
    return {"turns": before + ((tip is None or tip.closes) and counts_as_turn(step))}


def count_turns(cache: ThreadCache, tip: Step) -> int:
    """Return the number of turns up to `tip`.

    The newest stored total and the turns since, so that few steps are read.
    """
    if isinstance(stored := tip.data.get("turns"), int):
        return stored  # no other step is read

    def has_total(steps: Sequence[Step]) -> bool:
        return any("turns" in step.data for step in steps)

    turns = 0
    for step in reversed(cache.read_newest(tip.id, has_total)):
        if isinstance(total := step.data.get("turns"), int):
            return turns + total
        turns += opens_turn(step)
    return turns


def count_ledger_turns(ledger: Ledger) -> int:
    """Return the number of turns of all sessions. Each counts once, and what an import took back does not."""
    turns = 0
    for step in ledger.steps():
        turns += opens_turn(step)
        if is_import_revert(step):
            # Steps of another branch are part of another session, too.
            turns -= sum(opens_turn(each) for each in find_reverted(ledger, step) if each.branch == step.branch)
    return turns


def opens_turn(step: Step) -> bool:
    """True if a step opens a turn that is counted."""
    return step.id == step.turn and counts_as_turn(step) and not continues_turn(step)


def counts_as_turn(step: Step | NewStep) -> bool:
    """True if a turn that starts with such a step is counted.

    Instructions and the session start get no reply, so they are not.
    """
    return step.kind not in MARKER_KINDS and not is_unanswered_input(step)


def is_unanswered_input(step: Step | NewStep) -> bool:
    """True if a step only has system messages or the session start, which get no reply."""
    is_closed_input = step.kind == "input" and step.closes and bool(step.messages)
    return is_closed_input and all(message.role == "system" or is_session_start(message) for message in step.messages)


def continues_turn(step: Step | NewStep) -> bool:
    """True if a step continues the turn before its own."""
    return step.kind in ("turn", "reply") and step.data.get(CONTINUES_FIELD) is True


def is_session_start_step(step: Step) -> bool:
    """True if a step only holds the time at which the session started."""
    return step.closes and step.parent is None and any(map(is_session_start, step.messages))


def get_parent_turn(cache: ThreadCache, parent: str | None) -> str | None:
    """Return the turn of a parent step; None for the first turn of a session."""
    before = None if parent is None else cache.get_step(parent)
    return None if before is None or is_session_start_step(before) else before.turn


# ---- tokens ---------------------------------------------------------------------------------------------------------


def add_tokens(tip: Step | NewStep | None, step: NewStep) -> dict[str, object]:
    """Return the total tokens of a step after `tip`; empty if `tip` has no total.

    The ledger's own sum, `total`, restarts with each counter; this one covers all of them.
    """
    before = 0 if tip is None else tip.data.get(TOKENS_FIELD)
    return {TOKENS_FIELD: before + step.tokens} if isinstance(before, int) else {}


def count_tokens(cache: ThreadCache, tip: Step) -> int:
    """Return the tokens of a thread up to `tip`.

    The newest stored total and the steps since.
    """

    def has_total(steps: Sequence[Step]) -> bool:
        return any(TOKENS_FIELD in step.data for step in steps)

    tokens = 0
    for step in reversed(cache.read_newest(tip.id, has_total)):
        if isinstance(total := step.data.get(TOKENS_FIELD), int):
            return tokens + total
        tokens += step.tokens
    return tokens


# ---- usage ----------------------------------------------------------------------------------------------------------


def add_spent(tip: Step | NewStep | None, step: NewStep) -> dict[str, object]:
    """Return the `spent` field of a step after `tip`; empty if `tip` has none."""
    before = Usage() if tip is None else read_usage(tip.data.get("spent"))
    if before is None:
        return {}
    now = read_usage(step.data.get("usage"))
    return {"spent": usage_to_json(add_usages([before, now]) if now else before)}


def sum_usage(cache: ThreadCache, tip: Step) -> Usage:
    """Return the usage of a thread up to `tip`.

    The newest stored total and the calls since.
    """

    def has_total(steps: Sequence[Step]) -> bool:
        return any("spent" in step.data for step in steps)

    usages: list[Usage] = []
    for step in reversed(cache.read_newest(tip.id, has_total)):
        if (spent := read_usage(step.data.get("spent"))) is not None:
            usages.append(spent)
            break
        if (usage := get_step_usage(step)) is not None:
            usages.append(usage)
    return add_usages(usages)


def add_usages(usages: Iterable[Usage]) -> Usage:
    """Return the sum of usages."""
    columns = zip(*map(_get_numbers, usages), strict=True)
    return Usage(**dict(zip(_USAGE_FIELDS, map(sum, columns), strict=False)))


def subtract_usage(spent: Usage, usage: Usage) -> Usage:
    """Return a total without the usage of one call; no field drops below zero."""
    numbers = (max(total - part, 0) for total, part in zip(_get_numbers(spent), _get_numbers(usage), strict=True))
    return Usage(**dict(zip(_USAGE_FIELDS, numbers, strict=True)))


def usage_to_json(usage: Usage) -> dict[str, int]:
    """Return a usage as it is stored."""
    return dict(zip(_USAGE_FIELDS, _get_numbers(usage), strict=True))
