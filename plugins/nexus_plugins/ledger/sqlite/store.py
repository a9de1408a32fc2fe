"""SqliteStore: the rows of a file, for many threads and processes, and snapshots.

A process forks only while none of its threads is inside SQLite, and the child closes the connections it inherited. A
mutex that a thread holds inside SQLite would stay locked in the child, where that thread does not exist. And SQLite
records in memory which locks the process has on a file: a child inherits the records without the locks. As long as an
inherited connection is open, it takes no lock of its own, and another program may delete the log that it writes to.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, contextmanager, suppress
from threading import Condition, local
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from weakref import WeakSet

from nexus_core import Finding
from nexus_core.plugin.ledgers import LedgerError
from nexus_plugins.ledger import _statements as sql
from nexus_plugins.ledger._rows import ConnectedRows, SnapshotRows
from nexus_plugins.ledger.sqlite import schema
from nexus_plugins.ledger.sqlite.database import (
    SQLITE_ERRORS,
    WriteAheadLog,
    build_sqlite_error,
    connect_read_only,
    connect_to_empty_ledger,
    connect_to_file,
    ensure_file,
    is_missing,
    migrate_file,
    prepare_read_only,
    purge_erased_content,
    read_schema_version,
)
from nexus_plugins.ledger.sqlite.salvage import salvage_rows
from nexus_plugins.ledger.sqlite.step_index import SqliteStepIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from nexus_core.plugin.ledgers import Salvaged

T = TypeVar("T")

_SCHEMA_QUERY = "select type, name, sql from sqlite_master"
_MAX_REPORTED_ERRORS = 20
"""Maximum number of reported errors in a damaged file."""


class ConnectionHolder(Protocol):
    """An object with a connection that a forked process must not use."""

    def leave(self) -> None:
        """Close an inherited connection."""


class ForkGate:
    """A context manager around every use of SQLite that keeps forks out.

    A thread that forks waits until all others have left SQLite, and they wait until it has forked.
    """

    def __init__(self) -> None:
        self._holders: WeakSet[ConnectionHolder] = WeakSet()
        self._thread = local()
        self._reset()

    def _reset(self) -> None:
        self._changed = Condition()
        self._is_forking = False
        self._inside = int(self.depth > 0)

    @property
    def depth(self) -> int:
        """The number of times that this thread has entered."""
        depth: int = getattr(self._thread, "depth", 0)
        return depth

    def watch(self, holder: ConnectionHolder) -> None:
        """Register an object whose connection is closed in forked processes."""
        self._holders.add(holder)

    def __enter__(self) -> None:
        if not self.depth:
            with self._changed:
                self._changed.wait_for(lambda: not self._is_forking)
                self._inside += 1
        self._thread.depth = self.depth + 1

    def __exit__(self, *_error: object) -> None:
        self._thread.depth = self.depth - 1
        if not self.depth:
            with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    def shut(self) -> None:
        """Before a fork, wait until no other thread is inside and let none in."""
        with self._changed:
            self._changed.wait_for(lambda: not self._is_forking)
            self._is_forking = True
            self._changed.wait_for(lambda: self._inside == (self.depth > 0))

    def open(self) -> None:
        """After a fork, let the other threads of the parent continue."""
        with self._changed:
            self._is_forking = False
            self._changed.notify_all()

    def reset_in_child(self) -> None:
        """After a fork, reset the state and close inherited connections of the child.

        The child has one thread.
        """
        self._reset()
        for holder in list(self._holders):
            holder.leave()


FORK_GATE = ForkGate()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=FORK_GATE.shut, after_in_parent=FORK_GATE.open, after_in_child=FORK_GATE.reset_in_child)


class SqliteStore(ConnectedRows[sqlite3.Connection]):
    """The rows of a file.

    Args:
        url: The URL of the ledger.
        path: The file; created by the first write.
    """

    erasure_note = ""

    def __init__(self, url: str, path: Path) -> None:
        super().__init__()
        self.url = url
        self.path = path
        self._log = WriteAheadLog(path)
        self._identity: tuple[int, int] | None = None
        self._step_index = SqliteStepIndex(self)
        FORK_GATE.watch(self)

    def read(self, work: Callable[[], T]) -> T:
        """Call a function that reads rows. It creates no file."""
        with FORK_GATE, self.lock:
            try:
                if self._connection is None and not self._is_closed and is_missing(self.path):
                    return self._read_once(connect_to_empty_ledger(), work)
                try:
                    self._open()
                except sqlite3.OperationalError as error:  # not writable, but perhaps readable
                    return self._read_once(connect_read_only(self.path, error), work)
                return work()
            except SQLITE_ERRORS as error:
                raise build_sqlite_error(error, self.path) from error

    def write(self, work: Callable[[], T], *, session: str = "") -> T:  # noqa: ARG002 - SQLite has one writer at a time
        """Call a function in one transaction, which is on disk when this returns."""
        with FORK_GATE, self.lock:
            try:
                connection = self._open()
                try:
                    connection.execute("begin immediate")  # Ctrl-C takes effect only after the wait for the lock
                    self._require_same_file()
                    read_schema_version(self.path, connection)  # a newer Nexus may have migrated it meanwhile
                    result = work()
                    connection.execute("commit")
                except BaseException:
                    self._roll_back(connection)
                    raise
                self._log.shorten(connection)
            except SQLITE_ERRORS as error:
                raise build_sqlite_error(error, self.path) from error
            return result

    def write_without_sync(self, work: Callable[[], T]) -> T:
        """Call a function in one transaction, which a power failure may undo as a whole.

        With the write-ahead log, the next durable transaction makes this one durable, too.
        """
        with FORK_GATE, self.lock:
            try:
                connection = self._open()
                ((mode,),) = connection.execute("pragma journal_mode").fetchall()
                if mode == "wal":
                    connection.execute("pragma synchronous = normal")
                return self.write(work)
            except SQLITE_ERRORS as error:
                raise build_sqlite_error(error, self.path) from error
            finally:
                if self._connection is not None:
                    with suppress(sqlite3.Error):
                        self._connection.execute("pragma synchronous = full")

    def read_version(self) -> object:
        """Return a value that differs after every change of the file, inside `read`."""
        connection = self._connection or self._open()
        ((version,),) = connection.execute("pragma data_version").fetchall()  # changes of other connections
        return connection, version, connection.total_changes

    def step_index(self) -> SqliteStepIndex:
        """Return the word index of the file."""
        return self._step_index

    def erase_steps(self, names: Sequence[str]) -> None:
        """Empty messages and data of steps, and remove their words from the index."""
        try:
            self._step_index.forget(names)
        except Exception:  # noqa: BLE001 - a damaged index may raise anything, and prevents no deletion
            self._step_index.drop_tables()
        super().erase_steps(names)

    @contextmanager
    def snapshot(self) -> Iterator[SqliteSnapshot]:
        """Yield a snapshot over its own connection, which also reads invalid UTF-8."""
        snapshot = SqliteSnapshot(self.url, self.path)
        try:
            yield snapshot
        finally:
            snapshot.close()

    def fetch(self, statement: str, *bound: object) -> list[Any]:
        """Run a query and return its rows as tuples."""
        return (self._connection or self._open()).execute(statement, bound).fetchall()

    def run(self, statement: str, *bound: object) -> None:
        """Run a statement that writes."""
        (self._connection or self._open()).execute(statement, bound)

    def run_many(self, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Run a statement that writes once for each row."""
        (self._connection or self._open()).executemany(statement, rows)

    def salvage(self) -> Salvaged:
        """Return every row that SQLite can read, intact or not."""
        with FORK_GATE, self.lock:
            return salvage_rows(self.path)

    def _read_once(self, connection: sqlite3.Connection, work: Callable[[], T]) -> T:
        """Call a function with a temporary connection.

        The next call may find a writable file.
        """
        self._connection, self._process = connection, os.getpid()
        try:
            return work()
        finally:
            self._drop()

    def connect(self) -> sqlite3.Connection:
        """Open a connection to the file, creating or migrating it first."""
        ensure_file(self.path)
        connection = connect_to_file(self.path)
        try:
            migrate_file(self.path, connection)
            if connection.execute(sql.UNPURGED).fetchall():  # a program was killed during a deletion
                with suppress(sqlite3.Error):
                    purge_erased_content(connection)
        except BaseException:
            connection.close()
            raise
        self._identity = _identify_file(self.path)
        return connection

    def _require_same_file(self) -> None:
        """Raise if the path leads to another file than the open one, which SQLite would go on to write unseen."""
        if _identify_file(self.path) != self._identity:
            raise LedgerError(
                "the ledger's file was deleted, moved or replaced while it was open; nothing was written",
                where=str(self.path),
                hint="put the file back, or start the program again to use what is there now",
            )

    def wait_for_writers(self) -> None:
        """Do nothing: SQLite has one writer at a time."""

    def copies(self) -> list[str]:
        """Return the paths of the backups that migrations left beside the file."""
        beside = (self.path.with_name(f"{self.path.name}.v{number}") for number in range(1, schema.SCHEMA_VERSION))
        return [str(path) for path in beside if not is_missing(path)]

    def drop_session(self, name: str) -> None:
        """Delete a session. Freed space is overwritten, see `purge`."""
        self._open().execute("pragma secure_delete = on")
        super().drop_session(name)

    def purge(self) -> bool:
        """Overwrite erased content in the file and its log.

        Return False while another program reads an older state.
        """
        with FORK_GATE, self.lock:
            try:
                return purge_erased_content(self._open())
            except SQLITE_ERRORS as error:
                raise build_sqlite_error(error, self.path) from error

    def close(self) -> None:
        """Close the file. A second call does nothing."""
        with FORK_GATE:
            super().close()

    def leave(self) -> None:
        """Close the connection inherited from the parent process."""
        if self._connection is not None:
            self._connection.close()
        super().leave()

    def _roll_back(self, connection: sqlite3.Connection) -> None:
        try:
            if connection.in_transaction:
                connection.execute("rollback")
        except sqlite3.Error:
            self._drop()  # SQLite rolls back when the file is opened again


