"""A clock for loops that goes slower where the machine is busy.

What waits for a limit waits for all of it. What waits for an answer is not charged for how long other programs kept the
answer from coming. So a test can say how long something takes at most, and be right on any machine.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple

import anyio

EYEBLINK = 0.01
"""Seconds that waiting for one answer counts at most; so whoever sends without end does not stop the clock."""


class _Selector(selectors.DefaultSelector):
    waited = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        began = time.monotonic()
        events = super().select(timeout)
        self.waited += min(time.monotonic() - began, EYEBLINK) if events else timeout or 0.0
        return events


class CalmLoop(asyncio.SelectorEventLoop):
    """A loop with such a clock: what it waited for, and the processor time of its thread."""

    def __init__(self) -> None:
        self._calm = _Selector()
        super().__init__(self._calm)

    def time(self) -> float:
        return self._calm.waited + time.thread_time()

    def skip(self, seconds: float) -> None:
        """Let so many seconds have passed."""
        self._calm.waited += seconds


class Calmly(NamedTuple):
    """What came of it, and how many seconds it took."""

    result: object
    took: float


def run_calmly(main: Callable[[], Awaitable[object]]) -> Calmly:
    """Run a loop by such a clock."""

    async def timed() -> Calmly:
        started = anyio.current_time()
        result = await main()
        return Calmly(result, anyio.current_time() - started)

    return anyio.run(timed, backend_options={"loop_factory": CalmLoop})


def skip(seconds: float) -> None:
    """Let so many seconds have passed, in the loop that runs."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, CalmLoop)
    loop.skip(seconds)
