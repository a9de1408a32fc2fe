"""The rows of a moment on a server."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import psycopg

from nexus_plugins.ledger._store import StillRows
from nexus_plugins.ledger.postgres.connecting import connect
from nexus_plugins.ledger.postgres.failures import failure
from nexus_plugins.ledger.postgres.line import Line, Statement
from nexus_plugins.ledger.postgres.migrating import prepare

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nexus_core import Finding


class StillPostgres(StillRows):
    """The rows of a moment, by a connection of their own.

    Args:
        url: Where the server is.
        where: What to call it in errors.
        empty: Whether there are no tables yet.
    """

    def __init__(self, url: str, where: str, *, empty: bool) -> None:
        self.url = url
        self._where = where
        try:
            self._line = Line(connect(url))
            self._begin(empty=empty)
        except psycopg.Error as error:
            raise failure(error, where) from error

    def fetch(self, statement: str, *bound: object) -> list[Any]:
        """What a statement finds, as tuples."""
        try:
            (found,) = self._line.ask([Statement.of(statement, bound)])
        except psycopg.Error as error:
            raise failure(error, self._where) from error
        return found

    def damage(self, session: str | None = None) -> Iterator[Finding]:
        """Return the names that were lost; a server looks after its own files."""
        yield from self.name_findings(session)

    def close(self) -> None:
        """Let go of the server."""
        with suppress(psycopg.Error):
            self._line.close()

    def _begin(self, *, empty: bool) -> None:
        try:
            connection = self._line.connection
            connection.execute("begin" if empty else "begin isolation level repeatable read read only")
            if empty:
                prepare(connection, self._where)  # never committed
        except BaseException:
            self.close()
            raise
