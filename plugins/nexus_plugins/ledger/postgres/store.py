"""PostgresStore: rows on a server, transactions and snapshots.

A transaction holds its session's lock. Writes are buffered and sent with the next query or the commit, so that
appending a step needs two round trips.
"""

from __future__ import annotations

import time
from collections import deque
from contextlib import contextmanager, suppress
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import psycopg

from nexus_core import Finding
from nexus_core.plugin.ledgers import LedgerError, ParentRef, SessionRow, without_secret
from nexus_plugins.ledger import _statements as sql
from nexus_plugins.ledger._rows import ConnectedRows, SnapshotRows
from nexus_plugins.ledger.postgres.connection import (
    LOST_CONNECTION_ERRORS,
    RETRY_ERRORS,
    STALE_CONNECTION_ERRORS,
    BoundStatement,
    PipelineConnection,
    build_server_error,
    connect_to_server,
)
from nexus_plugins.ledger.postgres.schema import prepare_tables, read_schema_version, require_known_version
from nexus_plugins.ledger.postgres.step_index import PostgresStepIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from nexus_core.plugin.ledgers import StepRow


_BEGIN, _COMMIT, _ROLLBACK = BoundStatement("begin"), BoundStatement("commit"), BoundStatement("rollback")
_LOCK_SESSION = "select (select max(version) from about), pg_advisory_xact_lock(hashtextextended($1, 0))"
"""Writers of one session wait for each other here, not for those of other sessions. All wait for a migration."""

# A separate statement from the lock, because a statement's snapshot is taken before it waits for the lock.
_FIND_SESSION_WITH_TIP = (
    "select s.id, s.label, s.head, s.tip, s.open_turn, s.status, s.origin, s.created, s.updated, s.data, s.seal,"
    " exists (select from steps where branch = p.branch and position = p.position + 1),"
    " p.id, p.turn, p.branch, p.position, p.closes, p.counter, p.total, p.compaction, p.chain"
    " from sessions s left join steps p on p.id = s.tip where s.id ="
    " coalesce((select id from sessions where label = $1), (select session from aliases where alias = $1))"
)
_SESSION_COLUMNS = len(SessionRow._fields)

_MAX_WAITING_CHARACTERS = 1 << 20
"""Maximum characters and bytes of buffered statements, to limit memory."""


class SessionTip(NamedTuple):
    """The newest step of a session, and whether its branch has a step after it."""

    place: ParentRef
    is_followed: bool


class PostgresTransaction:
    """A transaction that buffers writes until the next query or the commit.

    So appending a step needs two round trips: one takes the lock and reads the session's tip, the other adds the step,
    moves the session and commits.

    Args:
        pipeline: The connection.
        session: The name of the session to lock.
        where: The server's name in errors.

    Attributes:
        tip: The tip of the session that was read last; None after a write.
    """

    def __init__(self, pipeline: PipelineConnection, session: str, where: str) -> None:
        self._pipeline = pipeline
        self._where = where
        self._waiting = [_BEGIN, BoundStatement(_LOCK_SESSION, (session,))]
        self._size = 0
        self._has_begun = False
        self.tip: SessionTip | None = None

    def session(self, label: str) -> SessionRow | None:
        """Return the session with that name or alias, and cache its tip."""
        found = self.fetch(BoundStatement(_FIND_SESSION_WITH_TIP, (label,)))
        if not found:
            self.tip = None
            return None
        session, (is_followed, *place) = found[0][:_SESSION_COLUMNS], found[0][_SESSION_COLUMNS:]
        self.tip = None if place[0] is None else SessionTip(ParentRef(*place), is_followed)
        return SessionRow(*session)

    def fetch(self, statement: BoundStatement) -> list[tuple[Any, ...]]:
        """Send all buffered writes and a query, and return the query's rows."""
        self._waiting.append(statement)
        return self._send()

    def run(self, statement: BoundStatement) -> None:
        """Buffer a write until the next query."""
        self.tip = None
        self._waiting.append(statement)
        self._size += statement.size
        if self._size > _MAX_WAITING_CHARACTERS:
            self._send()

    def commit(self) -> None:
        """Commit. The changes are on the server's disk when this returns."""
        if not self._has_begun and len(self._waiting) > len((_BEGIN, _LOCK_SESSION)):
            self._send()  # checks the schema version before the commit: a newer Nexus may have migrated it
        if self._has_begun:
            self.fetch(_COMMIT)

    def roll_back(self) -> None:
        """Roll back. A server without the connection does so by itself."""
        self._waiting = [_ROLLBACK]
        if self._has_begun:
            with suppress(psycopg.Error):
                self._send()

    def _send(self) -> list[tuple[Any, ...]]:
        """Send the buffered statements and return the rows of the last one."""
        waiting, self._waiting, self._size = self._waiting, [], 0
        has_begun, self._has_begun = self._has_begun, True
        answers = self._pipeline.execute_all(waiting)
        if not has_begun:
            next(answers)
            ((version, _),) = next(answers)
            require_known_version(version or 0, self._where)
        return deque(answers, maxlen=1).pop()


