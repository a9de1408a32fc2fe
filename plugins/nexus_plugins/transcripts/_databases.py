"""SQLite databases of other programs, opened so that nothing is written and no other file is read.

A database is opened as immutable: SQLite takes no lock, creates no file beside it, and does not read the write-ahead
log.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from nexus_core.plugin.transcripts import TranscriptError

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator
    from pathlib import Path

_MAX_ROWS = 200_000
"""Rows that are read of one table, so that a hostile database ends."""


class Database:
    """A database of another program, for reading."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def has_table(self, name: str) -> bool:
        """True if there is such a table. A view does not count: reading it would run a query of the file."""
        query = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
        return self._connection.execute(query, (name,)).fetchone() is not None

    def read_rows(self, table: str, **equal: object) -> list[dict[str, Any]]:
        """Return rows of a table in the order of insertion, with bytes decoded.

        Args:
            table: The table, a name of the reader's own.
            equal: Values that columns must have.
        """
        where = " AND ".join(f"{column} = ?" for column in equal)
        query = f"SELECT * FROM {table}{f' WHERE {where}' if where else ''} ORDER BY rowid LIMIT {_MAX_ROWS}"  # noqa: S608 - names of our own
        cursor = self._connection.execute(query, tuple(equal.values()))
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, map(_decode, row), strict=True)) for row in cursor]

    def read_pairs(self, table: str, prefix: str) -> list[tuple[str, str]]:
        """Return key and value of the rows of a key-value table whose key starts with a prefix."""
        query = f"SELECT key, value FROM {table} WHERE key >= ? AND key < ? ORDER BY rowid LIMIT {_MAX_ROWS}"  # noqa: S608 - names of our own
        found = self._connection.execute(query, (prefix, prefix[:-1] + chr(ord(prefix[-1]) + 1)))
        pairs = [(_decode(key), _decode(value)) for key, value in found]
        return [(key, value) for key, value in pairs if isinstance(key, str) and isinstance(value, str)]


@contextmanager
def open_database(path: Path, *tables: str) -> Iterator[Database | None]:
    """Open a database for reading, or yield None if it lacks one of the tables.

    Raises:
        TranscriptError: It cannot be read.
    """
    import sqlite3  # most transcripts are not in a database

    if path.is_symlink() or not path.is_file():
        yield None
        return
    connection = None
    try:
        connection = sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1", uri=True)
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA query_only = ON")
        database = Database(connection)
        yield database if all(map(database.has_table, tables)) else None
    except sqlite3.Error as error:
        raise TranscriptError(
            f"the database cannot be read: {error}",
            code="unreadable-database",
            path=str(path),
            hint="copy it while its program does not run, and name the copy",
        ) from None
    finally:
        if connection is not None:
            connection.close()


def _decode(value: object) -> object:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
