"""Conversations on a server, for many machines.

schema.py        the tables; migrating.py: makes them, or brings older ones up to date, with a copy of them beside
store.py         the rows, and what is done when the server was away for a moment; still.py: those of a moment
transaction.py   what is done to a session under its lock, in few journeys to the server
line.py          a connection on which statements travel together; connecting.py: how it is set up
failures.py      what a server says went wrong, in words that help
"""

from __future__ import annotations

import re
from importlib.util import find_spec

from nexus_core import MissingExtraError
from nexus_core.plugin import Extra, LedgerError, StoreLedger, without_secret

_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})|\s")
EXTRA = Extra("postgres", modules=("psycopg",))


def open_postgres(url: str) -> StoreLedger:
    """The ledger of `postgresql://…`.

    Raises:
        MissingExtraError: psycopg is not installed.
        LedgerError: The password in it has a character that has to be escaped.
    """
    _require_escaped_password(url)
    if find_spec("psycopg") is None:
        raise MissingExtraError("ledger", EXTRA)
    from nexus_plugins.ledger.postgres.store import PostgresStore  # noqa: PLC0415 - it imports psycopg

    return StoreLedger(PostgresStore(url))


def _require_escaped_password(url: str) -> None:
    """Refuse a url whose parts PostgreSQL would take for others: half a password would be looked up as a host.

    Raises:
        LedgerError: A character in it has to be escaped.
    """
    address = url.partition("://")[2].partition("?password=")[0]
    hosts, _, path = address.partition("/")
    user, _, _ = hosts.rpartition("@")
    is_split = "@" in user or "@" in path.partition("?")[0]
    if is_split or _BAD_ESCAPE.search(user):
        hint = "escape it in the password: @ is %40, / is %2F, % is %25, a space is %20"
        what = "the ledger's url cannot be read: a character in it has to be escaped"
        raise LedgerError(what, where=without_secret(url).partition("?")[0], hint=hint)
