"""Which steps a compaction stands for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.errors import UsageError
from nexus_core.thread.lookup import find_step
from nexus_core.thread.projection import holds_turn_input
from nexus_core.thread.totals import MARKER_KINDS

if TYPE_CHECKING:
    from nexus_core.types.ledger import Ledger, Step


def list_covered_steps(ledger: Ledger, name: str) -> tuple[Step, ...]:
    """The steps that a compaction stands for, oldest first; what an earlier one stands for is not among them.

    Raises:
        UsageError: There is no such compaction, or several whose name begins or ends so.
    """
    compaction = find_step(ledger, name)
    if compaction is None or compaction.kind != "compaction":
        what = f"there is no step {name!r}" if compaction is None else f"step {compaction.id} is no compaction"
        raise UsageError(what, hint="`nexus session tree NAME` marks the compactions of a session with #")
    if compaction.parent is None:
        return ()
    steps = ledger.thread(compaction.parent, first=_beginning(ledger, compaction))
    end, stays = _end(ledger, compaction), _stays(ledger, compaction)
    return tuple(
        step for step in steps if step.position < end and step.kind not in MARKER_KINDS and step.id not in stays
    )


def is_covered(ledger: Ledger, step: Step, name: str | None) -> bool:
    """Whether a compaction, or one before it, stands for a step of its thread."""
    compaction = None if name is None else ledger.step(name)
    if compaction is None or step.position >= _end(ledger, compaction):
        return False
    return step.id not in _stays(ledger, compaction)


def _beginning(ledger: Ledger, compaction: Step) -> str | None:
    """Where what an earlier compaction kept begins; None where there is none."""
    before = None if compaction.parent is None else ledger.step(compaction.parent)
    earlier = None if before is None or before.compaction is None else ledger.step(before.compaction)
    if earlier is None:
        return None
    first = earlier.data.get("first_kept")
    return first if isinstance(first, str) else earlier.id


def _end(ledger: Ledger, compaction: Step) -> int:
    """The position from which on everything stays."""
    first = compaction.data.get("first_kept")
    kept = ledger.step(first) if isinstance(first, str) else None
    return compaction.position if kept is None else kept.position


def _stays(ledger: Ledger, compaction: Step) -> set[str]:
    """What stays although it stands before that: pinned steps, and what the turn is about in which it begins."""
    pinned, first = compaction.data.get("pinned"), compaction.data.get("first_kept")
    stays = set(map(str, pinned)) if isinstance(pinned, list) else set()
    kept = ledger.step(first) if isinstance(first, str) else None
    if kept is not None and kept.id != kept.turn:
        stays |= {step.id for step in ledger.thread(kept.id, first=kept.turn) if holds_turn_input(step)}
    return stays
