"""Conversations on a server, for many machines.

schema.py        the tables; migrating.py: makes them, or brings older ones up to date, with a copy of them beside
store.py         the rows, and what is done when the server was away for a moment; still.py: those of a moment
transaction.py   what is done to a session under its lock, in few journeys to the server
line.py          a connection on which statements travel together; connecting.py: how it is set up
failures.py      what a server says went wrong, in words that help
"""

from __future__ import annotations

from importlib.util import find_spec

from nexus_core import MissingExtraError
from nexus_core.plugin import Extra, StoreLedger

EXTRA = Extra("postgres", modules=("psycopg",))


def open_postgres(url: str) -> StoreLedger:
    """The ledger of `postgresql://…`.

    Raises:
        MissingExtraError: psycopg is not installed.
    """
    if find_spec("psycopg") is None:
        raise MissingExtraError("ledger", EXTRA)
    from nexus_plugins.ledger.postgres.store import PostgresStore  # noqa: PLC0415 - it imports psycopg

    return StoreLedger(PostgresStore(url))
