"""PostgreSQL connections in pipeline mode, and the errors of a server."""

from __future__ import annotations

from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

import psycopg
from psycopg import errors, generators
from psycopg.adapt import PyFormat, Transformer
from psycopg.pq import ConnStatus, ExecStatus

from nexus_core.plugin.ledgers import LedgerError, LedgerUnreachableError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from psycopg.abc import PQGen
    from psycopg.pq.abc import PGconn, PGresult

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


_SUCCESS_STATUSES = (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK)


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


class _SentCommand(NamedTuple):
    """A sent command: a statement to prepare under a name, or a prepared one to run."""

    text: str
    name: bytes
    is_run: bool


class PipelineConnection:
    """A connection in libpq's pipeline mode, with its prepared statements.

    psycopg's own pipeline sends every statement separately, which wakes up the server each time. Here all statements
    are sent at once.
    """

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection
        self._names: dict[str, bytes] = {}
        self._numbers = count()
        self._transformer = Transformer(connection)

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()

    def execute_all(self, statements: Sequence[BoundStatement]) -> Iterator[list[tuple[Any, ...]]]:
        """Run statements in order, stopping at the first that fails.

        Returns:
            The rows of each statement. All have run when this returns; the iterator raises at the one that failed.

        Raises:
            psycopg.Error: The connection is lost, or a parameter cannot be encoded.
        """
        bound = [self._encode(statement.bound) for statement in statements]  # first, because it may fail
        pgconn = self.connection.pgconn
        try:
            pgconn.enter_pipeline_mode()
            sent = self._send(statements, bound)
            pgconn.pipeline_sync()
            results = self.connection.wait(_fetch_results(pgconn))
            pgconn.exit_pipeline_mode()
        except BaseException:  # the state of the pipeline is unknown
            self.close()
            raise
        for each, result in zip(sent, results, strict=True):
            if not each.is_run and result.status == ExecStatus.COMMAND_OK:
                self._names[each.text] = each.name
        return self._read_rows(sent, results)

    def _encode(self, bound: tuple[Any, ...]) -> tuple[Sequence[Any], Sequence[Any] | None]:
        """Encode parameters: as text, whose type the server infers, and bytes as binary."""
        wanted = [PyFormat.BINARY if isinstance(value, bytes) else PyFormat.TEXT for value in bound]
        return self._transformer.dump_sequence(bound, wanted), self._transformer.formats

    def _send(self, statements: Sequence[BoundStatement], bound: Sequence[tuple[Any, Any]]) -> list[_SentCommand]:
        sent: list[_SentCommand] = []
        pgconn, names = self.connection.pgconn, dict(self._names)
        for (text, _), (values, formats) in zip(statements, bound, strict=True):
            if text not in names:
                names[text] = b"nexus_%d" % next(self._numbers)
                pgconn.send_prepare(names[text], text.encode())
                sent.append(_SentCommand(text, names[text], is_run=False))
            pgconn.send_query_prepared(names[text], values, param_formats=formats)
            sent.append(_SentCommand(text, names[text], is_run=True))
        return sent

    def _read_rows(self, sent: Sequence[_SentCommand], results: Sequence[PGresult]) -> Iterator[list[tuple[Any, ...]]]:
        for each, result in zip(sent, results, strict=True):
            if result.status not in _SUCCESS_STATUSES:
                raise errors.error_from_result(result, encoding=self._transformer.encoding)
            if each.is_run:
                self._transformer.set_pgresult(result)
                yield self._transformer.load_rows(0, result.ntuples, tuple)


@cache
def _translate_placeholders(text: str) -> str:
    first, *others = text.replace("instr(", "strpos(").split("?")
    return first + "".join(f"${number}{rest}" for number, rest in enumerate(others, 1))


def _fetch_results(pgconn: PGconn) -> PQGen[list[PGresult]]:
    """Fetch the results of all sent commands.

    Raises:
        psycopg.OperationalError: The connection is lost.
    """
    yield from generators.send(pgconn)
    results: list[PGresult] = []
    while (found := (yield from generators.fetch_many(pgconn))) and found[0].status != ExecStatus.PIPELINE_SYNC:
        results += found
    if pgconn.status != ConnStatus.OK:
        raise psycopg.OperationalError(pgconn.get_error_message())
    return results
