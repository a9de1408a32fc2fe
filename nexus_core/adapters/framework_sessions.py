"""Sessions in which the adapter of a framework keeps its state, read once and cached."""

from __future__ import annotations

from collections import OrderedDict
from threading import RLock
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from nexus_core.errors import ConflictError, LedgerError, SessionExistsError, TurnError, UsageError
from nexus_core.ledger.deletion import DeletableLedger, undeletable_ledger_error
from nexus_core.ledger.store import read_label
from nexus_core.text.safety import repair_surrogates
from nexus_core.thread.state import (
    MAX_APPEND_ATTEMPTS,
    SessionState,
    build_contention_error,
    continue_step,
    ensure_not_archived,
)
from nexus_core.types.assembled import CacheReport
from nexus_core.types.ledger import NewStep
from nexus_core.types.payloads import ReplyPayload, SessionPayload, StatePayload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from nexus_core.nexus import Nexus
    from nexus_core.types.ledger import Ledger, SessionRecord, Step

MAX_CACHED_SESSIONS = 8
"""Sessions whose state is kept in memory. The least recently used one is evicted."""


class StateLog(Protocol):
    """Protocol: the state of a framework in a session, built from its steps."""

    tip: Step | None

    def read(self, steps: Iterable[Step]) -> None:
        """Add the next steps of the session, and remember the newest as `tip`."""


L = TypeVar("L", bound=StateLog)


class FrameworkSessions(Generic[L]):
    """The sessions of one framework. Safe under concurrent writers, in this process and in others.

    Args:
        nexus: The Nexus whose ledger is used.
        framework: The name that marks the sessions.
        build_log: Returns the state of a session without steps.
    """

    def __init__(self, nexus: Nexus, framework: str, build_log: Callable[[], L]) -> None:
        self._nexus = nexus
        self._framework = framework
        self._build_log = build_log
        self._logs: OrderedDict[str, L] = OrderedDict()
        self.lock = RLock()

    @property
    def ledger(self) -> Ledger:
        """The ledger."""
        return self._nexus.ledger

    def list_labels(self) -> list[str]:
        """Return the names of all sessions of the framework."""
        records = self.ledger.sessions(status=None)
        return [record.label for record in records if record.payload.framework == self._framework]

    def list_cached(self) -> list[str]:
        """Return the names of the sessions in memory, the one used last first."""
        return list(reversed(self._logs))

    def find(self, label: str) -> SessionRecord | None:
        """Return a session of the framework, or None.

        Raises:
            SessionExistsError: The session of that name is not one of the framework.
        """
        record = self.ledger.session(label)
        if record is not None:
            ensure_framework(record, self._framework)
        return record

    def load(self, label: str) -> L:
        """Return the state of a session up to its newest step. Hold `lock` while you read it.

        Raises:
            SessionExistsError: As for `find`.
            LedgerError: A state cannot be read.
        """
        record = self.find(label)
        return self._build_log() if record is None else self._update_log(record)

    def append(self, label: str, plan: Callable[[L], list[NewStep]], *, origin: str = "") -> list[Step]:
        """Append the steps that `plan` returns for the state of a session, which is created if it is missing.

        They are one transaction. After a conflicting write, `plan` is called again with the new state.

        Args:
            label: The session.
            plan: Returns the steps; none if there is nothing to store.
            origin: The session that a new one is a fork of; "" for none.

        Raises:
            SessionExistsError: As for `find`.
            TurnError: A turn of Nexus's own is open in the session, or it is archived.
            ConflictError: Other writers were faster `MAX_APPEND_ATTEMPTS` times in a row.
        """
        with self.lock:
            added = self._append_planned(label, plan, origin)
        for step in added:
            if step.messages:
                usage = step.payload.usage if isinstance(step.payload, ReplyPayload) else None
                self._nexus.host.recorded(step, label, usage, CacheReport())
        return added

    def delete(self, label: str, *, reason: str) -> None:
        """Erase a session, if there is one, and record the deletion.

        Raises:
            SessionExistsError: As for `find`.
            LedgerError: The ledger cannot delete.
        """
        with self.lock:
            if self.find(label) is None:
                return
            self._logs.pop(label, None)
            ledger = self.ledger
            if not isinstance(ledger, DeletableLedger):
                raise undeletable_ledger_error(ledger.url)
            ledger.delete(label, reason=reason)

    def _append_planned(self, label: str, plan: Callable[[L], list[NewStep]], origin: str) -> list[Step]:
        for _ in range(MAX_APPEND_ATTEMPTS):
            record = self.find(label)
            try:
                record = record or self._create(label, origin)
                ensure_writable(record)
                log = self._update_log(record)
                planned = _continue_steps(log.tip, plan(log))
                added = self.ledger.append_many(record.label, planned, after=record.tip) if planned else []
            except (ConflictError, SessionExistsError):
                continue
            log.read(added)
            return added
        raise build_contention_error(label)

    def _create(self, label: str, origin: str) -> SessionRecord:
        source = self.find(origin) if origin else None
        if source is not None:
            return self.ledger.create(label, head=source.head, origin=origin, data=source.data)
        payload = SessionPayload(model="", cwd=str(self._nexus.cwd), framework=self._framework)
        return self.ledger.create(label, data=payload.to_json())

    def _update_log(self, record: SessionRecord) -> L:
        """Return the state of a session, reading only the steps that are new."""
        log = self._logs.get(record.label) or self._build_log()
        if (None if log.tip is None else log.tip.id) != record.tip:
            try:
                log = self._read_new_steps(log, record)
            except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
                self._logs.pop(record.label, None)
                hint = "`nexus ledger verify` says whether it was changed"
                raise LedgerError(f"the state in session {record.label!r} is damaged: {error!r}", hint=hint) from None
        self._logs[record.label] = log
        self._logs.move_to_end(record.label)
        while len(self._logs) > MAX_CACHED_SESSIONS:
            self._logs.popitem(last=False)
        return log

    def _read_new_steps(self, log: L, record: SessionRecord) -> L:
        if record.tip is not None and log.tip is not None:
            try:
                steps = self.ledger.thread(record.tip, first=log.tip.id)
            except LedgerError:  # it was deleted, and created anew
                pass
            else:
                log.read(steps[1:])
                return log
        fresh = self._build_log()
        if record.tip is not None:
            fresh.read(self.ledger.thread(record.tip))
        return fresh