class PostgresSnapshot(SnapshotRows):
    """A read-only snapshot of the rows, over a connection of its own.

    Args:
        url: The URL of the server.
        where: The server's name in errors.
        empty: True if there are no tables yet.
    """

    def __init__(self, url: str, where: str, *, empty: bool) -> None:
        self.url = url
        self._where = where
        try:
            self._pipeline = PipelineConnection(connect_to_server(url))
            self._begin(empty=empty)
        except psycopg.Error as error:
            raise build_server_error(error, where) from error

    def fetch(self, statement: str, *bound: object) -> list[Any]:
        """Run a query and return its rows as tuples."""
        try:
            (found,) = self._pipeline.execute_all([BoundStatement.of(statement, bound)])
        except psycopg.Error as error:
            raise build_server_error(error, self._where) from error
        return found

    def damage(self, session: str | None = None) -> Iterator[Finding]:
        """Yield findings about triggers of others and lost names. The server checks its own files."""
        if session is None:
            for kind, name, table in self.fetch(_FIND_FOREIGN_TRIGGERS):
                message = f"the {kind} {name!r} on the table {table!r} is not of Nexus, and may change what is written"
                yield Finding("ledger-damaged", message)
        yield from self.name_findings(session)

    def close(self) -> None:
        """Close the connection."""
        with suppress(psycopg.Error):
            self._pipeline.close()

    def _begin(self, *, empty: bool) -> None:
        try:
            connection = self._pipeline.connection
            connection.execute("begin" if empty else "begin isolation level repeatable read read only")
            if empty:
                prepare_tables(connection, self._where)  # never committed
        except BaseException:
            self.close()
            raise


T = TypeVar("T")

RECONNECT_TIMEOUT_SECONDS = 30.0
"""Seconds to retry after the connection is lost."""
_FIND_COPIES = "select nspname from pg_catalog.pg_namespace where nspname like 'nexus#_v%' escape '#' order by 1"
_FIND_FOREIGN_TRIGGERS = """select 'trigger', t.tgname::text, c.relname::text from pg_catalog.pg_trigger t
    join pg_catalog.pg_class c on c.oid = t.tgrelid join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    where n.nspname = 'nexus' and not t.tgisinternal and t.tgname <> 'steps_never_change'
    union all select 'rule', rulename::text, tablename::text from pg_catalog.pg_rules where schemaname = 'nexus'
    order by 1, 2, 3"""
_LOCK_OUT_WRITERS = "lock table about in access exclusive mode"
_MAX_ATTEMPTS = 100
"""Maximum attempts after conflicts with concurrent writers."""


