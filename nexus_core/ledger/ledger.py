"""StoreLedger: a ledger over a store of rows. Threads are read and scanned by one index range per branch."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, get_args

from nexus_core.errors import ConflictError, LedgerError, SessionExistsError, UnknownNameError
from nexus_core.ledger.codec import StoredStep, build_step_rows, compute_blob_digest, encode_step
from nexus_core.ledger.store import (
    AliasRow,
    BranchRow,
    ErasableStore,
    HistoryRow,
    SessionRow,
    StepRow,
    clean_text,
    is_erased,
    new_id,
    normalize_label,
    write_canonical_json,
    write_json,
)
from nexus_core.ledger.store import current_time_ms as time_now
from nexus_core.text.safety import repair_surrogates
from nexus_core.types.ledger import SessionRecord, SessionStatus
from nexus_core.types.messages import Reasoning, Text, ToolCall, ToolResult
from nexus_core.types.payloads import RevertPayload

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from nexus_core.ledger.codec import EncodedStep
    from nexus_core.ledger.deletion import DeletionReport
    from nexus_core.ledger.rebuild import RebuildReport
    from nexus_core.ledger.store import DeletionRow, LedgerStore, ParentRef, StepFields
    from nexus_core.types.ledger import Ledger, NewStep, Step
    from nexus_core.types.messages import JSON, Message
    from nexus_core.types.plugins import Finding

NO_LIMIT = (1 << 63) - 1
"""The largest integer of every database."""
_NOTE_KINDS = ("pin", "forget")
"""Kinds of steps that note something about others: they do not change the time of a session."""
_ID_COLUMN, _PARENT_COLUMN, _POSITION_COLUMN = (StepRow._fields.index(name) for name in ("id", "parent", "position"))
_STEPS_PER_SEARCH = 200
"""Maximum steps of one query of a search."""
STEPS_PER_READ = 500
"""Steps per query, so that a long thread is not held in memory at once."""
_SMALL_BATCH = 50
"""Steps per query where a walk usually ends after a few."""


def read_thread(store: LedgerStore, tip: str, *, first: str | None, limit: int | None) -> list[StepFields]:
    """Return the steps from `first` to `tip`, or the newest `limit`, oldest first.

    Raises:
        LedgerError: A step is missing, the rows form a cycle, or `first` does not come before `tip`.
    """
    floor = 0 if first is None else _require_place(store, first).position
    left = NO_LIMIT if limit is None else max(limit, 0)
    found: list[StepFields] = []
    name: str | None = tip
    while name is not None and left > 0:
        rows = store.tail(name, floor=floor, limit=left)
        if not rows:
            if name == tip and floor:  # it may be older than `first`
                break
            raise missing_step_error(name)
        if found and rows[0][_POSITION_COLUMN] >= found[-1][_POSITION_COLUMN]:
            raise LedgerError(f"step {name} is damaged: it comes before itself", hint="`nexus ledger verify` says more")
        found += rows
        left -= len(rows)
        # The parent of the oldest row is in the branch that this one was forked from.
        name = rows[-1][_PARENT_COLUMN] if rows[-1][_POSITION_COLUMN] > floor else None
    if first is not None and limit is None and (not found or found[-1][_ID_COLUMN] != first):
        raise LedgerError(f"step {first} does not come before {tip}", hint="they are of different branches")
    found.reverse()
    return found


def skip_reverted(steps: Iterable[Step]) -> Iterator[Step]:
    """Yield steps without those that an import reverted, and without the reverts.

    An import reverts messages that have changed in the transcript since, such as a reply that was still streamed.

    Args:
        steps: Steps of a thread, newest first.
    """
    left = 0
    for step in steps:
        if step.kind == "revert" and (popped := count_import_reverted(step)):
            left += popped
        elif left > 0 and step.kind not in ("compaction", "revert", "pin", "forget", "state"):
            left -= len(step.messages)  # one without messages belongs to the turn that was reverted
        else:
            yield step


def count_import_reverted(step: Step) -> int:
    """Return how many of the newest messages an import takes back with a step; 0 for every other step."""
    payload = step.payload
    return payload.popped or 0 if isinstance(payload, RevertPayload) and payload.imported is not None else 0


def find_reverted(ledger: Ledger, revert: Step) -> list[Step]:
    """Return the steps that a `revert` step of an import undoes, newest first."""
    reverted: list[Step] = []
    remaining = count_import_reverted(revert)
    for step in skip_reverted(walk_back(ledger, revert.parent, batch_size=_SMALL_BATCH)):
        if remaining <= 0:
            break
        if step.messages:
            reverted.append(step)
            remaining -= len(step.messages)
    return reverted


def walk_back(ledger: Ledger, tip: str | None, *, batch_size: int = STEPS_PER_READ) -> Iterator[Step]:
    """Yield the steps of a thread, newest first, reading `batch_size` at a time."""
    current = tip
    while current is not None:
        steps = ledger.thread(current, limit=batch_size)
        yield from reversed(steps)
        current = steps[0].parent


def scan_thread(
    store: LedgerStore, tip: str, text: str, *, limit: int, within: int, blob: Callable[[str], bytes | None]
) -> Iterator[Step]:
    """Yield the newest steps of a thread with a text in their messages.

    Args:
        store: The rows.
        tip: The newest step of the thread.
        text: The text.
        limit: The maximum number of steps to yield.
        within: The maximum number of steps to search, the newest.
        blob: Returns the blob with a digest, or None.
    """
    place = _require_place(store, tip)
    wanted, needle = repair_surrogates(text), encode_search_text(text)
    branch: str | None = place.branch
    below = place.position + 1
    floor = max(below - within, 0)
    while branch is not None and limit > 0 and below > floor:
        rows = store.search(branch, floor=floor, below=below, text=needle, limit=_STEPS_PER_SEARCH)
        for row in rows:
            step = StoredStep(row, blob)
            if any(wanted in part for message in step.messages for part in find_message_texts(message)):
                yield step
                limit -= 1
                if limit == 0:
                    return
        if len(rows) == _STEPS_PER_SEARCH:
            below = rows[-1][_POSITION_COLUMN]
            continue
        before = store.branch(branch)
        branch, below = (before.parent, before.position + 1) if before else (None, 0)


def encode_search_text(text: str) -> str:
    """Return a text as it is escaped inside JSON.

    A store filters rows with it without decoding them.
    """
    return write_canonical_json(repair_surrogates(text))[1:-1]


def find_message_texts(message: Message, convert: Callable[[object], object] | None = None) -> Iterator[str]:
    """Yield the text, reasoning, tool calls and tool results of a message.

    Args:
        message: The message.
        convert: Applied to the arguments of tool calls, in which names belong to values; None leaves them as they are.
    """
    for part in message.parts:
        if isinstance(part, Text | Reasoning):
            yield part.text
        elif isinstance(part, ToolCall):
            yield part.name
            arguments = json.loads(write_canonical_json(dict(part.arguments)))
            yield from find_strings(arguments if convert is None else convert(arguments))
        elif isinstance(part, ToolResult):
            yield part.text


def find_strings(value: object) -> Iterator[str]:
    """Yield the strings in a JSON value, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from find_strings(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield str(key)
            yield from find_strings(item)


def missing_step_error(name: str) -> LedgerError:
    """Return the error for a missing step."""
    return LedgerError(f"there is no step {name}", hint="`nexus ledger verify` says whether it was deleted")


def deleted_step_error(name: str) -> LedgerError:
    """Return the error for a step whose content was deleted."""
    hint = "its content is gone for good; take a session that is still there: `nexus session list --include-archived`"
    return LedgerError(f"step {name} was deleted with its session", hint=hint)


def _require_place(store: LedgerStore, name: str) -> ParentRef:
    place = store.place(name)
    if place is None:
        raise missing_step_error(name)
    return place


def _ignore_progress(_amount: float) -> None:
    """Do nothing: the default for `advance`."""


class StoreLedger:
    """A ledger over any store, with the same results for each of them.

    Args:
        store: The rows.
        now: Returns the time in milliseconds since 1970.
        name: Returns a new id for a time.
    """

    def __init__(
        self, store: LedgerStore, *, now: Callable[[], int] = time_now, name: Callable[[int], str] = new_id
    ) -> None:
        self.url = store.url
        self.store = store
        self._now = now
        self._name = name

    def session(self, label: str) -> SessionRecord | None:
        """Return the session with that label or alias, or None."""
        row = self.store.read(partial(self.store.session, clean_text(label)))
        return None if row is None else build_session_record(row)

    def sessions(self, *, status: SessionStatus | None = "active") -> list[SessionRecord]:
        """Return the sessions of a status, or all for None, those changed last first."""
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
        """Create a session, in one transaction with its first steps.

        Args:
            label: Its name.
            head: The end of a closed turn, to fork from; None to begin with nothing.
            origin: The label of the session that it was forked from, "" for none.
            data: Its metadata.
            steps: Steps to append after `head`. The session's time of creation is that of the first.

        Raises:
            SessionExistsError: The label is in use.
            LedgerError: `head` is missing or deleted, or does not end a turn.
        """
        moment = self._now()
        new = self._encode_steps(steps, moment)
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
        ).with_digest()
        return build_session_record(self.store.write(partial(self._create, row, new), session=row.label))

    def append(self, label: str, step: NewStep, *, after: str | None) -> Step:
        """Append a step to a session whose tip is `after`.

        Raises:
            ConflictError: The tip is another step, because another program has appended.
        """
        return self.append_many(label, (step,), after=after)[0]

    def append_many(self, label: str, steps: Iterable[NewStep], *, after: str | None) -> list[Step]:
        """Append several steps in one transaction. Arguments as for `append`."""
        new = self._encode_steps(steps, self._now())
        label = clean_text(label)
        rows = self.store.write(partial(self._append, label, new, after), session=label)
        return [StoredStep(row, self.blob) for row in rows]

    def step(self, name: str) -> Step | None:
        """Return the step with that id, or None."""
        row = self.store.read(partial(self.store.step, clean_text(name)))
        return None if row is None else StoredStep(row, self.blob)

    def thread(self, tip: str, *, first: str | None = None, limit: int | None = None) -> list[Step]:
        """Return the steps from `first` to `tip`, or the newest `limit`, oldest first.

        Raises:
            LedgerError: There is no such step, or `first` does not come before it.
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
        """Replace the status or data of a session. Its head and tip stay.

        Args:
            label: The session.
            status: The new status; None keeps it.
            data: The new metadata; None keeps it.
            updated: The time of the change, in milliseconds since 1970; None for now.
        """
        if status is not None and status not in get_args(SessionStatus):
            raise UnknownNameError("status", str(status), get_args(SessionStatus))
        text = None if data is None else write_json(dict(data))
        label = clean_text(label)
        return build_session_record(
            self.store.write(partial(self._update, label, status, text, updated), session=label)
        )

    def rename(self, label: str, new: str) -> SessionRecord:
        """Rename a session. The old label stays as an alias."""
        label = clean_text(label)
        return build_session_record(self.store.write(partial(self._rename, label, normalize_label(new)), session=label))

    def aliases(self, label: str) -> list[str]:
        """Return the aliases of a session, sorted."""
        label = clean_text(label)

        def work() -> list[str]:
            session = self._require_session(label)
            return sorted(row.alias for row in self.store.alias_rows() if row.session == session.id)

        return self.store.read(work)

    def scan(self, tip: str, text: str, *, limit: int = 20, within: int = 10_000) -> list[Step]:
        """Return the newest steps of a thread with a text in them, newest first.

        At most `limit` steps are returned, and the newest `within` steps searched.
        """
        work = partial(scan_thread, self.store, clean_text(tip), text, limit=limit, within=within, blob=self.blob)
        return self.store.read(lambda: list(work()))

    def put_blob(self, content: bytes) -> str:
        """Store bytes as a blob, unless it exists, and return its digest."""
        return self.put_blobs([content])[0]

    def put_blobs(self, contents: Iterable[bytes]) -> list[str]:
        """Store several blobs in one transaction, and return their digests."""
        blobs = [(compute_blob_digest(content), content) for content in contents]

        def work() -> None:
            for digest, content in blobs:
                self.store.add_blob(digest, content)

        self.store.write(work)
        return [digest for digest, _ in blobs]

    def blob(self, digest: str) -> bytes | None:
        """Return the blob with that digest, or None."""
        return self.store.read(partial(self.store.blob, clean_text(digest)))

    def steps(self) -> Iterator[Step]:
        """Yield all steps, branch by branch, in order of position, without deleted ones."""
        return (StoredStep(row, self.blob) for row in self.store.step_rows() if not is_erased(row))

    def verify(
        self, *, advance: Callable[[int], None] = _ignore_progress, label: str | None = None
    ) -> Iterable[Finding]:
        """Yield a finding for each row that was changed, deleted, reordered or damaged.

        Args:
            advance: Called with the number of steps that were checked since its last call.
            label: Check only that session: its row, names and steps, and the blobs they refer to. None for all.

        Raises:
            UnknownNameError: There is no such session.
        """
        from nexus_core.ledger.verify import verify_store

        if label is not None:
            self.store.read(partial(self._require_session, clean_text(label)))
        return verify_store(self.store, advance, None if label is None else clean_text(label))

    def delete(self, label: str, *, reason: str = "", workers: bool = False, dry_run: bool = False) -> DeletionReport:
        """Delete a session, and the content of steps and blobs that only it needs.

        Steps that other sessions share stay, and so do ids, digests and the digest chain. The deletion is recorded, so
        that `verify` can tell it from damage.

        Args:
            label: The session.
            reason: Stored with the deletion.
            workers: True to delete its workers, too.
            dry_run: True to report what would be deleted, and delete nothing.

        Raises:
            UnknownNameError: There is no such session.
            LedgerError: The store cannot delete.
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
        """Return all recorded deletions, oldest first."""
        store = self.store
        return store.read(store.deletion_rows) if isinstance(store, ErasableStore) else []

    def repair(
        self, target: StoreLedger, *, advance: Callable[[float], None] = _ignore_progress, without: Collection[str] = ()
    ) -> RebuildReport:
        """Copy every intact turn into an empty ledger. This one is not changed.

        Args:
            target: The empty ledger.
            advance: Called with shares of the work, whose sum is 1.
            without: Sessions to leave out, with their workers and the rows that only they need.

        Raises:
            LedgerError: The target is not empty, or nothing in this ledger is intact, or sessions are to be left out
                and this ledger is damaged.
            UnknownNameError: There is no such session to leave out.
        """
        from nexus_core.ledger.rebuild import rebuild_ledger

        return rebuild_ledger(self.store.salvage(), target.store, advance, [clean_text(label) for label in without])

    def close(self) -> None:
        """Close the file or connection. A second call does nothing."""
        self.store.close()

    def _encode_steps(self, steps: Iterable[NewStep], moment: int) -> list[EncodedStep]:
        return [
            encode_step(step, step.id or self._name(created), created)
            for step in steps
            for created in (moment if step.created is None else step.created,)
        ]

    # These run inside a transaction, and again if it has to be retried.

    def _create(self, row: SessionRow, new: Sequence[EncodedStep]) -> SessionRow:
        if (there := self.store.session(row.label)) is not None:
            if there.id == row.id:  # an earlier attempt was committed, and only the response was lost
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
            self.store.add_history([HistoryRow(row.id, row.head, "create", row.created).with_digest()])
        return self._append_rows(row, new)[0] if new else row

    def _append(self, label: str, new: Sequence[EncodedStep], after: str | None) -> list[StepRow]:
        session = self._require_session(label)
        if session.tip != after:
            done = [row for each in new if (row := self.store.step(each.id)) is not None]
            if done and len(done) == len(new):  # an earlier attempt was committed, and only the response was lost
                return done
            raise ConflictError(
                f"session {session.label!r} has moved on: its newest step is {session.tip}, not {after}",
                hint="read the session again and decide anew, or fork it to go on from there",
            )
        return self._append_rows(session, new)[1] if new else []

    def _append_rows(self, session: SessionRow, new: Sequence[EncodedStep]) -> tuple[SessionRow, list[StepRow]]:
        """Append steps after a session's tip, and move the session to the last of them."""
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
        # A list of sessions shows when each was last continued.
        spoken = [row.created for row in rows if row.kind not in _NOTE_KINDS]
        moved = session._replace(
            tip=rows[-1].id,
            head=heads[-1].id if heads else session.head,
            open_turn=None if rows[-1].closes else rows[-1].turn,
            updated=spoken[-1] if spoken else session.updated,
        ).with_digest()
        self.store.move_session(moved)
        if heads:
            notes = [HistoryRow(session.id, row.id, row.kind, row.created).with_digest() for row in heads]
            self.store.add_history(notes)
        return moved, rows

    def _update(self, label: str, status: SessionStatus | None, data: str | None, updated: int | None) -> SessionRow:
        session = self._require_session(label)
        changed = session._replace(
            status=session.status if status is None else status,
            data=session.data if data is None else data,
            updated=self._get_update_time(session) if updated is None else updated,
        ).with_digest()
        self.store.save_session(changed)
        return changed

    def _rename(self, label: str, new: str) -> SessionRow:
        session = self._require_session(label)
        if session.label == new:
            return session
        there = self.store.session(new)
        if there is not None and there.id != session.id:
            raise _session_exists_error(new, there)
        renamed = session._replace(label=new, updated=self._get_update_time(session)).with_digest()
        if there is not None:  # the new label is an alias of the same session
            self.store.drop_alias(new)
        self.store.save_session(renamed)
        self.store.add_alias(AliasRow(session.label, session.id, renamed.updated).with_digest())
        return renamed

    def _get_update_time(self, session: SessionRow) -> int:
        """Return the time for a change: now, but never before the last one.

        `repair` keeps the row with the newest time.
        """
        return max(self._now(), session.updated)

    def _require_session(self, label: str) -> SessionRow:
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
