"""Keeps conversations in a file (SQLite) or on a server (PostgreSQL)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core import hookimpl

if TYPE_CHECKING:
    from nexus_core import Finding, Request
    from nexus_core.plugin import Ledger, Loaded

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


@hookimpl
def nexus_diagnose(request: Request, loaded: Loaded) -> list[Finding]:
    """Whether the file is where, and with a SQLite by which, it is safe."""
    from nexus_plugins.ledger._diagnosis import diagnose  # noqa: PLC0415 - only `nexus doctor` asks

    return diagnose(request, loaded)
