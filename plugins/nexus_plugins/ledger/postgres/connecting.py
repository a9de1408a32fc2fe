"""A connection to the server, set up as a ledger needs it."""

from __future__ import annotations

from typing import Any

import psycopg

# Not among the options of the url: those are the user's, and pools between refuse some.
_SETTINGS = (
    "select pg_catalog.set_config('search_path', 'nexus', false),"
    " pg_catalog.set_config('synchronous_commit', 'on', false)"
)


def connect(url: str) -> psycopg.Connection[Any]:
    """A connection on which each statement stands by itself unless a transaction is begun.

    Raises:
        psycopg.Error: The server cannot be reached, or lets nobody in.
    """
    connection = psycopg.connect(
        url, autocommit=True, connect_timeout=10, application_name="nexus", client_encoding="utf8"
    )
    try:
        connection.execute(_SETTINGS)
    except BaseException:
        connection.close()
        raise
    return connection
