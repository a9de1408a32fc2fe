"""StoreLedger: the rules of a ledger, over any store."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, get_args

from nexus_core.errors import ConflictError, LedgerError, SessionExistsError, UnknownNameError
from nexus_core.ledger.codec import StoredStep, build_step_rows, compute_blob_digest, encode_step
from nexus_core.ledger.json_text import clean_text, normalize_label, write_json
from nexus_core.ledger.store import (
    AliasRow,
    BranchRow,
    ErasableStore,
    HistoryRow,
    SessionRow,
    StepRow,
    is_erased,
    new_id,
)
from nexus_core.ledger.store import current_time_ms as time_now
from nexus_core.ledger.threads import deleted_step_error, missing_step_error, read_thread, scan_thread
from nexus_core.types.ledger import SessionRecord, SessionStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from nexus_core.ledger.codec import EncodedStep
    from nexus_core.ledger.deletion import DeletionReport
    from nexus_core.ledger.rebuild import RebuildReport
    from nexus_core.ledger.store import DeletionRow, LedgerStore
    from nexus_core.types.ledger import NewStep, Step
    from nexus_core.types.messages import JSON
    from nexus_core.types.plugins import Finding


def _ignore_progress(_amount: float) -> None:
    """Nobody wants to know how far the work has come."""


class StoreLedger:
    """A ledger over a store; what it answers is the same whatever the store is.

    Args:
        store: Where the rows are.
        now: The clock, in milliseconds since 1970.
        name: Makes names; given the time.
    """

    def __init__(
        self, store: LedgerStore, *, now: Callable[[], int] = time_now, name: Callable[[int], str] = new_id
    ) -> None:
        self.url = store.url
        self.store = store
        self._now = now
        self._name = name

    def session(self, label: str) -> SessionRecord | None:
        """The session of that name or alias."""
        row = self.store.read(partial(self.store.session, clean_text(label)))
        return None if row is None else build_session_record(row)

    def sessions(self, *, status: SessionStatus | None = "active") -> list[SessionRecord]:
        """All sessions, those changed last first."""
        rows = self.store.read(self.store.session_rows)
        rows.sort(key=lambda row: (-row.updated, row.label))
        return [build_session_record(row) for row in rows if status is None or row.status == status]

    def create(
        self,
        label: str,
        *,
        head: str | None = None,
        origin: str = "",
        data: JSON | None = None,
        steps: Iterable[NewStep] = (),
    ) -> SessionRecord:
        """A new session, at the end of a closed turn or before the first; SessionExistsError when the name is taken.

        With `steps`, these are added behind `head`: all of it is there, or nothing. It was begun when the first of them
        was made.
        """
        moment = self._now()
        new = self._drafts(steps, moment)
        created = new[0].created if new else moment
        row = SessionRow(
            id=self._name(moment),
            label=normalize_label(label),
            head=None if head is None else clean_text(head),
            tip=None if head is None else clean_text(head),
            open_turn=None,
            status="active",
            origin=clean_text(origin),
            created=created,
            updated=created,
            data=write_json(dict(data or {})),
        ).sealed()
        return build_session_record(self.store.write(partial(self._create, row, new), session=row.label))

    def append(self, label: str, step: NewStep, *, after: str | None) -> Step:
        """Add a step to a session whose tip is `after`; ConflictError when it is another by now."""
        return self.append_many(label, (step,), after=after)[0]

    def append_many(self, label: str, steps: Iterable[NewStep], *, after: str | None) -> list[Step]:
        """The same with several steps: all of them are there, or none."""
        new = self._drafts(steps, self._now())
        label = clean_text(label)
        rows = self.store.write(partial(self._append, label, new, after), session=label)
        return [StoredStep(row, self.blob) for row in rows]

    def step(self, name: str) -> Step | None:
        """The step of that id."""
        row = self.store.read(partial(self.store.step, clean_text(name)))
        return None if row is None else StoredStep(row, self.blob)

    def thread(self, tip: str, *, first: str | None = None, limit: int | None = None) -> list[Step]:
        """The steps up to and including `tip`, oldest first: from `first` on, or the newest `limit`.

        Raises:
            LedgerError: There is no such step, or `first` is not among those before it.
        """
        first = None if first is None else clean_text(first)
        rows = self.store.read(partial(read_thread, self.store, clean_text(tip), first=first, limit=limit))
        blob = self.blob
        return [StoredStep(row, blob) for row in rows]

    def update(
        self,
        label: str,
        *,
        status: SessionStatus | None = None,
        data: JSON | None = None,
        updated: int | None = None,
    ) -> SessionRecord:
        """Change what is known of a session, but not where it stands; a change of this moment, or of `updated`."""
        if status is not None and status not in get_args(SessionStatus):
            raise UnknownNameError("status", str(status), get_args(SessionStatus))
        text = None if data is None else write_json(dict(data))
        label = clean_text(label)
        return build_session_record(
            self.store.write(partial(self._update, label, status, text, updated), session=label)
        )

    def rename(self, label: str, new: str) -> SessionRecord:
        """Another name; the old one stays as an alias."""
        label = clean_text(label)
        return build_session_record(self.store.write(partial(self._rename, label, normalize_label(new)), session=label))

    def aliases(self, label: str) -> list[str]:
        """The other names of a session."""
        label = clean_text(label)

        def work() -> list[str]:
            session = self._known(label)
            return sorted(row.alias for row in self.store.alias_rows() if row.session == session.id)

        return self.store.read(work)

    def scan(self, tip: str, text: str, *, limit: int = 20, within: int = 10_000) -> list[Step]:
        """Of the newest `within` steps of a thread the newest `limit` in whose messages a text occurs, newest first."""
        work = partial(scan_thread, self.store, clean_text(tip), text, limit=limit, within=within, blob=self.blob)
        return self.store.read(lambda: list(work()))

    def put_blob(self, content: bytes) -> str:
        """Keep bytes once; returns their address."""
        return self.put_blobs([content])[0]

    def put_blobs(self, contents: Iterable[bytes]) -> list[str]:
        """The same with several."""
        blobs = [(compute_blob_digest(content), content) for content in contents]

        def work() -> None:
            for digest, content in blobs:
                self.store.add_blob(digest, content)

        self.store.write(work)
        return [digest for digest, _ in blobs]

    def blob(self, digest: str) -> bytes | None:
        """The bytes of that address."""
        return self.store.read(partial(self.store.blob, clean_text(digest)))

    def steps(self) -> Iterator[Step]:
        """Every step there is, branch by branch, in order of position; without those that were deleted."""
        return (StoredStep(row, self.blob) for row in self.store.step_rows() if not is_erased(row))

    def verify(
        self, *, advance: Callable[[int], None] = _ignore_progress, label: str | None = None
    ) -> Iterable[Finding]:
        """What was changed, deleted, reordered or damaged; `advance(1)` is called for every step looked at.

        Args:
            advance: Called with the number of steps that were looked at since it was last called.
            label: Look at that session only: its record, names and steps, and what these refer to.

        Raises:
            UnknownNameError: There is no such session.
        """
        from nexus_core.ledger.verify import verify_store

        if label is not None:
            self.store.read(partial(self._known, clean_text(label)))
        return verify_store(self.store, advance, None if label is None else clean_text(label))

    def delete(self, label: str, *, reason: str = "", workers: bool = False, dry_run: bool = False) -> DeletionReport:
        """Delete a session: its names, and the content of the steps and the blobs that nothing else needs.

        Steps that other sessions lead to stay, and so do ids, digests and the chain of all steps. The deletion is
        recorded, so that `verify` can tell it from damage.

        Args:
            label: The session.
            reason: Why; it is kept.
            workers: Whether its workers are deleted, too.
            dry_run: Whether to say only what would be deleted.

        Raises:
            UnknownNameError: There is no such session.
            LedgerError: Nothing can be deleted from this ledger.
        """
        from nexus_core.ledger import deletion

        store, label = deletion.ensure_erasable(self.store), clean_text(label)
        if dry_run:
            plan = store.read(partial(deletion.plan_deletion, store, label, workers=workers))
            return deletion.describe_plan(*plan)._replace(copies=tuple(store.copies()))
        moment = self._now()
        number = len(store.read(store.session_rows)) if workers else 1
        names = [self._name(moment) for _ in range(number)]
        work = partial(deletion.delete_session, store, label, names, reason=clean_text(reason), created=moment)
        report = store.write(partial(work, workers=workers), session=label)
        return report._replace(is_purged=store.purge(), copies=tuple(store.copies()), note=store.erasure_note)

    def deletions(self) -> list[DeletionRow]:
        """Every recorded deletion, oldest first."""
        store = self.store
        return store.read(store.deletion_rows) if isinstance(store, ErasableStore) else []

    def repair(
        self, target: StoreLedger, *, advance: Callable[[float], None] = _ignore_progress, without: Collection[str] = ()
    ) -> RebuildReport:
        """Put every turn that is whole into another ledger, which must be empty; this one is left as it is.

        Args:
            target: The new ledger.
            advance: Called with shares of the work, which together are 1.
            without: Sessions to leave out, with their workers and all that only they lead to.

        Raises:
            LedgerError: There is something in the target already, or nothing is whole in this one; or sessions are to
                be left out of one that is damaged.
            UnknownNameError: There is no such session to leave out.
        """
        from nexus_core.ledger.rebuild import rebuild_ledger

        return rebuild_ledger(self.store.salvage(), target.store, advance, [clean_text(label) for label in without])

    def close(self) -> None:
        """Let go of the file or the connection; a second call does nothing."""
        self.store.close()

    def _drafts(self, steps: Iterable[NewStep], moment: int) -> list[EncodedStep]:
        return [
            encode_step(step, step.id or self._name(created), created)
            for step in steps
            for created in (moment if step.created is None else step.created,)
        ]

    # What follows runs inside a transaction, and may run again when it could not be finished.

    def _create(self, row: SessionRow, new: Sequence[EncodedStep]) -> SessionRow:
        if (there := self.store.session(row.label)) is not None:
            if there.id == row.id:  # it was made, and only the answer got lost
                return there
            raise _session_exists_error(row.label, there)
        if row.head is not None:
            place = self.store.place(row.head)
            if place is None:
                raise missing_step_error(row.head)
            if not place.closes:
                raise LedgerError(
                    f"step {row.head} does not end a turn, so nothing can be forked from it",
                    hint="take a session's head, which is the end of a turn",
                )
            step = self.store.step(row.head)
            if step is not None and is_erased(step):
                raise deleted_step_error(row.head)
        self.store.save_session(row)
        if row.head is not None:
            self.store.add_history([HistoryRow(row.id, row.head, "create", row.created).sealed()])
        return self._grow(row, new)[0] if new else row

    def _append(self, label: str, new: Sequence[EncodedStep], after: str | None) -> list[StepRow]:
        session = self._known(label)
        if session.tip != after:
            done = [row for each in new if (row := self.store.step(each.id)) is not None]
            if done and len(done) == len(new):  # they were added, and only the answer got lost
                return done
            raise ConflictError(
                f"session {session.label!r} has moved on: its newest step is {session.tip}, not {after}",
                hint="read the session again and decide anew, or fork it to go on from there",
            )
        return self._grow(session, new)[1] if new else []

    def _grow(self, session: SessionRow, new: Sequence[EncodedStep]) -> tuple[SessionRow, list[StepRow]]:
        """Add steps behind a session's tip, and move it there."""
        parent = None if session.tip is None else self.store.place(session.tip)
        if parent is None and session.tip is not None:
            raise missing_step_error(session.tip)
        is_free = parent is not None and not self.store.is_taken(parent.branch, parent.position + 1)
        branch = parent.branch if parent is not None and is_free else new[0].id
        rows = build_step_rows(new, parent, turn=session.open_turn, branch=branch)
        for each in new:
            for digest, content in each.blobs.items():
                self.store.add_blob(digest, content)
        if branch == new[0].id:
            self.store.add_branch(BranchRow.behind(parent, branch))
        self.store.add_steps(rows)
        heads = [row for row in rows if row.closes]
        moved = session._replace(
            tip=rows[-1].id,
            head=heads[-1].id if heads else session.head,
            open_turn=None if rows[-1].closes else rows[-1].turn,
            updated=rows[-1].created,
        ).sealed()
        self.store.move_session(moved)
        if heads:
            notes = [HistoryRow(session.id, row.id, row.kind, row.created).sealed() for row in heads]
            self.store.add_history(notes)
        return moved, rows

    def _update(self, label: str, status: SessionStatus | None, data: str | None, updated: int | None) -> SessionRow:
        session = self._known(label)
        changed = session._replace(
            status=session.status if status is None else status,
            data=session.data if data is None else data,
            updated=self._later_than(session) if updated is None else updated,
        ).sealed()
        self.store.save_session(changed)
        return changed

    def _rename(self, label: str, new: str) -> SessionRow:
        session = self._known(label)
        if session.label == new:
            return session
        there = self.store.session(new)
        if there is not None and there.id != session.id:
            raise _session_exists_error(new, there)
        renamed = session._replace(label=new, updated=self._later_than(session)).sealed()
        if there is not None:  # it goes back to a name it had before
            self.store.drop_alias(new)
        self.store.save_session(renamed)
        self.store.add_alias(AliasRow(session.label, session.id, renamed.updated).sealed())
        return renamed

    def _later_than(self, session: SessionRow) -> int:
        """When a session is changed: whatever the clock says, not before its last change; `repair` goes by that."""
        return max(self._now(), session.updated)

    def _known(self, label: str) -> SessionRow:
        session = self.store.session(label)
        if session is None:
            raise UnknownNameError("session", label, [row.label for row in self.store.session_rows()])
        return session


def build_session_record(row: SessionRow) -> SessionRecord:
    """Return the record of a stored session."""
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


def _session_exists_error(label: str, there: SessionRow) -> SessionExistsError:
    alias = "" if there.label == label else f", as another name of {there.label!r}"
    return SessionExistsError(f"session {label!r} exists already{alias}", hint="choose another name, or use that one")
