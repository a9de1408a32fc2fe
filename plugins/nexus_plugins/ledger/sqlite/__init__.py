"""The ledger in one SQLite file.

store.py         the store: rows of the file for many threads, processes and forks, and read-only snapshots
database.py      the file: connections, creation, migration, its write-ahead log
schema.py        tables, triggers and migrations
step_index.py    the word index for searches, derived from the rows
salvage.py       rows of a damaged file, read around the damage
"""

from __future__ import annotations

from pathlib import Path

from nexus_core.plugin.ledgers import LedgerError, StoreLedger, without_secret
from nexus_plugins.ledger.sqlite.store import SqliteStore

URL_PREFIX = "sqlite:///"


class SqliteLedger(StoreLedger):
    """A ledger in a file."""

    store: SqliteStore


def open_sqlite(url: str) -> SqliteLedger:
    """Return the ledger of `sqlite:///path`.

    An absolute path has four slashes, and `~` is the home directory.
    """
    return SqliteLedger(SqliteStore(url, parse_path(url)))


def parse_path(url: str) -> Path:
    """Return the path of a `sqlite:///path` URL.

    Raises:
        LedgerError: The URL has no path, or it is in the home of a user who does not exist.
    """
    path = url.removeprefix(URL_PREFIX)
    if path == url or not path or path.endswith("/"):
        hint = "write sqlite:///ledger.db, or sqlite:////var/lib/ledger.db from the root"
        raise LedgerError(f"{without_secret(url)!r} names no file", hint=hint)
    try:
        return Path(path).expanduser()
    except (RuntimeError, ValueError):
        hint = "write the path of the directory in place of ~"
        raise LedgerError(f"{without_secret(url)!r} names a home directory that cannot be found", hint=hint) from None
