"""SQLite connections: pragmas, error messages, and safety across forks.

Nothing else may open the file while this process has a connection to it: when any descriptor of a file is closed, POSIX
drops every lock that the process has on it, and another program would assume that it owns the log. SQLite handles that
for its own descriptors by closing them later.

A process forks only while none of its threads is inside SQLite, and the child closes the connections it inherited. A
mutex that a thread holds inside SQLite would stay locked in the child, where that thread does not exist. And SQLite
records in memory which locks the process has on a file: a child inherits the records without the locks. As long as an
inherited connection is open, it takes no lock of its own, and another program may delete the log that it writes to.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from threading import Condition, local
from typing import TYPE_CHECKING, Protocol
from weakref import WeakSet

from nexus_core.plugin.ledgers import LedgerError, LedgerUnreachableError

if TYPE_CHECKING:
    from pathlib import Path

SQLITE_ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""Errors of SQLite; UnicodeDecodeError occurs when its message quotes a damaged file."""

_INTACT_NOTE = "what was recorded before is intact"
_MESSAGES_AND_HINTS = {
    "SQLITE_FULL": ("the disk is full", f"free some space and try again; {_INTACT_NOTE}"),
    "SQLITE_IOERR": (
        "the disk refuses to read or write",
        f"free some space or check the disk, and try again; {_INTACT_NOTE}",
    ),
    "SQLITE_READONLY": ("it cannot be written", "make the file and its directory writable"),
    "SQLITE_CANTOPEN": ("it cannot be opened", "create its directory, and make it readable and writable"),
    "SQLITE_PERM": ("it may not be opened", "make the file and its directory readable and writable"),
    "SQLITE_BUSY": ("another program keeps it locked", "try again; `fuser` shows which programs have it open"),
    "SQLITE_CORRUPT": (
        "it is damaged",
        "`nexus ledger verify` shows where, `nexus ledger repair NEW` saves what is intact into a new file",
    ),
    "SQLITE_NOTADB": ("it is not a ledger", "name another file; this one is left as it is"),
}

_UNREACHABLE_ERRORS = ("SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_BUSY")
"""Errors that do not depend on the file's content."""


def build_sqlite_error(error: sqlite3.Error | UnicodeDecodeError, path: Path) -> LedgerError:
    """Return the ledger error for an error of SQLite."""
    name = getattr(error, "sqlite_errorname", "") or "SQLITE_CORRUPT" * isinstance(error, UnicodeDecodeError)
    for known, (what, hint) in _MESSAGES_AND_HINTS.items():
        if name.startswith(known):
            why = (
                _describe_free_space(path)
                if known in ("SQLITE_FULL", "SQLITE_IOERR")
                else _describe_write_protection(path)
            )
            kind = LedgerUnreachableError if known in _UNREACHABLE_ERRORS else LedgerError
            return kind(f"the ledger cannot be used: {what}{why} ({error})", where=str(path), hint=hint)
    return LedgerError(f"the ledger cannot be used: {error}", where=str(path))


def build_system_error(error: OSError, path: Path) -> LedgerUnreachableError:
    """Return the ledger error for an error of the operating system."""
    hint = "check that the directory exists, and can be read and written"
    return LedgerUnreachableError(f"the ledger cannot be used: {error.strerror}", where=str(path), hint=hint)


def _describe_free_space(path: Path) -> str:
    try:
        return f", {shutil.disk_usage(path.parent).free:,} bytes are free"
    except OSError:
        return ""


def _describe_write_protection(path: Path) -> str:
    """Describe why a file cannot be written, to append to a sentence, or return ""."""
    try:
        if os.statvfs(path.parent).f_flag & os.ST_RDONLY:
            return ", its file system is read only"
    except (OSError, AttributeError):  # no such directory, or a platform without statvfs
        return ""
    return "" if os.access(path.parent, os.W_OK) else ", its directory may not be written"


LOCK_TIMEOUT_SECONDS = 60.0
"""Seconds to wait for the lock while other programs write."""

_IMMUTABLE_MODE = "ro&immutable=1"
_CONNECTION_PRAGMAS = (
    "pragma synchronous = full",
    "pragma foreign_keys = on",
    "pragma trusted_schema = off",
    "pragma cell_size_check = on",
    "pragma mmap_size = 0",  # damage of a mapped file would change memory before it can be checked
    "pragma wal_autocheckpoint = 0",  # checkpoints are explicit, under the write lock: see WriteAheadLog
)


def connect_to_file(path: Path, *, mode: str = "rw") -> sqlite3.Connection:
    """Open a connection to an existing file."""
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    connection = sqlite3.connect(
        uri, uri=True, timeout=LOCK_TIMEOUT_SECONDS, isolation_level=None, check_same_thread=False
    )
    try:
        for statement in _CONNECTION_PRAGMAS:
            connection.execute(statement)
    except BaseException:
        connection.close()
        raise
    return connection


def connect_immutable(path: Path) -> sqlite3.Connection:
    """Open a connection that takes no lock, ignores the log and changes nothing.

    It does so even if other programs write.
    """
    return connect_to_file(path, mode=_IMMUTABLE_MODE)


def read_application_id(path: Path) -> int:
    """Return the application id in the header of a SQLite file."""
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode={_IMMUTABLE_MODE}", uri=True)) as connection:
        ((application,),) = connection.execute("pragma application_id").fetchall()
        return int(application)


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
        self._inside = int(self._depth > 0)

    @property
    def _depth(self) -> int:
        """The number of times that this thread has entered."""
        depth: int = getattr(self._thread, "depth", 0)
        return depth

    def watch(self, holder: ConnectionHolder) -> None:
        """Register an object whose connection is closed in forked processes."""
        self._holders.add(holder)

    def __enter__(self) -> None:
        if not self._depth:
            with self._changed:
                self._changed.wait_for(lambda: not self._is_forking)
                self._inside += 1
        self._thread.depth = self._depth + 1

    def __exit__(self, *_error: object) -> None:
        self._thread.depth = self._depth - 1
        if not self._depth:
            with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    def shut(self) -> None:
        """Before a fork, wait until no other thread is inside and let none in."""
        with self._changed:
            self._changed.wait_for(lambda: not self._is_forking)
            self._is_forking = True
            self._changed.wait_for(lambda: self._inside == (self._depth > 0))

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
