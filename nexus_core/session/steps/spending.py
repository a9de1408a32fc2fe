"""What calls cost: written down with every step as a running sum, so that nobody has to read a thread to know."""

from __future__ import annotations

from dataclasses import fields
from operator import attrgetter
from typing import TYPE_CHECKING

from nexus_core.session.steps.turns import read_usage, usage_of
from nexus_core.types.messages import Usage

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nexus_core.session.steps.tail import Tail
    from nexus_core.types.ledger import NewStep, Step


_NAMES = tuple(field.name for field in fields(Usage))
_numbers = attrgetter(*_NAMES)


def added(usages: Iterable[Usage]) -> Usage:
    """What calls cost together."""
    columns = zip(*map(_numbers, usages), strict=True)
    return Usage(**dict(zip(_NAMES, map(sum, columns), strict=False)))


def subtract_usage(spent: Usage, usage: Usage) -> Usage:
    """Return a sum without one of the calls in it."""
    numbers = (max(all_ - one, 0) for all_, one in zip(_numbers(spent), _numbers(usage), strict=True))
    return Usage(**dict(zip(_NAMES, numbers, strict=True)))


def written(usage: Usage) -> dict[str, int]:
    """What a call cost, as it is written down."""
    return dict(zip(_NAMES, _numbers(usage), strict=True))


def spent_with(tip: Step | NewStep | None, step: NewStep) -> dict[str, object]:
    """The sum that a step behind another writes down; nothing behind steps that have none."""
    before = Usage() if tip is None else read_usage(tip.data.get("spent"))
    if before is None:
        return {}
    now = read_usage(step.data.get("usage"))
    return {"spent": written(added([before, now]) if now else before)}


def spent_until(tail: Tail, tip: Step) -> Usage:
    """The sum that is written down, and what was spent since; where there is none, what all steps say."""

    def is_summed(steps: Sequence[Step]) -> bool:
        return any("spent" in step.data for step in steps)

    found: list[Usage] = []
    for step in reversed(tail.newest(tip.id, is_summed)):
        if (spent := read_usage(step.data.get("spent"))) is not None:
            found.append(spent)
            break
        if (usage := usage_of(step)) is not None:
            found.append(usage)
    return added(found)
