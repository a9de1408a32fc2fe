"""Ledgers in a SQLite file and on a PostgreSQL server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core import hookimpl

if TYPE_CHECKING:
    from nexus_core import Finding, Request
    from nexus_core.plugin import Ledger, LoadedLayers

_POSTGRES_SCHEMES = ("postgresql://", "postgres://")


@hookimpl
def nexus_ledger(url: str) -> Ledger | None:
    """Return the ledger of `sqlite:///path` or `postgresql://…`, which is opened when it is first used."""
    if url.startswith("sqlite:"):
        from nexus_plugins.ledger.sqlite import open_sqlite

        return open_sqlite(url)
    if url.startswith(_POSTGRES_SCHEMES):
        from nexus_plugins.ledger.postgres import open_postgres

        return open_postgres(url)
    return None


@hookimpl
def nexus_diagnose(request: Request, loaded: LoadedLayers) -> list[Finding]:
    """Report a ledger file on a network file system, or a SQLite version with a known bug."""
    from nexus_plugins.ledger._diagnosis import diagnose_ledger

    return diagnose_ledger(request, loaded)