def ensure_framework(record: SessionRecord, framework: str) -> None:
    """Raise an error if a session is not one of a framework.

    Args:
        record: The session.
        framework: The name that marks the sessions; "" for sessions in which no framework keeps its state.

    Raises:
        SessionExistsError: The session was created by another framework, or by none.
    """
    created_by = record.payload.framework
    if created_by != framework:
        reason = f"was not created by {framework}" if framework else f"was created by {created_by}"
        hint = "choose another name, or rename the session: `nexus session rename`"
        raise SessionExistsError(f"session {record.label!r} {reason}", hint=hint)


def ensure_writable(record: SessionRecord) -> None:
    """Raise an error if an adapter may not append to a session.

    Raises:
        TurnError: A turn of Nexus's own is open in the session, or it is archived.
    """
    ensure_not_archived(SessionState(record, None, None))
    if record.open_turn is not None:
        raise TurnError(
            f"a turn is open in session {record.label!r}",
            hint="nexus.session(…).interrupt() ends it; if another program uses the session, choose another name",
        )


def build_state_step(state: dict[str, Any]) -> NewStep:
    """Return a step without messages that stores a state."""
    return NewStep(kind="state", closes=True, data=StatePayload(state=state).to_json())


def read_exact_label(value: object, what: str) -> str:
    """Return the name of a session for an id of a framework.

    Args:
        value: The id.
        what: The word for it in errors.

    Raises:
        UsageError: It is empty or too long, or would not be stored as it is, so that two ids would be one session.
    """
    name = str(value)
    label = read_label(name)
    if label != name:
        raise UsageError(f"the {what} {name!r} cannot be stored as it is", hint="use letters, digits and hyphens")
    return label


def ensure_exact_text(value: object, what: str) -> None:
    """Raise an error if a text of a framework would not be stored as it is.

    Args:
        value: The text.
        what: The words for it in errors.

    Raises:
        UsageError: It is not a text, or has lone surrogates.
    """
    if not isinstance(value, str) or repair_surrogates(value) != value:
        raise UsageError(f"{what} {value!r} cannot be stored as it is", hint="use a text of valid Unicode characters")


def _continue_steps(tip: Step | None, steps: Iterable[NewStep]) -> list[NewStep]:
    """Return steps with what each carries on from the one before."""
    continued: list[NewStep] = []
    before: Step | NewStep | None = tip
    for step in steps:
        before = continue_step(before, step)
        continued.append(before)
    return continued
