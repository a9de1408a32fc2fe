"""Keeps conversations in a file (SQLite) or on a server (PostgreSQL)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core import hookimpl

if TYPE_CHECKING:
    from nexus_core.plugin import Ledger

_POSTGRES = ("postgresql://", "postgres://")


@hookimpl
def nexus_ledger(url: str) -> Ledger | None:
    """A ledger for `sqlite:///path` and `postgresql://…`; it is opened when it is first used."""
    if url.startswith("sqlite:"):
        from nexus_plugins.ledger.sqlite import open_sqlite  # noqa: PLC0415 - most commands keep no conversation

        return open_sqlite(url)
    if url.startswith(_POSTGRES):
        from nexus_plugins.ledger.postgres import open_postgres  # noqa: PLC0415 - as above

        return open_postgres(url)
    return None
