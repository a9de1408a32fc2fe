"""PostgreSQL connections in pipeline mode, and the errors of a server."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import psycopg
from psycopg import errors
from psycopg.pq import PipelineStatus

from nexus_core.plugin.ledgers import LedgerError, LedgerUnreachableError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

RETRY_ERRORS = (errors.SerializationFailure, errors.DeadlockDetected, errors.UniqueViolation)
"""Conflicts with a concurrent writer. The transaction is rolled back, and the next attempt sees the other's changes."""

STALE_CONNECTION_ERRORS = (
    errors.InvalidSqlStatementName,
    errors.DuplicatePreparedStatement,
    errors.FeatureNotSupported,
    errors.UndefinedTable,
)
"""Prepared statements of a connection are missing or refer to old tables; a new connection prepares them again."""

LOST_CONNECTION_ERRORS = (psycopg.OperationalError, psycopg.InterfaceError)
"""The connection to the server is lost, or the server does not respond."""


def build_server_error(error: psycopg.Error, where: str) -> LedgerError:
    """Return the ledger error for an error of the server."""
    message = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, errors.DiskFull):
        hint = "free some space on the server and try again; what was recorded before is intact"
    elif isinstance(error, (errors.InsufficientPrivilege, errors.InvalidPassword)):
        hint = "allow this user to create and use the schema `nexus`"
    elif isinstance(error, LOST_CONNECTION_ERRORS):
        hint = "check that the server is running and reachable from here; what was recorded before is intact"
    else:
        hint = "what was recorded before is intact"
    kind = (
        LedgerUnreachableError
        if isinstance(error, (*LOST_CONNECTION_ERRORS, errors.InsufficientPrivilege))
        else LedgerError
    )
    return kind(f"the ledger cannot be used: {message}", where=where, hint=hint)


# Not passed in the options of the URL: those are the user's, and connection pools reject some.
_SET_UP_CONNECTION = (
    "select pg_catalog.set_config('search_path', 'nexus', false),"
    " pg_catalog.set_config('synchronous_commit', 'on', false)"
)


def connect_to_server(url: str) -> psycopg.Connection[Any]:
    """Open a connection in autocommit mode.

    Raises:
        psycopg.Error: The server cannot be reached, or rejects the login.
    """
    connection = psycopg.connect(
        url, autocommit=True, connect_timeout=10, application_name="nexus", client_encoding="utf8"
    )
    try:
        connection.execute(_SET_UP_CONNECTION)
    except BaseException:
        connection.close()
        raise
    return connection


class BoundStatement(NamedTuple):
    """A statement with placeholders of PostgreSQL, and its parameters."""

    text: str
    bound: tuple[Any, ...] = ()

    @classmethod
    def of(cls, text: str, bound: tuple[Any, ...]) -> BoundStatement:
        """Return a statement of _statements.py with its parameters."""
        return cls(_translate_placeholders(text), bound)

    @property
    def size(self) -> int:
        """The approximate number of characters and bytes to send."""
        return len(self.text) + sum(len(value) for value in self.bound if isinstance(value, (str, bytes)))


class PipelineConnection:
    """A connection that sends several statements at once and waits for the server once."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()

    def execute_all(self, statements: Sequence[BoundStatement]) -> Iterator[list[tuple[Any, ...]]]:
        """Run statements in order, stopping at the first that fails.

        Returns:
            The rows of each statement. All have run when this returns; the iterator raises at the one that failed.

        Raises:
            psycopg.Error: The connection is lost.
        """
        cursors: list[psycopg.RawCursor[tuple[Any, ...]]] = []
        failure: psycopg.Error | None = None
        try:
            with self.connection.pipeline():
                # Caught in here, because psycopg logs whatever else goes wrong while an error leaves its pipeline.
                try:
                    for statement in statements:
                        cursors.append(psycopg.RawCursor(self.connection))
                        cursors[-1].execute(statement.text, _encode_parameters(statement.bound), prepare=True)
                except psycopg.Error as error:
                    failure = error
        except psycopg.Error as error:
            failure = failure or error
        except BaseException:  # the state of the pipeline is unknown
            self.close()
            raise
        if failure is not None and self.connection.info.pipeline_status != PipelineStatus.OFF:
            self.close()
            raise failure
        return _read_rows(cursors, failure)


def _encode_parameters(bound: tuple[Any, ...]) -> list[Any]:
    """Return the parameters with numbers as text.

    The server infers their type; psycopg would choose one by size, and prepare a statement once for each.
    """
    return [str(value) if isinstance(value, int) else value for value in bound]


def _read_rows(
    cursors: Sequence[psycopg.RawCursor[tuple[Any, ...]]], failure: psycopg.Error | None
) -> Iterator[list[tuple[Any, ...]]]:
    for cursor in cursors:
        if cursor.statusmessage is None and failure is not None:
            raise failure
        yield cursor.fetchall() if cursor.description else []
    if failure is not None:  # at the end of all, or before the first was sent
        raise failure


@cache
def _translate_placeholders(text: str) -> str:
    first, *others = text.replace("instr(", "strpos(").split("?")
    return first + "".join(f"${number}{rest}" for number, rest in enumerate(others, 1))
