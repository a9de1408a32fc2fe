"""Brings an older file up to date, with a copy of it beside."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from nexus_plugins.ledger.sqlite import schema
from nexus_plugins.ledger.sqlite.connecting import connect
from nexus_plugins.ledger.sqlite.file import place_whole, version_of

if TYPE_CHECKING:
    from pathlib import Path


def migrate(path: Path, connection: sqlite3.Connection) -> None:
    """Bring a file to this Nexus's schema; of many processes that begin at once, one does it."""
    if version_of(path, connection) == schema.VERSION:
        return
    connection.execute("begin immediate")
    try:
        version = version_of(path, connection)  # of those who waited, the first has done it
        if version < schema.VERSION:
            _copy(path, path.with_name(path.name + ".v" + str(version)))
        for number in range(version, schema.VERSION):
            for statement in schema.MIGRATIONS[number]:
                connection.execute(statement)
            connection.execute("pragma user_version = " + str(number + 1))
        connection.execute("commit")
    except BaseException:
        if connection.in_transaction:
            connection.execute("rollback")
        raise


def _copy(path: Path, copy: Path) -> None:
    """What is in a file now, as a file of its own; an earlier copy of that name stays."""

    def fill(target: Path) -> None:
        with closing(connect(path, mode="ro")) as source, closing(sqlite3.connect(target)) as sink:
            source.backup(sink)

    place_whole(copy, fill)
