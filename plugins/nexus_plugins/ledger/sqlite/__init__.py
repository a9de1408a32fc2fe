"""Conversations in one file.

file.py          finds out whether a file is a ledger, and makes one; schema.py: what is in it
connecting.py    connections, and what is said on each; forking.py: what a forked process does with its parent's
log.py           the log beside the file, and when it is copied; network.py: whether there may be one
migrating.py     brings an older file up to date, with a copy of it beside
store.py         the rows of a file, for many threads and processes
failures.py      what SQLite says went wrong, in words that help
pages.py         the bytes of a damaged file, read without SQLite; salvage.py: the rows that are whole in them
"""

from __future__ import annotations

from pathlib import Path

from nexus_core.plugin import LedgerError, StoreLedger, without_secret
from nexus_plugins.ledger.sqlite.store import SqliteStore

SCHEME = "sqlite:///"


class SqliteLedger(StoreLedger):
    """A ledger in a file."""

    store: SqliteStore


def open_sqlite(url: str) -> SqliteLedger:
    """The ledger of `sqlite:///path`; a path from the root has four slashes, `~` is the user's own directory."""
    return SqliteLedger(SqliteStore(url, path_of(url)))


def path_of(url: str) -> Path:
    """The file that such a url names.

    Raises:
        LedgerError: It names none.
    """
    path = url.removeprefix(SCHEME)
    if path == url or not path or path.endswith("/"):
        hint = "write sqlite:///ledger.db, or sqlite:////var/lib/ledger.db from the root"
        raise LedgerError(f"{without_secret(url)!r} names no file", hint=hint)
    return Path(path).expanduser()
