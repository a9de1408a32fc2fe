"""Queue of events from another thread, awaited with a time-out by blocking and by async code."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from threading import Condition, Thread
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class EventQueue(Generic[T]):
    """Values in the order in which threads put them."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._values: deque[T] = deque()
        self._waiter: tuple[asyncio.AbstractEventLoop, asyncio.Future[None]] | None = None

    def put(self, value: T) -> None:
        """Add a value, from any thread."""
        with self._changed:
            self._values.append(value)
            self._changed.notify()
            waiter, self._waiter = self._waiter, None
        if waiter is not None:
            with suppress(RuntimeError):  # the loop is closed, so no task waits any more
                waiter[0].call_soon_threadsafe(_wake, waiter[1])

    def wait(self, seconds: float | None) -> list[T]:
        """Return all queued values, or an empty list on time-out."""
        with self._changed:
            self._changed.wait_for(lambda: self._values, seconds)
            return self._take()

    async def wait_async(self, seconds: float | None) -> list[T]:
        """Return what `wait` returns, without blocking the event loop or one of its threads."""
        loop = asyncio.get_running_loop()
        with self._changed:
            if self._values:
                return self._take()
            ready: asyncio.Future[None] = loop.create_future()
            self._waiter = loop, ready
        with suppress(TimeoutError):
            await asyncio.wait_for(ready, seconds)
        with self._changed:
            return self._take()

    def _take(self) -> list[T]:
        values = [*self._values]
        self._values.clear()
        return values


class BackgroundWork:
    """Base of work in another thread that a turn waits for."""

    def wait(self) -> Any:  # noqa: ANN401 - of any type
        """Wait in this thread."""
        raise NotImplementedError

    async def wait_async(self) -> Any:  # noqa: ANN401 - of any type
        """Wait in an event loop."""
        raise NotImplementedError


def _wake(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)


def start_daemon(work: Callable[[], None], name: str) -> None:
    """Run a function in a thread that does not keep the program from ending."""
    Thread(target=work, name=f"nexus {name}", daemon=True).start()
