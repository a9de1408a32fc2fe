"""The ledger on a PostgreSQL server, for many machines.

store.py         the store: rows, transactions under a session's lock, retries, and snapshots
step_index.py    the word index for searches, derived from the rows
schema.py        tables and migrations, with a copy of the older tables
connection.py    connections in pipeline mode, and errors of the server as ledger errors
"""

from __future__ import annotations

import re
from importlib.util import find_spec

from nexus_core import MissingExtraError
from nexus_core.plugin import Extra
from nexus_core.plugin.ledgers import LedgerError, StoreLedger, without_secret

_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})|\s")
EXTRA = Extra("postgres", modules=("psycopg",))


def open_postgres(url: str) -> StoreLedger:
    """Return the ledger of a `postgresql://…` URL.

    Raises:
        MissingExtraError: psycopg is not installed.
        LedgerError: A character of the URL must be escaped.
    """
    _require_escaped_password(url)
    if find_spec("psycopg") is None:
        raise MissingExtraError("ledger", EXTRA)
    from nexus_plugins.ledger.postgres.store import PostgresStore

    return StoreLedger(PostgresStore(url))


def _require_escaped_password(url: str) -> None:
    """Reject a URL that PostgreSQL would split wrongly.

    It would send a part of the password to DNS as a host name.

    Raises:
        LedgerError: A character of the URL must be escaped.
    """
    address = url.partition("://")[2].partition("?password=")[0]
    hosts, _, path = address.partition("/")
    user, _, _ = hosts.rpartition("@")
    is_split = "@" in user or "@" in path.partition("?")[0]
    if is_split or _BAD_ESCAPE.search(user):
        hint = "escape it in the password: @ is %40, / is %2F, % is %25, a space is %20"
        what = "the ledger's url cannot be read: a character in it has to be escaped"
        raise LedgerError(what, where=without_secret(url).partition("?")[0], hint=hint)