class PostgresStore(ConnectedRows[PipelineConnection]):
    """The rows on a server.

    Args:
        url: The URL of the server, as psycopg accepts it.
    """

    erasure_note = (
        "The server keeps what was erased in its own files until VACUUM, and in its write-ahead log and backups for as"
        " long as these are kept."
    )

    def __init__(self, url: str) -> None:
        super().__init__()
        self.url = url
        self.where = without_secret(url).partition("?")[0]
        self._is_made = False
        self._transaction: PostgresTransaction | None = None
        self._step_index = PostgresStepIndex(self)

    def read(self, work: Callable[[], T]) -> T:
        """Call a function that reads rows. It creates no tables."""

        def attempt() -> T:
            pipeline = self._open()
            if self._has_tables(pipeline):
                return work()
            try:
                with pipeline.connection.transaction(
                    force_rollback=True
                ):  # temporary tables, rolled back after reading
                    prepare_tables(pipeline.connection, self.where)
                    return work()
            finally:
                self._drop()  # with the statements that were prepared for these tables

        with self.lock:
            return self._retry(attempt)

    def write(self, work: Callable[[], T], *, session: str = "") -> T:
        """Call a function in one transaction, which is on disk when this returns."""

        def attempt() -> T:
            pipeline = self._open()
            self._has_tables(pipeline, make=True)
            transaction = self._transaction = PostgresTransaction(pipeline, session, self.where)
            try:
                result = work()
                transaction.commit()
            except BaseException:
                transaction.roll_back()
                raise
            finally:
                self._transaction = None
            return result

        with self.lock:
            return self._retry(attempt)

    @contextmanager
    def snapshot(self) -> Iterator[PostgresSnapshot]:
        """Yield a snapshot of the rows, over a connection of its own."""
        snapshot = PostgresSnapshot(self.url, self.where, empty=not self.read(lambda: self._is_made))
        try:
            yield snapshot
        finally:
            snapshot.close()

    def fetch(self, statement: str, *bound: object) -> list[Any]:
        """Run a query and return its rows as tuples."""
        query = BoundStatement.of(statement, bound)
        if self._transaction is not None:
            return self._transaction.fetch(query)
        (found,) = self._open().execute_all([query])
        return found

    def run(self, statement: str, *bound: object) -> None:
        """Buffer a write until the next query or the commit."""
        self.run_many(statement, [bound])

    def run_many(self, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Buffer a write for each row."""
        if self._transaction is None:
            raise RuntimeError("rows are changed inside `write`")
        for row in rows:
            self._transaction.run(BoundStatement.of(statement, row))

    def session(self, label: str) -> SessionRow | None:
        """Return the session with that name, else the one with that alias, else None."""
        return super().session(label) if self._transaction is None else self._transaction.session(label)

    def place(self, name: str) -> ParentRef | None:
        """Return the position and totals of a step.

        Those of a session's tip were read with the session.
        """
        tip = self._transaction and self._transaction.tip
        return tip.place if tip and tip.place.id == name else super().place(name)

    def is_taken(self, branch: str, position: int) -> bool:
        """Return True if a branch has a step at a position.

        After a session's tip, that was read with the session.
        """
        tip = self._transaction and self._transaction.tip
        if tip and (tip.place.branch, tip.place.position + 1) == (branch, position):
            return tip.is_followed
        return super().is_taken(branch, position)

    def step_index(self) -> PostgresStepIndex:
        """Return the word index on the server."""
        return self._step_index

    def add_steps(self, rows: Sequence[StepRow]) -> None:
        """Append consecutive steps to the end of their branches."""
        super().add_steps(rows)
        self._step_index.note_change()

    def erase_steps(self, names: Sequence[str]) -> None:
        """Empty messages and data of steps, and remove their words from the index."""
        self._step_index.forget(names)
        super().erase_steps(names)

    def wait_for_writers(self) -> None:
        """Lock out other writers, each of which reads this table first."""
        self.run(_LOCK_OUT_WRITERS)

    def copies(self) -> list[str]:
        """Return descriptions of the schemas that migrations left on the server."""
        return self.read(lambda: [f"the schema {name} on the server" for (name,) in self.fetch(_FIND_COPIES)])

    def purge(self) -> bool:
        """Mark deletions as done.

        Only the server can overwrite what its files still contain.
        """
        self.write(lambda: self.run(sql.NOTE_PURGED))
        return True

    def _retry(self, work: Callable[[], T]) -> T:
        """Call a function, and retry after conflicts and lost connections.

        The function must be safe to repeat: a commit whose response was lost is found by its id.
        """
        deadline = time.monotonic() + RECONNECT_TIMEOUT_SECONDS
        for attempt in count(1):
            try:
                return work()
            except RETRY_ERRORS as error:
                if attempt == _MAX_ATTEMPTS:
                    raise build_server_error(error, self.where) from error
                time.sleep(min(attempt, 10) * 0.002)
            except STALE_CONNECTION_ERRORS as error:
                self._drop()
                if attempt > 1:
                    raise build_server_error(error, self.where) from error
            except LOST_CONNECTION_ERRORS as error:
                self._drop()
                if time.monotonic() > deadline:
                    raise build_server_error(error, self.where) from error
                time.sleep(min(attempt * 0.05, 1))
            except psycopg.Error as error:
                raise build_server_error(error, self.where) from error
        raise AssertionError  # unreachable: the loop is endless

    def connect(self) -> PipelineConnection:
        """Open a connection to the server, whose tables are not checked yet."""
        self._is_made = False
        return PipelineConnection(connect_to_server(self.url))

    def _has_tables(self, pipeline: PipelineConnection, *, make: bool = False) -> bool:
        """Return True if the tables exist.

        Older ones are migrated. With `make`, missing ones are created.
        """
        if not self._is_made and (make or read_schema_version(pipeline.connection) > 0):
            try:
                prepare_tables(pipeline.connection, self.where)
            except LedgerError:  # this Nexus cannot use the schema
                self._drop()
                raise
            self._is_made = True
        return self._is_made
