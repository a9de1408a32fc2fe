"""Rows of a ledger in an SQL database, over one connection shared by all threads."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from contextlib import contextmanager, suppress
from threading import RLock
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar

from nexus_core import Finding, NexusClosedError
from nexus_core.plugin.ledgers import (
    AliasRow,
    BranchRow,
    DeletionRow,
    ErasedRow,
    HistoryRow,
    LedgerError,
    ParentRef,
    Salvaged,
    SessionRow,
    StepRow,
)
from nexus_plugins.ledger import _statements as sql

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

T = TypeVar("T")

_STEPS_PER_FETCH = 500
"""Maximum steps of one query when all are read."""
_BRANCH_COLUMN, _POSITION_COLUMN = (StepRow._fields.index(name) for name in ("branch", "position"))


class SqlRows(ABC):
    """The rows of a store, over a connection that runs the statements."""

    @abstractmethod
    def fetch(self, statement: str, *bound: object) -> list[Any]:
        """Run a query and return its rows as tuples."""

    @abstractmethod
    def run(self, statement: str, *bound: object) -> None:
        """Run a statement that writes."""

    @abstractmethod
    def run_many(self, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Run a statement that writes once for each row."""

    def session(self, label: str) -> SessionRow | None:
        """Return the session with that name, else the one with that alias, else None."""
        found = self.fetch(sql.SESSION, label) or self.fetch(sql.SESSION_BY_ALIAS, label)
        return SessionRow(*found[0]) if found else None

    def save_session(self, row: SessionRow) -> None:
        """Insert a session, or replace the one with its id."""
        self.run(sql.SAVE_SESSION, *row)
        self.run(sql.ADD_NAME, row.label, row.id)

    def move_session(self, row: SessionRow) -> None:
        """Update the steps that an existing session points to."""
        self.run(sql.MOVE_SESSION, row.head, row.tip, row.open_turn, row.updated, row.seal, row.id)

    def add_alias(self, row: AliasRow) -> None:
        """Insert an alias."""
        self.run(sql.ADD_ALIAS, *row)
        self.run(sql.ADD_NAME, row.alias, row.session)

    def drop_alias(self, alias: str) -> None:
        """Delete an alias."""
        self.run(sql.DROP_ALIAS, alias)

    def add_history(self, rows: Sequence[HistoryRow]) -> None:
        """Insert records of head changes."""
        self.run_many(sql.ADD_HISTORY, rows)

    def place(self, name: str) -> ParentRef | None:
        """Return the fields of a step that the next one depends on, or None."""
        found = self.fetch(sql.PLACE, name)
        return ParentRef(*found[0]) if found else None

    def is_taken(self, branch: str, position: int) -> bool:
        """Return True if a branch has a step at a position."""
        return bool(self.fetch(sql.TAKEN, branch, position))

    def add_branch(self, row: BranchRow) -> None:
        """Insert a branch."""
        self.run(sql.ADD_BRANCH, *row)

    def branch(self, name: str) -> BranchRow | None:
        """Return a branch with its parent and first position, or None."""
        found = self.fetch(sql.BRANCH, name)
        return BranchRow(*found[0]) if found else None

    def add_steps(self, rows: Sequence[StepRow]) -> None:
        """Append consecutive steps to the end of their branches."""
        self.run_many(sql.ADD_STEP, rows)

    def step(self, name: str) -> StepRow | None:
        """Return the step with that id, or None."""
        found = self.fetch(sql.STEP, name)
        return StepRow(*found[0]) if found else None

    def tail(self, tip: str, *, floor: int, limit: int) -> list[tuple[Any, ...]]:
        """Return steps of a branch from `tip` down to a position, newest first."""
        return self.fetch(sql.TAIL, tip, tip, floor, limit)

    def search(self, branch: str, *, floor: int, below: int, text: str, limit: int) -> list[tuple[Any, ...]]:
        """Return steps of a branch whose stored messages contain a text, newest first."""
        return self.fetch(sql.SEARCH, branch, floor, below, text, limit)

    def add_blob(self, digest: str, content: bytes) -> None:
        """Insert a blob unless it exists."""
        self.run(sql.ADD_BLOB, digest, content)

    def blob(self, digest: str) -> bytes | None:
        """Return the bytes with that digest, or None."""
        found = self.fetch(sql.BLOB, digest)
        content: bytes | None = found[0][0] if found else None
        return content

    def session_rows(self) -> list[SessionRow]:
        """Return all sessions."""
        return [SessionRow(*row) for row in self.fetch(sql.SESSIONS)]

    def newest_session_rows(self, *, status: str, text: str, limit: int) -> list[SessionRow]:
        """Return the sessions changed last, of a status and with a text, "" for any."""
        return [SessionRow(*row) for row in self.fetch(sql.NEWEST_SESSIONS, status, status, text, limit)]

    def session_tips(self) -> list[tuple[str, str | None, str | None, int | None]]:
        """Return label, tip, and the tip's branch and position, of each session."""
        return self.fetch(sql.SESSION_TIPS)

    def branches_with(self, text: str) -> list[tuple[str, int]]:
        """Return the branches with a text in their messages, and its first position."""
        return self.fetch(sql.BRANCHES_WITH, text)

    def forked_branches(self) -> list[BranchRow]:
        """Return the branches that were forked from another."""
        return [BranchRow(*row) for row in self.fetch(sql.FORKED_BRANCHES)]

    def count_sessions(self, status: str) -> int:
        """Return the number of sessions of a status, "" for any."""
        return int(self.fetch(sql.COUNT_SESSIONS, status, status)[0][0])

    def count_steps(self) -> int:
        """Return the number of steps."""
        return int(self.fetch(sql.COUNT_STEPS)[0][0])

    def tip_branches(self) -> list[tuple[str, str, str | None, str | None]]:
        """Return tip, branch, origin and the origin's branch of each session with a tip."""
        return self.fetch(sql.TIP_BRANCHES)

    def alias_rows(self) -> list[AliasRow]:
        """Return all aliases."""
        return [AliasRow(*row) for row in self.fetch(sql.ALIASES)]

    def history_rows(self, session: str | None = None) -> Iterator[HistoryRow]:
        """Yield all records of head changes, or those of one session by its id."""
        for row in self.fetch(sql.HISTORY) if session is None else self.fetch(sql.HISTORY_OF, session):
            yield HistoryRow(*row)

    def branch_rows(self) -> list[BranchRow]:
        """Return all branches."""
        return [BranchRow(*row) for row in self.fetch(sql.BRANCHES)]

    def step_rows(self) -> Iterator[StepRow]:
        """Yield all steps, branch by branch, in order of position."""
        last = ("", -1)
        while True:
            try:
                rows = self.fetch(sql.NEXT_STEPS, *last, _STEPS_PER_FETCH)
            except LedgerError:  # the rows before the damage can be read branch by branch
                rows = None
            if rows is None or not _is_ordered(last, rows):
                yield from self._read_steps_after(*last)
                return
            yield from map(StepRow._make, rows)
            if len(rows) < _STEPS_PER_FETCH:
                return
            last = rows[-1][_BRANCH_COLUMN], rows[-1][_POSITION_COLUMN]

    def _read_steps_after(self, branch: str, position: int) -> Iterator[StepRow]:
        """Yield the steps after a position, with a query for each branch."""
        following: str | None = branch or self._next_branch("")
        while following is not None:
            while rows := self.fetch(sql.STEPS_AFTER, following, position, _STEPS_PER_FETCH):
                for row in rows:
                    yield StepRow(*row)
                position = _require_progress(position, rows[-1][_POSITION_COLUMN])
            branch, position = following, -1
            following = self._next_branch(branch)
            following = None if following is None else _require_progress(branch, following)

    def blob_rows(self) -> Iterator[tuple[str, bytes]]:
        """Yield all blobs with their digests."""
        digest = ""
        while found := self.fetch(sql.NEXT_BLOB, digest):
            ((following, content),) = found
            digest = _require_progress(digest, following)
            yield digest, content if isinstance(content, bytes) else b""  # a damaged row may have another type

    def add_deletion(self, row: DeletionRow, erased: Sequence[ErasedRow]) -> None:
        """Insert a deletion and the records of everything it erases."""
        self.run(sql.ADD_DELETION, *row)
        self.run_many(sql.ADD_ERASED, erased)

    def erase_steps(self, names: Sequence[str]) -> None:
        """Empty messages and data of steps.

        A trigger rejects steps that no deletion records.
        """
        self.run_many(sql.ERASE_STEP, [(name,) for name in names])

    def drop_blobs(self, digests: Sequence[str]) -> None:
        """Delete blobs."""
        self.run_many(sql.DROP_BLOB, [(digest,) for digest in digests])

    def drop_session(self, name: str) -> None:
        """Delete a session by its id, with its label, aliases and head changes."""
        for statement in sql.DROP_SESSION:
            self.run(statement, name)

    def deletion_rows(self) -> list[DeletionRow]:
        """Return all deletions in the order of their numbers."""
        return [DeletionRow(*row) for row in self.fetch(sql.DELETIONS)]

    def erased_rows(self) -> Iterator[ErasedRow]:
        """Yield all records of erased content, deletion by deletion."""
        for row in self.fetch(sql.ALL_ERASED):
            yield ErasedRow(*row)

    def erased(self, kind: str, name: str) -> list[ErasedRow]:
        """Return the records of one erased step, blob or session."""
        return [ErasedRow(*row) for row in self.fetch(sql.ERASED, kind, name)]

    def salvage(self) -> Salvaged:
        """Return all rows that the database can still read."""
        return Salvaged(
            [*self.step_rows()],
            self.session_rows(),
            self.alias_rows(),
            [*self.history_rows()],
            [*self.blob_rows()],
            self.deletion_rows(),
            [*self.erased_rows()],
        )

    def _next_branch(self, branch: str) -> str | None:
        following: str | None = self.fetch(sql.NEXT_BRANCH, branch)[0][0]
        return following


