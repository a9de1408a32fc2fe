"""Undo compactions, list the steps they replaced, and pin steps."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING

from nexus_core.errors import TurnError, UsageError
from nexus_core.runner import blocking
from nexus_core.thread.lookup import find_step
from nexus_core.thread.projection import holds_turn_input
from nexus_core.thread.state import MARKER_KINDS, DuplicateStep
from nexus_core.types.compaction import RevertedCompaction
from nexus_core.types.ledger import NewStep
from nexus_core.types.payloads import CompactionPayload, PinPayload, RevertPayload

if TYPE_CHECKING:
    from nexus_core.compaction.compact import CompactionThread
    from nexus_core.runner import Operation
    from nexus_core.thread.cache import ThreadCache
    from nexus_core.thread.state import SessionState
    from nexus_core.types.ledger import Ledger, Step

# ---- undo -----------------------------------------------------------------------------------------------------------


def undo(thread: CompactionThread) -> Operation[RevertedCompaction]:
    """Undo the compaction in effect, so that the one before it applies again.

    Raises:
        TurnError: No compaction is in effect.
    """
    step = yield from blocking(thread.append_decided, lambda state: build_revert_step(thread.cache, state))
    assert step is not None and not isinstance(step, DuplicateStep)  # noqa: S101, PT018 - a revert is always new
    reverted = step.payload.reverts if isinstance(step.payload, RevertPayload) else ""
    return RevertedCompaction(step.id, reverted, step.compaction)


def build_revert_step(cache: ThreadCache, state: SessionState) -> NewStep:
    """Return the step that undoes the compaction in effect.

    Raises:
        TurnError: No compaction is in effect.
    """
    latest = find_latest_compaction(cache, state.tip)
    payload = RevertPayload(restores=latest.restored, reverts=latest.compaction, cut=None)
    return NewStep(kind="revert", closes=state.open_turn is None, data=payload.to_json())


def find_latest_compaction(cache: ThreadCache, tip: Step | None) -> RevertedCompaction:
    """Return the compaction in effect, and the one that would apply without it.

    The id of the step that undoes it is "".

    Raises:
        TurnError: No compaction is in effect.
    """
    if tip is None or tip.compaction is None:
        raise TurnError("nothing is compacted here", hint="there is nothing to take back")
    compaction = cache.get_step(tip.compaction)
    before = None if compaction.parent is None else cache.get_step(compaction.parent).compaction
    return RevertedCompaction("", compaction.id, before)


# ---- replaced steps -------------------------------------------------------------------------------------------------


def list_covered_steps(ledger: Ledger, name: str) -> tuple[Step, ...]:
    """Return the steps that a compaction replaced, oldest first.

    Those that an earlier one had replaced are not among them.

    Raises:
        UsageError: There is no such compaction, or the name is ambiguous.
    """
    compaction = find_step(ledger, name)
    if compaction is None or compaction.kind != "compaction":
        what = f"there is no step {name!r}" if compaction is None else f"step {compaction.id} is no compaction"
        raise UsageError(what, hint="`nexus session tree NAME` marks the compactions of a session with #")
    if compaction.parent is None:
        return ()
    steps = ledger.thread(compaction.parent, first=_find_first_step(ledger, compaction))
    end, kept = _find_end_position(ledger, compaction), _list_kept_before_end(ledger, compaction)
    return tuple(
        step for step in steps if step.position < end and step.kind not in MARKER_KINDS and step.id not in kept
    )


def is_covered(ledger: Ledger, step: Step, name: str | None) -> bool:
    """True if a compaction, or one before it, replaced a step of its thread."""
    compaction = None if name is None else ledger.step(name)
    if compaction is None or step.position >= _find_end_position(ledger, compaction):
        return False
    return step.id not in _list_kept_before_end(ledger, compaction)


def _find_first_step(ledger: Ledger, compaction: Step) -> str | None:
    """Return the first step that the previous compaction kept; None without one."""
    before = None if compaction.parent is None else ledger.step(compaction.parent)
    previous = None if before is None or before.compaction is None else ledger.step(before.compaction)
    return None if previous is None else _get_first_kept(previous) or previous.id


def _find_end_position(ledger: Ledger, compaction: Step) -> int:
    """Return the position of the first kept step."""
    first = _get_first_kept(compaction)
    kept = None if first is None else ledger.step(first)
    return compaction.position if kept is None else kept.position


def _get_first_kept(compaction: Step) -> str | None:
    return compaction.payload.first_kept if isinstance(compaction.payload, CompactionPayload) else None


def _list_kept_before_end(ledger: Ledger, compaction: Step) -> set[str]:
    """Return steps before the first kept one that stay: pins, and its turn's input."""
    first, payload = _get_first_kept(compaction), compaction.payload
    kept = set(payload.pinned) if isinstance(payload, CompactionPayload) else set()
    first_step = None if first is None else ledger.step(first)
    if first_step is not None and first_step.id != first_step.turn:
        steps = ledger.thread(first_step.id, first=first_step.turn)
        kept |= {step.id for step in steps if holds_turn_input(step)}
    return kept


# ---- pins -----------------------------------------------------------------------------------------------------------


def pin(thread: CompactionThread, name: str, *, remove: bool) -> Operation[bool]:
    """Pin or unpin a step. Return False if it was so before.

    Raises:
        UsageError: The session has no such step, or the step has no messages.
        TurnError: A compaction has replaced it already.
    """
    ledger, label = thread.runtime.ledger, thread.label

    def decide(state: SessionState) -> NewStep | None:
        return build_pin_step(ledger, label, state, name, remove=remove)

    return (yield from blocking(thread.append_decided, decide)) is not None


def build_pin_step(ledger: Ledger, label: str, state: SessionState, name: str, *, remove: bool) -> NewStep | None:
    """Return the step with the new pins; None if nothing changes. Raises as `pin`."""
    step = None if name in state.newest.pins else _require_step(ledger, label, state, name)
    step_id = name if step is None else step.id
    is_pinned = step_id in state.newest.pins
    if is_pinned is not remove:
        return None
    if step is not None and not remove:
        _ensure_pinnable(ledger, state, step)
    pins = [each for each in state.newest.pins if each != step_id]
    payload = PinPayload(pins=tuple(pins) if remove else (*pins, step_id))
    return NewStep(kind="pin", closes=state.open_turn is None, data=payload.to_json())


def _require_step(ledger: Ledger, label: str, state: SessionState, name: str) -> Step:
    step = None if state.tip is None else find_step(ledger, name, state.tip)
    if step is None:
        hint = f"`nexus session show {quote(label)} --json` names its steps"
        raise UsageError(f"there is no step {name!r} in session {label!r}", hint=hint)
    return step


def _ensure_pinnable(ledger: Ledger, state: SessionState, step: Step) -> None:
    """Raise an error if a step has no messages, or a compaction has replaced them."""
    if step.kind in MARKER_KINDS or not step.messages:
        raise UsageError(f"step {step.id} has no message", hint="pin what was asked, answered or found")
    compaction = None if state.tip is None else state.tip.compaction
    if is_covered(ledger, step, compaction):
        raise TurnError(
            f"compaction {compaction} has replaced step {step.id} already",
            hint="undo gives it back; then pin it, and compact again",
        )
