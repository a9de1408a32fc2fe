"""Append a step where a session ends, safe under concurrent writers."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING, NamedTuple, Protocol

from nexus_core.errors import ConflictError, TurnError
from nexus_core.runner import blocking

if TYPE_CHECKING:
    from collections.abc import Callable

    from nexus_core.runner import Operation
    from nexus_core.thread.state import SessionState
    from nexus_core.types.ledger import NewStep, Step

    Decide = Callable[[SessionState], NewStep | "RecordedBefore" | None]

MAX_APPEND_ATTEMPTS = 100
"""Each attempt fails only if another writer has appended, so a session never stops growing meanwhile."""


class RecordedBefore(NamedTuple):
    """The step that already holds what the caller records again."""

    step: Step


class AppendableThread(Protocol):
    """Protocol: a session to append to. Methods do blocking I/O."""

    label: str

    def read(self) -> SessionState:
        """Return the current state of the session."""

    def append(self, step: NewStep, state: SessionState) -> Step:
        """Append a step after the newest step of a state.

        Raises:
            ConflictError: Another writer has appended since.
        """


def append(thread: AppendableThread, decide: Decide) -> Operation[Step | RecordedBefore | None]:
    """Append the step that `decide` returns for the session's state.

    If another writer appends first, `decide` is called again with the new state. A `RecordedBefore` or None of `decide`
    is returned as it is.

    Raises:
        ConflictError: Other writers were faster `MAX_APPEND_ATTEMPTS` times in a row.
    """
    for _ in range(MAX_APPEND_ATTEMPTS):
        state, decided = yield from blocking(_decide, thread, decide)
        if decided is None or isinstance(decided, RecordedBefore):
            return decided
        try:
            return (yield from blocking(thread.append, decided, state))
        except ConflictError:
            continue
    raise build_contention_error(thread.label)


def build_contention_error(label: str) -> ConflictError:
    """Return the error for an append that lost against other writers every time."""
    return ConflictError(
        f"could not append to session {label!r}: {MAX_APPEND_ATTEMPTS} conflicting writes in a row",
        hint="fewer programs at once, or a fork for each",
    )


def ensure_not_archived(state: SessionState) -> None:
    """Raise a TurnError if the session is archived.

    For callers that open a turn; an open turn of an archived session may be finished.
    """
    if state.record is not None and state.record.status == "archived":
        undo = f"nexus session unarchive {quote(state.record.label)}"
        raise TurnError(
            f"session {state.record.label!r} is archived",
            hint=f"`{undo}` restores it; it can be read and forked as it is",
        )


def _decide(thread: AppendableThread, decide: Decide) -> tuple[SessionState, NewStep | RecordedBefore | None]:
    state = thread.read()
    return state, decide(state)
