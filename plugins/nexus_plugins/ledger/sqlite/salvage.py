"""Rows of a damaged SQLite file, read by SQL around the pages that SQLite cannot read.

A row is found if its own pages, and the pages above them in its table, can be read; its digest decides later whether it
is intact. If the first page is damaged, or a table is lost from the schema, SQLite's own `.recover` is the way.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

from nexus_core.plugin.ledgers import (
    AliasRow,
    DeletionRow,
    ErasedRow,
    HistoryRow,
    LedgerError,
    Salvaged,
    SessionRow,
    StepRow,
)
from nexus_plugins.ledger.sqlite.database import SQLITE_ERRORS, build_sqlite_error, connect_to_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_BLOB_COLUMNS = ("digest", "content")
_UNREADABLE_ERRORS = ("SQLITE_NOTADB", "SQLITE_CORRUPT")
_STOPPING_ERRORS = ("SQLITE_BUSY", "SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_NOTADB", "SQLITE_NOMEM")
"""Errors that concern the whole file; all others concern the rows that are being read."""


def salvage_rows(path: Path) -> Salvaged:
    """Return every row of a ledger's file that SQLite can read, intact or not.

    Raises:
        LedgerError: The file cannot be opened.
    """
    try:
        with closing(_connect(path)) as connection:
            connection.text_factory = lambda text: text.decode("utf-8", "replace")
            connection.execute("begin")
            return Salvaged(
                [StepRow(*row) for row in _read_table(connection, "steps", StepRow._fields)],
                [SessionRow(*row) for row in _read_table(connection, "sessions", SessionRow._fields)],
                [AliasRow(*row) for row in _read_clustered(connection, "aliases", AliasRow._fields)],
                [HistoryRow(*row) for row in _read_clustered(connection, "history", HistoryRow._fields)],
                [(row[0], row[1]) for row in _read_table(connection, "blobs", _BLOB_COLUMNS) if type(row[1]) is bytes],
                [DeletionRow(*row) for row in _read_table(connection, "deletions", DeletionRow._fields)],
                [ErasedRow(*row) for row in _read_clustered(connection, "erased", ErasedRow._fields)],
            )
    except SQLITE_ERRORS as error:
        if getattr(error, "sqlite_errorname", "").startswith(_UNREADABLE_ERRORS):
            hint = f"`sqlite3 {path} .recover` may find more; repair the file that is made from its output"
            raise LedgerError(f"SQLite cannot read the file ({error})", where=str(path), hint=hint) from error
        raise build_sqlite_error(error, path) from error


def _connect(path: Path) -> sqlite3.Connection:
    """Open a file for reading, so that its log stays where it is."""
    connection = connect_to_file(path, mode="ro")
    try:
        connection.execute("select 1 from sqlite_master").fetchall()
    except sqlite3.OperationalError as error:
        connection.close()
        if not error.sqlite_errorname.startswith("SQLITE_CANTOPEN"):
            raise
        return connect_to_file(path)  # the log of a killed program, which a reader cannot open by itself
    except BaseException:
        connection.close()
        raise
    return connection


def _read_table(connection: sqlite3.Connection, table: str, columns: tuple[str, ...]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a table with row ids: all at once, or one by one if that fails.

    The ids are in the table and, a second time, in the index of its key. Each is read from both ends.
    """
    select = f"select {', '.join(columns)} from {table}"  # noqa: S608 - names of ours
    try:
        rows = connection.execute(select).fetchall()
    except SQLITE_ERRORS as error:
        _raise_if_stopping(error)
    else:
        yield from rows
        return
    ids: set[int] = set()
    for order in ("not indexed order by rowid", f"order by {columns[0]}"):
        for direction in ("asc", "desc"):
            select_ids = f"select rowid from {table} {order} {direction}"  # noqa: S608 - as above
            ids.update(number for (number,) in _read_until_damage(connection, select_ids))
    for number in sorted(ids):
        yield from _read_until_damage(connection, f"{select} where rowid = {number}")


def _read_clustered(connection: sqlite3.Connection, table: str, columns: tuple[str, ...]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a table without row ids: from the start and from the end, each until it cannot be read."""
    select = f"select {', '.join(columns)} from {table}"  # noqa: S608 - as above
    keys = ", ".join(name for _, name, *_, key in _read_until_damage(connection, f"pragma table_info({table})") if key)
    found: dict[tuple[Any, ...], None] = {}
    if keys:
        for order in (keys, keys.replace(",", " desc,") + " desc"):
            found.update(dict.fromkeys(_read_until_damage(connection, f"{select} order by {order}")))
    yield from found


def _read_until_damage(connection: sqlite3.Connection, statement: str) -> Iterator[tuple[Any, ...]]:
    try:
        yield from connection.execute(statement)
    except SQLITE_ERRORS as error:
        _raise_if_stopping(error)


def _raise_if_stopping(error: Exception) -> None:
    if getattr(error, "sqlite_errorname", "").startswith(_STOPPING_ERRORS):
        raise error
