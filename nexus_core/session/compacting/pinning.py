"""Steps that stay as they are when others are summarised or left out."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING

from nexus_core.errors import TurnError, UsageError
from nexus_core.session.compacting.covering import is_covered
from nexus_core.session.steps.naming import find_step
from nexus_core.session.steps.numbering import SILENT
from nexus_core.session.thread.appending import append
from nexus_core.types.ledger import NewStep

if TYPE_CHECKING:
    from nexus_core.session.compacting.compact import CompactionThread
    from nexus_core.session.drivers import Work
    from nexus_core.session.steps.state import State
    from nexus_core.types.ledger import Ledger, Step


def pin(thread: CompactionThread, name: str, *, remove: bool) -> Work[bool]:
    """Pin a step, or let go of it; whether that changed anything.

    Raises:
        UsageError: There is no such step in the session, or nothing is said in it.
        TurnError: A summary stands for it already.
    """
    ledger, label = thread.place.ledger, thread.label
    step = yield from append(thread, lambda state: pin_step(ledger, label, state, name, remove=remove))
    return step is not None


def pin_step(ledger: Ledger, label: str, state: State, name: str, *, remove: bool) -> NewStep | None:
    """The step that says which steps are pinned from now on; None where they are already. Errors as above."""
    step = None if name in state.pins else _find(ledger, label, state, name)
    meant = name if step is None else step.id
    is_pinned = meant in state.pins
    if is_pinned is not remove:
        return None
    if step is not None and not remove:
        _ensure_there(ledger, state, step)
    pins = [each for each in state.pins if each != meant]
    return NewStep(kind="pin", closes=state.open_turn is None, data={"pins": pins if remove else [*pins, meant]})


def _find(ledger: Ledger, label: str, state: State, name: str) -> Step:
    step = None if state.tip is None else find_step(ledger, name, state.tip)
    if step is None:
        hint = f"`nexus session show {quote(label)} --json` names its steps"
        raise UsageError(f"there is no step {name!r} in session {label!r}", hint=hint)
    return step


def _ensure_there(ledger: Ledger, state: State, step: Step) -> None:
    """Only what is still read as it was said can stay so."""
    if step.kind in SILENT or not step.messages:
        raise UsageError(f"nothing is said in step {step.id}", hint="pin what was asked, answered or found")
    compaction = None if state.tip is None else state.tip.compaction
    if is_covered(ledger, step, compaction):
        raise TurnError(
            f"compaction {compaction} stands for step {step.id} already",
            hint="undo gives it back; then pin it, and compact again",
        )
