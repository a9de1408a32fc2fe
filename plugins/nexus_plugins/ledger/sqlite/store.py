"""The rows of a file, for many threads and processes."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from nexus_core import Finding
from nexus_plugins.ledger import _statements as sql
from nexus_plugins.ledger._connected import ConnectedRows
from nexus_plugins.ledger._store import StillRows
from nexus_plugins.ledger.sqlite import schema
from nexus_plugins.ledger.sqlite.connecting import connect
from nexus_plugins.ledger.sqlite.failures import TROUBLE, failure
from nexus_plugins.ledger.sqlite.file import (
    connect_to_look,
    connect_to_nothing,
    ensure,
    is_missing,
    prepare_to_look,
    version_of,
)
from nexus_plugins.ledger.sqlite.forking import GATE
from nexus_plugins.ledger.sqlite.log import Log, purge
from nexus_plugins.ledger.sqlite.migrating import migrate
from nexus_plugins.ledger.sqlite.salvage import salvage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from nexus_core.plugin import Salvaged

T = TypeVar("T")

_MADE = "select type, name, sql from sqlite_master"
_MOST_FAULTS = 20
"""So many places in a damaged file are named."""


class SqliteStore(ConnectedRows[sqlite3.Connection]):
    """The rows of a file.

    Args:
        url: What it was asked for by.
        path: The file; made when something is first written.
    """

    erasure_note = ""

    def __init__(self, url: str, path: Path) -> None:
        super().__init__()
        self.url = url
        self.path = path
        self._log = Log(path)
        GATE.watch(self)

    def read(self, work: Callable[[], T]) -> T:
        """Do something that only looks; it makes no file."""
        with GATE, self.lock:
            try:
                if self._connection is None and not self._is_closed and is_missing(self.path):
                    return self._look(connect_to_nothing(), work)
                try:
                    self._open()
                except sqlite3.OperationalError as error:  # it cannot be written; perhaps it can be read
                    return self._look(connect_to_look(self.path, error), work)
                return work()
            except TROUBLE as error:
                raise failure(error, self.path) from error

    def write(self, work: Callable[[], T], *, session: str = "") -> T:  # noqa: ARG002 - one writes at a time
        """Do something in one transaction, on disk when this returns."""
        with GATE, self.lock:
            try:
                connection = self._open()
                try:
                    connection.execute("begin immediate")  # Ctrl-C while it waits is heard when it has begun
                    version_of(self.path, connection)  # a later Nexus may have come since it was opened
                    result = work()
                    connection.execute("commit")
                except BaseException:
                    self._take_back(connection)
                    raise
                self._log.shorten(connection)
            except TROUBLE as error:
                raise failure(error, self.path) from error
            return result

    @contextmanager
    def snapshot(self) -> Iterator[_Still]:
        """The rows of this moment, by a connection of their own that also reads what is no text any more."""
        still = _Still(self.url, self.path)
        try:
            yield still
        finally:
            still.close()

    def fetch(self, statement: str, *bound: object) -> list[Any]:
        """What a statement finds, as tuples."""
        return self._open().execute(statement, bound).fetchall()

    def run(self, statement: str, *bound: object) -> None:
        """Run a statement that changes something."""
        self._open().execute(statement, bound)

    def run_many(self, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Run such a statement for each row."""
        self._open().executemany(statement, rows)

    def salvage(self) -> Salvaged:
        """Everything in the file that looks like a row of a ledger; it need not be one that SQLite opens."""
        with GATE, self.lock:
            self._drop()  # the file is read without SQLite, see connecting.py
            return salvage(self.path)

    def _look(self, connection: sqlite3.Connection, work: Callable[[], T]) -> T:
        """Do something with a connection that serves this once: the next may find a file that can be written."""
        self._connection, self._process = connection, os.getpid()
        try:
            return work()
        finally:
            self._drop()

    def connect(self) -> sqlite3.Connection:
        """A connection to the file, which is made or brought up to date."""
        ensure(self.path)
        connection = connect(self.path)
        try:
            migrate(self.path, connection)
            if connection.execute(sql.UNPURGED).fetchall():  # a program that deleted something was killed
                with suppress(sqlite3.Error):
                    purge(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def wait_for_writers(self) -> None:
        """A transaction that writes has the file to itself."""

    def copies(self) -> list[str]:
        """The files that migrations left beside this one."""
        beside = (self.path.with_name(f"{self.path.name}.v{number}") for number in range(1, schema.VERSION))
        return [str(path) for path in beside if not is_missing(path)]

    def drop_session(self, name: str) -> None:
        """Remove a session; what is freed is overwritten, see `purge`."""
        self._open().execute("pragma secure_delete = on")
        super().drop_session(name)

    def purge(self) -> bool:
        """Overwrite what was erased in the file and its log; False while another program reads an older state."""
        with GATE, self.lock:
            try:
                return purge(self._open())
            except TROUBLE as error:
                raise failure(error, self.path) from error

    def close(self) -> None:
        """Let go of the file; a second call does nothing."""
        with GATE:
            super().close()

    def leave(self) -> None:
        """Close the connection of the process that this one was forked from."""
        if self._connection is not None:
            self._connection.close()
        super().leave()

    def _take_back(self, connection: sqlite3.Connection) -> None:
        try:
            if connection.in_transaction:
                connection.execute("rollback")
        except sqlite3.Error:
            self._drop()  # the next to come opens it anew, and SQLite takes back what is half done


class _Still(StillRows):
    """The rows of a moment, and what SQLite itself finds wrong with them."""

    def __init__(self, url: str, path: Path) -> None:
        self.url = url
        self._path = path
        GATE.watch(self)
        with GATE:
            try:
                self._connection = connect_to_nothing() if is_missing(path) else _connect_or_look(path)
                self._connection.text_factory = lambda text: text.decode("utf-8", "replace")
                self._connection.execute("begin")
                self._version = version_of(path, self._connection)
                prepare_to_look(path, self._connection)
            except TROUBLE as error:
                raise failure(error, path) from error

    def fetch(self, statement: str, *bound: object) -> list[Any]:
        """What a statement finds, as tuples."""
        with GATE:
            try:
                return self._connection.execute(statement, bound).fetchall()
            except TROUBLE as error:
                raise failure(error, self._path) from error

    def damage(self, session: str | None = None) -> Iterator[Finding]:
        """Return what SQLite finds wrong with the file, and the tables and names that are not as Nexus made them."""
        if session is None:
            for (fault,) in self.fetch("select * from pragma_integrity_check(?)", _MOST_FAULTS):
                if fault != "ok":
                    yield Finding("ledger-damaged", f"the file is damaged: {fault}", self._path)
            yield from self._schema_findings()
        yield from self.name_findings(session)

    def _schema_findings(self) -> Iterator[Finding]:
        """Return the tables, indexes and triggers that are gone or were changed: triggers keep steps from changes."""
        if self._version < schema.VERSION:
            return
        with closing(connect_to_nothing()) as fresh:
            made = {(kind, name): text for kind, name, text in fresh.execute(_MADE).fetchall()}
        there = {(kind, name): text for kind, name, text in self.fetch(_MADE)}
        for kind, name in sorted(made):
            if there.get((kind, name)) != made[kind, name]:
                fault = "was changed" if (kind, name) in there else "is gone"
                yield Finding("ledger-damaged", f"the {kind} {name!r} of the ledger {fault}", self._path)

    def close(self) -> None:
        """Let go of the file."""
        with GATE, suppress(sqlite3.Error, AttributeError):  # the second, when it could not even be opened
            self._connection.close()

    def leave(self) -> None:
        """Close the connection; the rows are those of another process."""
        self.close()


def _connect_or_look(path: Path) -> sqlite3.Connection:
    try:
        ensure(path)
        return connect(path)
    except sqlite3.OperationalError as error:
        return connect_to_look(path, error)
