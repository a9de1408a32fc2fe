"""The rows on a server, for many machines."""

from __future__ import annotations

import time
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar

import psycopg

from nexus_core.plugin import LedgerError, without_secret
from nexus_plugins.ledger import _statements as sql
from nexus_plugins.ledger._connected import ConnectedRows
from nexus_plugins.ledger.postgres.connecting import connect
from nexus_plugins.ledger.postgres.failures import AGAIN, GONE, STALE, failure
from nexus_plugins.ledger.postgres.line import Line, Statement
from nexus_plugins.ledger.postgres.migrating import prepare, version_of
from nexus_plugins.ledger.postgres.still import StillPostgres
from nexus_plugins.ledger.postgres.transaction import Transaction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from nexus_core.plugin import Place, SessionRow

T = TypeVar("T")

PATIENCE = 30.0
"""Seconds to wait for a server that went away."""
_COPIES = "select nspname from pg_catalog.pg_namespace where nspname like 'nexus#_v%' escape '#' order by 1"
_ALONE = "lock table about in access exclusive mode"
_ATTEMPTS = 100
"""So often is tried what somebody else was faster at."""


class PostgresStore(ConnectedRows[Line]):
    """The rows on a server.

    Args:
        url: Where the server is, as psycopg understands it.
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
        self._transaction: Transaction | None = None

    def read(self, work: Callable[[], T]) -> T:
        """Do something that only looks; it makes no tables."""

        def look() -> T:
            line = self._open()
            if self._has_tables(line):
                return work()
            try:
                with line.connection.transaction(force_rollback=True):  # there for as long as somebody looks
                    prepare(line.connection, self.where)
                    return work()
            finally:
                self._drop()  # with all that was prepared for these tables

        with self.lock:
            return self._try(look)

    def write(self, work: Callable[[], T], *, session: str = "") -> T:
        """Do something in one transaction, on the server's disk when this returns."""

        def transaction() -> T:
            line = self._open()
            self._has_tables(line, make=True)
            begun = self._transaction = Transaction(line, session, self.where)
            try:
                result = work()
                begun.commit()
            except BaseException:
                begun.roll_back()
                raise
            finally:
                self._transaction = None
            return result

        with self.lock:
            return self._try(transaction)

    @contextmanager
    def snapshot(self) -> Iterator[StillPostgres]:
        """The rows of this moment, by a connection of their own."""
        still = StillPostgres(self.url, self.where, empty=not self.read(lambda: self._is_made))
        try:
            yield still
        finally:
            still.close()

    def fetch(self, statement: str, *bound: object) -> list[Any]:
        """What a statement finds, as tuples."""
        question = Statement.of(statement, bound)
        if self._transaction is not None:
            return self._transaction.fetch(question)
        (found,) = self._open().ask([question])
        return found

    def run(self, statement: str, *bound: object) -> None:
        """Change something before the next question, or at the end."""
        self.run_many(statement, [bound])

    def run_many(self, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """The same for each row."""
        if self._transaction is None:
            raise RuntimeError("rows are changed inside `write`")
        for row in rows:
            self._transaction.run(Statement.of(statement, row))

    def session(self, label: str) -> SessionRow | None:
        """The session of that name, else the one of that alias."""
        return super().session(label) if self._transaction is None else self._transaction.session(label)

    def place(self, name: str) -> Place | None:
        """Where a step stands; that of a session's tip came with the session."""
        tip = self._transaction and self._transaction.tip
        return tip.place if tip and tip.place.id == name else super().place(name)

    def is_taken(self, branch: str, position: int) -> bool:
        """Whether a step stands there; for the place behind a session's tip, that came with the session."""
        tip = self._transaction and self._transaction.tip
        if tip and (tip.place.branch, tip.place.position + 1) == (branch, position):
            return tip.is_followed
        return super().is_taken(branch, position)

    def wait_for_writers(self) -> None:
        """Let no other writer in, as each of them reads this table first."""
        self.run(_ALONE)

    def copies(self) -> list[str]:
        """The schemas that migrations left on the server."""
        return self.read(lambda: [f"the schema {name} on the server" for (name,) in self.fetch(_COPIES)])

    def purge(self) -> bool:
        """Note that a deletion is done; what its server's own files still hold is the server's to overwrite."""
        self.write(lambda: self.run(sql.NOTE_PURGED))
        return True

    def _try(self, work: Callable[[], T]) -> T:
        """Do something, again where somebody else was faster or the server was away for a moment.

        Work is made so that it can be done again: what was kept although its answer got lost is found by its name.
        """
        deadline = time.monotonic() + PATIENCE
        for attempt in count(1):
            try:
                return work()
            except AGAIN as error:
                if attempt == _ATTEMPTS:
                    raise failure(error, self.where) from error
                time.sleep(min(attempt, 10) * 0.002)
            except STALE as error:
                self._drop()
                if attempt > 1:
                    raise failure(error, self.where) from error
            except GONE as error:
                self._drop()
                if time.monotonic() > deadline:
                    raise failure(error, self.where) from error
                time.sleep(min(attempt * 0.05, 1))
            except psycopg.Error as error:
                raise failure(error, self.where) from error
        raise AssertionError  # it counts for ever

    def connect(self) -> Line:
        """A connection to the server, of whose tables nothing is known yet."""
        self._is_made = False
        return Line(connect(self.url))

    def _has_tables(self, line: Line, *, make: bool = False) -> bool:
        """Whether the tables are there; older ones are brought up to date, and if need be they are made."""
        if not self._is_made and (make or version_of(line.connection) > 0):
            try:
                prepare(line.connection, self.where)
            except LedgerError:  # there is nothing to be done with it
                self._drop()
                raise
            self._is_made = True
        return self._is_made
