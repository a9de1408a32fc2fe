"""Takes a compaction back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.errors import TurnError
from nexus_core.session.thread.appending import RecordedBefore, append
from nexus_core.types.compaction import RevertedCompaction
from nexus_core.types.ledger import NewStep

if TYPE_CHECKING:
    from nexus_core.session.compacting.compact import CompactionThread
    from nexus_core.session.drivers import Work
    from nexus_core.session.steps.state import State
    from nexus_core.session.steps.tail import Tail
    from nexus_core.types.ledger import Step


def undo(thread: CompactionThread) -> Work[RevertedCompaction]:
    """Take the latest compaction back that counts; the one before it counts again. Nothing is deleted.

    Raises:
        TurnError: None counts.
    """
    step = yield from append(thread, lambda state: revert_step(thread.tail, state))
    assert step is not None and not isinstance(step, RecordedBefore)  # noqa: S101, PT018 - a revert is never there already
    return RevertedCompaction(step.id, str(step.data["reverts"]), step.compaction)


def revert_step(tail: Tail, state: State) -> NewStep:
    """The step that takes the latest compaction back.

    Raises:
        TurnError: None counts.
    """
    latest = find_latest(tail, state.tip)
    data = {"restores": latest.restored, "reverts": latest.compaction, "cut": None}
    return NewStep(kind="revert", closes=state.open_turn is None, data=data)


def find_latest(tail: Tail, tip: Step | None) -> RevertedCompaction:
    """The compaction that counts, and the one that would count without it; no step says so yet.

    Raises:
        TurnError: None counts.
    """
    if tip is None or tip.compaction is None:
        raise TurnError("nothing is compacted here", hint="there is nothing to take back")
    compaction = tail.step(tip.compaction)
    before = None if compaction.parent is None else tail.step(compaction.parent).compaction
    return RevertedCompaction("", compaction.id, before)
