"""What calls cost: written down with every step as a running sum, so that nobody has to read a thread to know."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import TYPE_CHECKING

from nexus_core.session.turns import read_usage, usage_of
from nexus_core.values.conversation import Usage

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nexus_core.session.tail import Tail
    from nexus_core.values.ledger import NewStep, Step


def added(usages: Iterable[Usage]) -> Usage:
    """What calls cost together."""
    usages = tuple(usages)
    return Usage(**{each.name: sum(getattr(usage, each.name) for usage in usages) for each in fields(Usage)})


def spent_with(tip: Step | None, step: NewStep) -> dict[str, object]:
    """The sum that a step behind another writes down; nothing behind steps that have none."""
    before = Usage() if tip is None else read_usage(tip.data.get("spent"))
    if before is None:
        return {}
    now = read_usage(step.data.get("usage"))
    return {"spent": asdict(added([before, now] if now else [before]))}


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
