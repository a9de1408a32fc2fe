"""A connection on which statements travel together: there is one wait for all of them, however many they are."""

from __future__ import annotations

from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

import psycopg
from psycopg import errors, generators
from psycopg.adapt import PyFormat, Transformer
from psycopg.pq import ConnStatus, ExecStatus

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from psycopg.abc import PQGen
    from psycopg.pq.abc import PGconn, PGresult

_DONE = (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK)


class Statement(NamedTuple):
    """A statement in the server's words, and what is bound to it."""

    text: str
    bound: tuple[Any, ...] = ()

    @classmethod
    def of(cls, text: str, bound: tuple[Any, ...]) -> Statement:
        """A statement of _statements.py."""
        return cls(_translated(text), bound)

    @property
    def size(self) -> int:
        """How much of it travels, about."""
        return len(self.text) + sum(len(value) for value in self.bound if isinstance(value, (str, bytes)))


class _Sent(NamedTuple):
    """What was sent: a statement to be prepared under a name, or one to be run."""

    text: str
    name: bytes
    is_run: bool


class Line:
    """A connection to the server, and the statements that are prepared on it.

    It uses what libpq calls pipeline mode. psycopg's own pipeline sends each statement by itself, which wakes the
    server as often; here all are sent at once.
    """

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection
        self._names: dict[str, bytes] = {}
        self._numbers = count()
        self._transformer = Transformer(connection)

    def close(self) -> None:
        """Let go of the server."""
        self.connection.close()

    def ask(self, statements: Sequence[Statement]) -> Iterator[list[tuple[Any, ...]]]:
        """Run statements, each after the one before it; after one that fails, none is run.

        Returns:
            What each of them finds. All has been done by now, but for the one that failed and those after it:
            the iterator raises at its place.

        Raises:
            psycopg.Error: The server went away, or something cannot be bound.
        """
        bound = [self._dumped(statement.bound) for statement in statements]  # may fail, and nothing was sent
        pgconn = self.connection.pgconn
        try:
            pgconn.enter_pipeline_mode()
            sent = self._send(statements, bound)
            pgconn.pipeline_sync()
            results = self.connection.wait(_results(pgconn))
            pgconn.exit_pipeline_mode()
        except BaseException:  # nobody knows what is still to be answered
            self.close()
            raise
        for each, result in zip(sent, results, strict=True):
            if not each.is_run and result.status == ExecStatus.COMMAND_OK:
                self._names[each.text] = each.name
        return self._answers(sent, results)

    def _dumped(self, bound: tuple[Any, ...]) -> tuple[Sequence[Any], Sequence[Any] | None]:
        """Values as they travel: as text, of whatever type the server wants there; bytes as they are."""
        wanted = [PyFormat.BINARY if isinstance(value, bytes) else PyFormat.TEXT for value in bound]
        return self._transformer.dump_sequence(bound, wanted), self._transformer.formats

    def _send(self, statements: Sequence[Statement], bound: Sequence[tuple[Any, Any]]) -> list[_Sent]:
        sent: list[_Sent] = []
        pgconn, names = self.connection.pgconn, dict(self._names)
        for (text, _), (values, formats) in zip(statements, bound, strict=True):
            if text not in names:
                names[text] = b"nexus_%d" % next(self._numbers)
                pgconn.send_prepare(names[text], text.encode())
                sent.append(_Sent(text, names[text], is_run=False))
            pgconn.send_query_prepared(names[text], values, param_formats=formats)
            sent.append(_Sent(text, names[text], is_run=True))
        return sent

    def _answers(self, sent: Sequence[_Sent], results: Sequence[PGresult]) -> Iterator[list[tuple[Any, ...]]]:
        for each, result in zip(sent, results, strict=True):
            if result.status not in _DONE:
                raise errors.error_from_result(result, encoding=self._transformer.encoding)
            if each.is_run:
                self._transformer.set_pgresult(result)
                yield self._transformer.load_rows(0, result.ntuples, tuple)


@cache
def _translated(text: str) -> str:
    first, *others = text.replace("instr(", "strpos(").split("?")
    return first + "".join(f"${number}{words}" for number, words in enumerate(others, 1))


def _results(pgconn: PGconn) -> PQGen[list[PGresult]]:
    """What the server says to all that was sent.

    Raises:
        psycopg.OperationalError: It went away.
    """
    yield from generators.send(pgconn)
    results: list[PGresult] = []
    while (found := (yield from generators.fetch_many(pgconn))) and found[0].status != ExecStatus.PIPELINE_SYNC:
        results += found
    if pgconn.status != ConnStatus.OK:
        raise psycopg.OperationalError(pgconn.get_error_message())
    return results