class SnapshotRows(SqlRows):
    """A read-only snapshot of the rows, over a connection of its own."""

    erasure_note = ""

    def read(self, work: Callable[[], T]) -> T:
        """Call a function that reads rows."""
        return work()

    def write(self, work: Callable[[], T], *, session: str = "") -> T:
        """Raise NotImplementedError: a snapshot is read-only."""
        raise NotImplementedError(work, session)

    def wait_for_writers(self) -> None:
        """Raise NotImplementedError: a snapshot is read-only."""
        raise NotImplementedError

    def copies(self) -> list[str]:
        """Raise NotImplementedError: a snapshot is read-only."""
        raise NotImplementedError

    def purge(self) -> bool:
        """Raise NotImplementedError: a snapshot is read-only."""
        raise NotImplementedError

    def name_findings(self, session: str | None = None) -> Iterator[Finding]:
        """Yield a finding for each session or alias removed or added without Nexus.

        Args:
            session: The id of a session, to report only that one; None for all.
        """
        for name, owner, label in self.fetch(sql.NAMES_LOST):
            if session in (None, owner) and label is None:
                yield Finding("session-missing", f"session {name!r} is gone")
            elif session in (None, owner):
                yield Finding("session-changed", f"session {label!r}: its other name {name!r} is gone")
        for name, owner in self.fetch(sql.NAMES_ADDED):
            if session in (None, owner):
                yield Finding("session-changed", f"session {name!r}: the name was not given by Nexus")

    def run(self, statement: str, *bound: object) -> None:
        """Raise NotImplementedError: a snapshot is read-only."""
        raise NotImplementedError(statement, bound)

    def run_many(self, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Raise NotImplementedError: a snapshot is read-only."""
        raise NotImplementedError(statement, rows)

    @contextmanager
    def snapshot(self) -> Iterator[Self]:
        """Yield this snapshot."""
        yield self


def _is_ordered(last: tuple[str, int], rows: Sequence[tuple[Any, ...]]) -> bool:
    """True if steps come in the order of branch and position.

    Those of a damaged index may not.
    """
    for row in rows:
        key = row[_BRANCH_COLUMN], row[_POSITION_COLUMN]
        if type(key[0]) is not str or type(key[1]) is not int or key <= last:
            return False
        last = key
    return True


def _require_progress(before: Any, after: Any) -> Any:  # noqa: ANN401 - sort keys, of any type in a damaged file
    """Return `after`, or raise if it does not sort after `before`.

    A damaged index would be read endlessly.
    """
    if type(before) is not type(after) or after <= before:
        raise LedgerError(f"it is damaged: {after!r} comes after {before!r}")
    return after


class ClosableConnection(Protocol):
    """A database connection that can be closed."""

    def close(self) -> None:
        """Close the connection."""


C = TypeVar("C", bound=ClosableConnection)


class ConnectedRows(SqlRows, Generic[C]):
    """Rows over one connection per process, shared by its threads under a lock."""

    def __init__(self) -> None:
        self.lock = RLock()
        self._process = 0
        self._connection: C | None = None
        self._is_closed = False

    @abstractmethod
    def connect(self) -> C:
        """Open a writable connection."""

    @abstractmethod
    def read(self, work: Callable[[], T]) -> T:
        """Call a function that reads rows, and return its result."""

    @abstractmethod
    def write(self, work: Callable[[], T], *, session: str = "") -> T:
        """Call a function in one transaction, which is on disk when this returns."""

    @abstractmethod
    def snapshot(self) -> AbstractContextManager[SnapshotRows]:
        """Return a context manager with a snapshot, over its own connection."""

    def close(self) -> None:
        """Close the database. A second call does nothing."""
        with self.lock:
            self._is_closed = True
            self._drop()

    def leave(self) -> None:
        """Drop the inherited connection without closing it: the parent process uses it."""
        self._connection = None

    def damage(self, _session: str | None = None) -> list[Finding]:
        """Return no findings: damage of the database itself is checked on a snapshot."""
        return []

    def step_rows(self) -> Iterator[Any]:
        """Yield all steps of a snapshot."""
        with self.snapshot() as snapshot:
            yield from snapshot.step_rows()

    def _open(self) -> C:
        if self._connection is not None and self._process == os.getpid():
            return self._connection
        if self._is_closed:
            raise NexusClosedError("the ledger is closed", hint="open another Nexus")
        self.leave()  # a forked process needs a connection of its own
        self._connection, self._process = self.connect(), os.getpid()
        return self._connection

    def _drop(self) -> None:
        if self._connection is not None and self._process == os.getpid():
            with suppress(Exception):  # it may be broken, and is not used again
                self._connection.close()
        self._connection = None
