"""The log beside a file: what was written last, until it is copied into the file."""

from __future__ import annotations

import random
import sqlite3
import time
from contextlib import closing, suppress
from typing import TYPE_CHECKING

from nexus_plugins.ledger import _statements as sql
from nexus_plugins.ledger.sqlite.connecting import PATIENCE, connect

if TYPE_CHECKING:
    from pathlib import Path

_LONG = 4 * 1024 * 1024
_AT_MOST = 64
"""A log that was copied keeps its length and is written from its start again: for so many writes that says nothing."""


def give_up_log(path: Path) -> bool:
    """Have a file kept with a journal in place of a log; returns whether it had a log.

    Raises:
        sqlite3.OperationalError: It cannot be written, or another program has it open.
    """
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            with closing(connect(path)) as connection:
                ((mode,),) = connection.execute("pragma journal_mode").fetchall()
                if mode == "wal":
                    connection.execute("pragma journal_mode = delete")
                return bool(mode == "wal")
        except sqlite3.OperationalError as error:  # of two that try at once, neither can; SQLite does not wait for that
            if not error.sqlite_errorname.startswith("SQLITE_BUSY") or time.monotonic() > deadline:
                raise
        time.sleep(random.uniform(0.01, 0.1))  # noqa: S311 - so that they try at different times


def purge(connection: sqlite3.Connection) -> bool:
    """Write the file anew without anything that was erased, and empty its log.

    Freed pages and the gaps inside pages keep what lay there, so that the whole file is rebuilt. A connection that is
    still reading an older state keeps the log from being emptied: then the next program that opens the ledger does it.

    Returns:
        True if nothing that was erased is left in the file or its log.

    Raises:
        sqlite3.Error: There is no room for a second copy, or the file is in use.
    """
    connection.execute("pragma secure_delete = on")
    connection.execute("vacuum")
    if not _empty_log(connection):
        return False
    connection.execute(sql.NOTE_PURGED)
    return _empty_log(connection)


def _empty_log(connection: sqlite3.Connection) -> bool:
    """Copy the log into the file and cut it off; True if that was possible."""
    ((is_busy, _, _),) = connection.execute("pragma wal_checkpoint(truncate)").fetchall()
    return not is_busy


class Log:
    """Keeps the log of a file short.

    SQLite would copy it after a commit, while others commit: before 3.51.3, one that begins the log anew at that moment
    can damage the file. Here nobody can: whoever copies it holds the lock to write.

    Args:
        path: The file whose log it is.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._length = 0
        self._writes = 0

    def shorten(self, connection: sqlite3.Connection) -> None:
        """Copy it into the file if it has become long; whatever keeps it from that, the next to write tries again.

        Args:
            connection: One that has just written.
        """
        self._writes += 1
        length = self._measure()
        if length < _LONG or (length == self._length and self._writes < _AT_MOST):
            return
        self._length, self._writes = length, 0
        with suppress(sqlite3.Error):
            try:
                connection.execute("begin immediate")
                with closing(connect(self._path)) as other:  # one that writes cannot copy
                    other.execute("pragma wal_checkpoint(passive)")
            finally:
                if connection.in_transaction:
                    connection.execute("rollback")

    def _measure(self) -> int:
        try:
            return self._path.with_name(self._path.name + "-wal").stat().st_size
        except OSError:
            return 0
