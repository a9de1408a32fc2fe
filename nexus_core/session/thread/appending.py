"""Adds what is decided where a session stands, however many others do the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.errors import ConflictError
from nexus_core.session.drivers import wait
from nexus_core.session.recording.new_steps import Known

if TYPE_CHECKING:
    from collections.abc import Callable

    from nexus_core.session.drivers import Work
    from nexus_core.session.steps.state import State
    from nexus_core.session.thread.thread import SessionThread
    from nexus_core.types.ledger import NewStep, Step

    Decide = Callable[[State], NewStep | Known | None]

ATTEMPTS = 100
"""So often a step is tried again when others were faster; each time one of them has got on."""


def append(thread: SessionThread, decide: Decide) -> Work[Step | Known | None]:
    """Add what is decided where a session stands; decide again where somebody else was faster."""
    for _ in range(ATTEMPTS):
        state, decided = yield from wait(_decide, thread, decide)
        if decided is None or isinstance(decided, Known):
            return decided
        try:
            return (yield from wait(thread.append, decided, state))
        except ConflictError:
            continue
    raise never_still(thread.label)


def never_still(label: str) -> ConflictError:
    """Why nothing could be added."""
    return ConflictError(
        f"session {label!r} never stood still long enough", hint="fewer programs at once, or a fork for each"
    )


def _decide(thread: SessionThread, decide: Decide) -> tuple[State, NewStep | Known | None]:
    state = thread.read()
    return state, decide(state)
