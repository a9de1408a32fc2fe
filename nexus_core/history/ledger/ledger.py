"""The rules of a ledger, over any place that keeps rows."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, NoReturn, get_args

from nexus_core.errors import ConflictError, ExistsError, LedgerError, UnknownNameError
from nexus_core.history.ledger.growing import draft, placed
from nexus_core.history.ledger.ids import new_id
from nexus_core.history.ledger.ids import now as time_now
from nexus_core.history.ledger.media import address_of
from nexus_core.history.ledger.reading import scan, thread
from nexus_core.history.ledger.rebuilding import rebuild
from nexus_core.history.ledger.rows import AliasRow, BranchRow, HistoryRow, SessionRow, StepRow
from nexus_core.history.ledger.stored import StoredStep
from nexus_core.history.ledger.texts import canonical, clean, label_of
from nexus_core.history.ledger.verifying import verify
from nexus_core.values.ledger import SessionRecord, SessionStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from nexus_core.history.ledger.growing import Draft
    from nexus_core.history.ledger.rebuilding import Rebuilt
    from nexus_core.history.ledger.store import Store
    from nexus_core.values.finding import Finding
    from nexus_core.values.ledger import NewStep, Step
    from nexus_core.values.parts import JSON


class StoreLedger:
    """A ledger over a store; what it answers is the same whatever the store is.

    Args:
        store: Where the rows are.
        now: The clock, in milliseconds since 1970.
        name: Makes names; given the time.
    """

    def __init__(self, store: Store, *, now: Callable[[], int] = time_now, name: Callable[[int], str] = new_id) -> None:
        self.url = store.url
        self.store = store
        self._now = now
        self._name = name

    def session(self, label: str) -> SessionRecord | None:
        """The session of that name or alias."""
        row = self.store.read(partial(self.store.session, clean(label)))
        return None if row is None else _record(row)

    def sessions(self, *, status: SessionStatus | None = "active") -> list[SessionRecord]:
        """All sessions, those changed last first."""
        rows = self.store.read(self.store.session_rows)
        rows.sort(key=lambda row: (-row.updated, row.label))
        return [_record(row) for row in rows if status is None or row.status == status]

    def create(
        self, label: str, *, head: str | None = None, origin: str = "", data: JSON | None = None
    ) -> SessionRecord:
        """A new session, at the end of a closed turn or before the first; ExistsError when the name is taken."""
        created = self._now()
        row = SessionRow(
            id=self._name(created),
            label=label_of(label),
            head=None if head is None else clean(head),
            tip=None if head is None else clean(head),
            open_turn=None,
            status="active",
            origin=clean(origin),
            created=created,
            updated=created,
            data=canonical(dict(data or {})),
        ).sealed()
        return _record(self.store.write(partial(self._create, row), session=row.label))

    def append(self, label: str, step: NewStep, *, after: str | None) -> Step:
        """Add a step to a session whose tip is `after`; ConflictError when it is another by now."""
        created = self._now()
        new = draft(step, self._name(created), created)
        label = clean(label)
        row = self.store.write(partial(self._append, label, new, after), session=label)
        return StoredStep(row, self.blob)

    def step(self, name: str) -> Step | None:
        """The step of that id."""
        row = self.store.read(partial(self.store.step, clean(name)))
        return None if row is None else StoredStep(row, self.blob)

    def thread(self, tip: str, *, first: str | None = None, limit: int | None = None) -> list[Step]:
        """The steps up to and including `tip`, oldest first: from `first` on, or the newest `limit`.

        Raises:
            LedgerError: There is no such step, or `first` is not among those before it.
        """
        first = None if first is None else clean(first)
        rows = self.store.read(partial(thread, self.store, clean(tip), first=first, limit=limit))
        blob = self.blob
        return [StoredStep(row, blob) for row in rows]

    def update(self, label: str, *, status: SessionStatus | None = None, data: JSON | None = None) -> SessionRecord:
        """Change what is known of a session, but not where it stands."""
        if status is not None and status not in get_args(SessionStatus):
            raise UnknownNameError("status", str(status), get_args(SessionStatus))
        text = None if data is None else canonical(dict(data))
        label = clean(label)
        return _record(self.store.write(partial(self._update, label, status, text), session=label))

    def rename(self, label: str, new: str) -> SessionRecord:
        """Another name; the old one stays as an alias."""
        label = clean(label)
        return _record(self.store.write(partial(self._rename, label, label_of(new)), session=label))

    def scan(self, tip: str, text: str, *, limit: int = 20) -> list[Step]:
        """The newest steps of a thread in whose messages a text occurs, newest first."""
        return list(self.store.read(partial(scan, self.store, clean(tip), text, limit=limit, blob=self.blob)))

    def put_blob(self, content: bytes) -> str:
        """Keep bytes once; returns their address."""
        digest = address_of(content)
        self.store.write(partial(self.store.add_blob, digest, content))
        return digest

    def blob(self, digest: str) -> bytes | None:
        """The bytes of that address."""
        return self.store.read(partial(self.store.blob, clean(digest)))

    def steps(self) -> Iterator[Step]:
        """Every step there is, branch by branch, in order of position."""
        return (StoredStep(row, self.blob) for row in self.store.step_rows())

    def verify(self) -> Iterable[Finding]:
        """What was changed, deleted, reordered or damaged."""
        return verify(self.store)

    def repair(self, target: StoreLedger) -> Rebuilt:
        """Put every turn that is whole into another ledger, which must be empty; this one is left as it is."""
        return rebuild(self.store.salvage(), target.store)

    def close(self) -> None:
        """Let go of the file or the connection; a second call does nothing."""
        self.store.close()

    # What follows runs inside a transaction, and may run again when it could not be finished.

    def _create(self, row: SessionRow) -> SessionRow:
        if (there := self.store.session(row.label)) is not None:
            if there.id == row.id:  # it was made, and only the answer got lost
                return there
            raise _taken(row.label, there)
        if row.head is not None:
            place = self.store.place(row.head)
            if place is None:
                _missing(row.head)
            if not place.closes:
                raise LedgerError(
                    f"step {row.head} does not end a turn, so nothing can be forked from it",
                    hint="take a session's head, which is the end of a turn",
                )
        self.store.save_session(row)
        if row.head is not None:
            self.store.add_history(HistoryRow(row.id, row.head, "create", row.created).sealed())
        return row

    def _append(self, label: str, new: Draft, after: str | None) -> StepRow:
        session = self._known(label)
        if session.tip != after:
            if (done := self.store.step(new.id)) is not None:  # it was added, and only the answer got lost
                return done
            raise ConflictError(
                f"session {session.label!r} has moved on: its newest step is {session.tip}, not {after}",
                hint="read the session again and decide anew, or fork it to go on from there",
            )
        parent = None if after is None else self.store.place(after)
        if parent is None and after is not None:
            _missing(after)
        branch = new.id if parent is None or self.store.is_taken(parent.branch, parent.position + 1) else parent.branch
        row = placed(new, parent, turn=session.open_turn, branch=branch)
        for digest, content in new.blobs.items():
            self.store.add_blob(digest, content)
        if branch == new.id:
            self.store.add_branch(BranchRow(branch, *((parent.branch, parent.position) if parent else (None, -1))))
        self.store.add_step(row)
        moved = session._replace(
            tip=row.id,
            head=row.id if row.closes else session.head,
            open_turn=None if row.closes else row.turn,
            updated=new.created,
        )
        self.store.move_session(moved.sealed())
        if row.closes:
            self.store.add_history(HistoryRow(session.id, row.id, row.kind, new.created).sealed())
        return row

    def _update(self, label: str, status: SessionStatus | None, data: str | None) -> SessionRow:
        session = self._known(label)
        changed = session._replace(
            status=session.status if status is None else status,
            data=session.data if data is None else data,
            updated=self._now(),
        ).sealed()
        self.store.save_session(changed)
        return changed

    def _rename(self, label: str, new: str) -> SessionRow:
        session = self._known(label)
        if session.label == new:
            return session
        there = self.store.session(new)
        if there is not None and there.id != session.id:
            raise _taken(new, there)
        renamed = session._replace(label=new, updated=self._now()).sealed()
        if there is not None:  # it goes back to a name it had before
            self.store.drop_alias(new)
        self.store.save_session(renamed)
        self.store.add_alias(AliasRow(session.label, session.id, renamed.updated).sealed())
        return renamed

    def _known(self, label: str) -> SessionRow:
        session = self.store.session(label)
        if session is None:
            raise UnknownNameError("session", label, [row.label for row in self.store.session_rows()])
        return session


def _record(row: SessionRow) -> SessionRecord:
    return SessionRecord(
        label=row.label,
        head=row.head,
        tip=row.tip,
        open_turn=row.open_turn,
        status="archived" if row.status == "archived" else "active",
        origin=row.origin,
        created=row.created,
        updated=row.updated,
        data=json.loads(row.data),
    )


def _missing(name: str) -> NoReturn:
    raise LedgerError(f"there is no step {name}", hint="`nexus session verify` says whether it was deleted")


def _taken(label: str, there: SessionRow) -> ExistsError:
    alias = "" if there.label == label else f", as another name of {there.label!r}"
    return ExistsError(f"there is a session {label!r} already{alias}", hint="choose another name, or use that one")
