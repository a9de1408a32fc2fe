"""The rows on a server, for many machines."""

from __future__ import annotations

import time
from contextlib import contextmanager, suppress
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import psycopg

from nexus_core.plugin import LedgerError
from nexus_plugins.ledger._connected import ConnectedRows
from nexus_plugins.ledger._store import StillRows
from nexus_plugins.ledger.postgres.failures import AGAIN, GONE, failure
from nexus_plugins.ledger.postgres.migrating import ensure_known, prepare, version_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from nexus_core import Finding

T = TypeVar("T")

PATIENCE = 30.0
"""Seconds to wait for a server that went away."""
_ATTEMPTS = 100
"""So often is tried what somebody else was faster at."""
_BEGIN = "select (select max(version) from about), pg_advisory_xact_lock(hashtextextended(%s, 0))"
"""Two machines at one session wait for each other here, and not for those at others; all wait for a migration."""


class PostgresStore(ConnectedRows["psycopg.Connection[Any]"]):
    """The rows on a server.

    Args:
        url: Where the server is, as psycopg understands it.
    """

    def __init__(self, url: str) -> None:
        super().__init__()
        self.url = url
        self.where = _without_secret(url)
        self._is_made = False

    def read(self, work: Callable[[], T]) -> T:
        """Do something that only looks; it makes no tables."""

        def look() -> T:
            connection = self._open()
            if self._has_tables(connection):
                return work()
            with connection.transaction(force_rollback=True):  # there for as long as somebody looks
                prepare(connection, self.where)
                return work()

        with self._lock:
            return self._try(look)

    def write(self, work: Callable[[], T], *, session: str = "") -> T:
        """Do something in one transaction, on the server's disk when this returns."""

        def transaction() -> T:
            connection = self._open()
            if not self._has_tables(connection):
                prepare(connection, self.where)
            with connection.transaction():
                ((version, _),) = connection.execute(_BEGIN, (session,)).fetchall()
                ensure_known(version or 0, self.where)
                return work()

        with self._lock:
            return self._try(transaction)

    @contextmanager
    def snapshot(self) -> Iterator[_Still]:
        """The rows of this moment, by a connection of their own."""
        still = _Still(self.url, self.where, empty=not self.read(lambda: self._is_made))
        try:
            yield still
        finally:
            still.close()

    def fetch(self, statement: str, *bound: object) -> list[Any]:
        """What a statement finds, as tuples."""
        return self._open().execute(translated(statement), bound).fetchall()

    def run(self, statement: str, *bound: object) -> None:
        """Run a statement that changes something."""
        self._open().execute(translated(statement), bound)

    def run_many(self, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Run such a statement for each row."""
        with self._open().cursor() as cursor:
            cursor.executemany(translated(statement), rows)

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
            except GONE as error:
                self._drop()
                if time.monotonic() > deadline:
                    raise failure(error, self.where) from error
                time.sleep(min(attempt * 0.05, 1))
            except psycopg.Error as error:
                raise failure(error, self.where) from error
        raise AssertionError  # it counts for ever

    def connect(self) -> psycopg.Connection[Any]:
        """A connection to the server, of whose tables nothing is known yet."""
        self._is_made = False
        return connect(self.url)

    def _has_tables(self, connection: psycopg.Connection[Any]) -> bool:
        """Whether the tables are there; older ones are brought up to date."""
        if not self._is_made and version_of(connection) > 0:
            try:
                prepare(connection, self.where)
            except LedgerError:  # there is nothing to be done with it
                self._drop()
                raise
            self._is_made = True
        return self._is_made


class _Still(StillRows):
    """The rows of a moment."""

    def __init__(self, url: str, where: str, *, empty: bool) -> None:
        self.url = url
        self._where = where
        try:
            self._connection = connect(url)
            self._connection.execute("begin" if empty else "begin isolation level repeatable read read only")
            if empty:
                prepare(self._connection, where)  # never committed
        except psycopg.Error as error:
            raise failure(error, where) from error

    def fetch(self, statement: str, *bound: object) -> list[Any]:
        """What a statement finds, as tuples."""
        try:
            return self._connection.execute(translated(statement), bound).fetchall()
        except psycopg.Error as error:
            raise failure(error, self._where) from error

    def damage(self) -> list[Finding]:
        """A server looks after its own files."""
        return []

    def close(self) -> None:
        """Let go of the server."""
        with suppress(psycopg.Error):
            self._connection.close()


def connect(url: str) -> psycopg.Connection[Any]:
    """A connection on which each statement stands by itself unless a transaction is begun."""
    return psycopg.connect(
        url,
        autocommit=True,
        connect_timeout=10,
        application_name="nexus",
        options="-c search_path=nexus -c synchronous_commit=on",
    )


@cache
def translated(statement: str) -> str:
    """A statement of _statements.py in the server's words."""
    return statement.replace("?", "%s").replace("instr(", "strpos(")


def _without_secret(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
