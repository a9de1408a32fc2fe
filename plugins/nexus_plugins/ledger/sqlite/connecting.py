"""Connections to a file, with what has to be said on each.

Nothing else may open the file while somebody in this process has a connection to it: when any descriptor of a file is
closed, POSIX takes away every lock that the process has on it, and another program would take the log for its own.
SQLite knows that, and closes later.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

PATIENCE = 60.0
"""Seconds to wait for other writers."""

_AS_IT_IS = "ro&immutable=1"
_SAID = (
    "pragma synchronous = full",
    "pragma foreign_keys = on",
    "pragma trusted_schema = off",
    "pragma cell_size_check = on",
    "pragma mmap_size = 0",  # what is wrong in the file would be wrong in memory before anybody can look
    "pragma wal_autocheckpoint = 0",  # log.py does it, at a moment when nobody else writes
)


def connect(path: Path, *, mode: str = "rw") -> sqlite3.Connection:
    """A connection to a file that is there."""
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    connection = sqlite3.connect(uri, uri=True, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
    try:
        for statement in _SAID:
            connection.execute(statement)
    except BaseException:
        connection.close()
        raise
    return connection


def connect_as_it_is(path: Path) -> sqlite3.Connection:
    """A connection that sees the file as if nobody wrote to it: it takes no lock, reads no log, changes nothing."""
    return connect(path, mode=_AS_IT_IS)


def application_of(path: Path) -> int:
    """Whose file it says it is."""
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode={_AS_IT_IS}", uri=True)) as connection:
        ((application,),) = connection.execute("pragma application_id").fetchall()
        return int(application)
