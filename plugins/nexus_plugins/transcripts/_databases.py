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
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_MAX_ROWS = 2_000_000
"""Rows that are read of one database, so that a hostile one ends."""
_MAX_BYTES = 1 << 28
"""Bytes that are read of one database: as many as a transcript may have."""
_MAX_VALUE_BYTES = 1 << 26


class Database:
    """A database of another program, for reading."""

    def __init__(self, connection: sqlite3.Connection, path: str) -> None:
        self._connection = connection
        self._path = path
        self._rows_left = _MAX_ROWS
        self._bytes_left = _MAX_BYTES

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
        names = self._list_columns(table)
        columns = ", ".join('"' + name.replace('"', '""') + '"' for name in names)
        where = " AND ".join(f"{column} = ?" for column in equal)
        query = f"SELECT {columns} FROM {table}{f' WHERE {where}' if where else ''} ORDER BY rowid"  # noqa: S608 - names of our own, the others are quoted
        cursor = self._connection.execute(query, tuple(equal.values()))
        return [dict(zip(names, row, strict=True)) for row in self._read(cursor)]

    def read_unique(self, table: str, **equal: object) -> list[dict[str, Any]]:
        """Return rows as `read_rows` does; of those with the same `id`, the first, since others refer to it by that."""
        found: dict[object, dict[str, Any]] = {}
        for row in self.read_rows(table, **equal):
            found.setdefault(row.get("id"), row)
        return list(found.values())

    def read_pairs(self, table: str, prefix: str) -> list[tuple[str, str]]:
        """Return key and value of the rows of a key-value table whose key starts with a prefix."""
        query = f"SELECT key, value FROM {table} WHERE key >= ? AND key < ? ORDER BY rowid"  # noqa: S608 - names of our own
        found = self._connection.execute(query, (prefix, prefix[:-1] + chr(ord(prefix[-1]) + 1)))
        return [(key, value) for key, value in self._read(found) if isinstance(key, str) and isinstance(value, str)]

    def _list_columns(self, table: str) -> list[str]:
        """Return the columns that are stored. Generated ones do not count: reading them would run code of the file."""
        rows = self._connection.execute(f"PRAGMA table_info({table})")
        return [str(_decode(row[1])) for row in rows]

    def _read(self, rows: Iterable[tuple[object, ...]]) -> Iterator[tuple[object, ...]]:
        """Yield rows with bytes decoded.

        Raises:
            TranscriptError: More is read of the database than a transcript may have.
        """
        for row in rows:
            self._rows_left -= 1
            self._bytes_left -= sum(len(value) for value in row if isinstance(value, bytes))
            if self._rows_left < 0 or self._bytes_left < 0:
                raise TranscriptError(
                    f"more than {_MAX_BYTES} bytes or {_MAX_ROWS:,} rows are in the database",
                    code="too-large",
                    path=self._path,
                    hint="export single sessions with its program, and name these files",
                )
            yield tuple(map(_decode, row))


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
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE_BYTES)
        connection.text_factory = bytes  # a text may be no UTF-8
        database = Database(connection, str(path))
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