class SqliteSnapshot(SnapshotRows):
    """A read-only snapshot of the rows, with SQLite's own integrity check."""

    def __init__(self, url: str, path: Path) -> None:
        self.url = url
        self._path = path
        FORK_GATE.watch(self)
        with FORK_GATE:
            try:
                self._connection = connect_to_empty_ledger() if is_missing(path) else _connect_or_read_only(path)
                self._connection.execute("begin")
                self._version = read_schema_version(path, self._connection)
                prepare_read_only(path, self._connection)
            except SQLITE_ERRORS as error:
                self.close()
                raise build_sqlite_error(error, path) from error
            except BaseException:
                self.close()
                raise

    def fetch(self, statement: str, *bound: object) -> list[Any]:
        """Run a query and return its rows as tuples."""
        with FORK_GATE:
            try:
                return self._fetch(statement, bound)
            except SQLITE_ERRORS as error:
                raise build_sqlite_error(error, self._path) from error

    def _fetch(self, statement: str, bound: tuple[object, ...]) -> list[Any]:
        try:
            return self._connection.execute(statement, bound).fetchall()
        except sqlite3.OperationalError:  # perhaps some text is not UTF-8 any more; a function for each text takes long
            self._connection.text_factory = lambda text: text.decode("utf-8", "replace")
            try:
                return self._connection.execute(statement, bound).fetchall()
            finally:
                self._connection.text_factory = str

    def damage(self, session: str | None = None) -> Iterator[Finding]:
        """Yield findings of SQLite's integrity check, and changed tables and names."""
        if session is None:
            for (message,) in self.fetch("select * from pragma_integrity_check(?)", _MAX_REPORTED_ERRORS):
                if message != "ok":
                    yield Finding("ledger-damaged", f"the file is damaged: {message}", self._path)
            yield from self._schema_findings()
        yield from self.name_findings(session)

    def _schema_findings(self) -> Iterator[Finding]:
        """Yield findings about missing or changed tables, indexes and triggers, and about additional triggers.

        Triggers protect steps from changes. Another program's trigger could change rows with every write.
        """
        if self._version < schema.SCHEMA_VERSION:
            return
        with FORK_GATE, closing(connect_to_empty_ledger()) as fresh:
            expected = {(kind, name): text for kind, name, text in fresh.execute(_SCHEMA_QUERY).fetchall()}
        actual = {(kind, name): text for kind, name, text in self.fetch(_SCHEMA_QUERY)}
        for kind, name in sorted(expected):
            if actual.get((kind, name)) != expected[kind, name]:
                problem = "was changed" if (kind, name) in actual else "is gone"
                yield Finding("ledger-damaged", f"the {kind} {name!r} of the ledger {problem}", self._path)
        for kind, name in sorted(actual.keys() - expected.keys()):
            if kind == "trigger":
                message = f"the trigger {name!r} is not of Nexus, and may change what is written"
                yield Finding("ledger-damaged", message, self._path)

    def close(self) -> None:
        """Close the connection."""
        with FORK_GATE, suppress(sqlite3.Error, AttributeError):  # AttributeError: it could not be opened
            self._connection.close()

    def leave(self) -> None:
        """Close the connection inherited from the parent process."""
        self.close()


def _identify_file(path: Path) -> tuple[int, int] | None:
    """Return device and inode of the file at a path, or None if there is none."""
    try:
        status = os.stat(path)  # noqa: PTH116 - every write needs it
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _connect_or_read_only(path: Path) -> sqlite3.Connection:
    try:
        ensure_file(path)
        return connect_to_file(path)
    except sqlite3.OperationalError as error:
        return connect_read_only(path, error)
