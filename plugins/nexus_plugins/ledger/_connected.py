"""Rows that many threads reach through one connection, opened when it is needed."""

from __future__ import annotations

import os
from abc import abstractmethod
from contextlib import suppress
from threading import RLock
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from nexus_core import ClosedError
from nexus_plugins.ledger._store import Rows

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from nexus_core import Finding
    from nexus_plugins.ledger._store import StillRows


class Closable(Protocol):
    """A connection, as far as it matters here."""

    def close(self) -> None:
        """Let go of the database."""


C = TypeVar("C", bound=Closable)


class ConnectedRows(Rows, Generic[C]):
    """One connection for all threads of a process, and a lock that lets one of them use it at a time."""

    def __init__(self) -> None:
        self.lock = RLock()
        self._process = 0
        self._connection: C | None = None
        self._is_closed = False

    @abstractmethod
    def connect(self) -> C:
        """A connection that can be written to."""

    @abstractmethod
    def snapshot(self) -> AbstractContextManager[StillRows]:
        """The rows of this moment, by a connection of their own."""

    def close(self) -> None:
        """Let go of the database; a second call does nothing."""
        with self.lock:
            self._is_closed = True
            self._drop()

    def leave(self) -> None:
        """Forget the connection of the process that this one was forked from; it is not this one's to close."""
        self._connection = None

    def damage(self, _session: str | None = None) -> list[Finding]:
        """What is wrong with the database itself is seen on a snapshot."""
        return []

    def step_rows(self) -> Iterator[Any]:
        """Every step of this moment."""
        with self.snapshot() as still:
            yield from still.step_rows()

    def _open(self) -> C:
        if self._connection is not None and self._process == os.getpid():
            return self._connection
        if self._is_closed:
            raise ClosedError("the ledger is closed", hint="open another Nexus")
        self.leave()  # a process that was forked has a connection of its own
        self._connection, self._process = self.connect(), os.getpid()
        return self._connection

    def _drop(self) -> None:
        if self._connection is not None and self._process == os.getpid():
            with suppress(Exception):  # it may be broken already, and is not used again
                self._connection.close()
        self._connection = None
