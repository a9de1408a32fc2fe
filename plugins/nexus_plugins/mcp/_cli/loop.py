"""Runs what starts servers, so that none is left behind when the command is broken off."""

from __future__ import annotations

import signal
import sys
import threading
from typing import TYPE_CHECKING, TypeVar

import typer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")
BY_SIGNAL = 128
"""What shells add to the number of the signal that ended a program."""


def run_loop(main: Callable[[], Awaitable[T]]) -> T:
    """What `main` returns.

    Ctrl-C, a closed terminal and being told to end cancel it, and it is waited for: ending servers takes a moment, and
    pressing Ctrl-C once more does not shorten that.

    Raises:
        KeyboardInterrupt: It was Ctrl-C.
        typer.Exit: It was one of the others.
    """
    import anyio  # noqa: PLC0415 - comes with the extra

    if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
        return anyio.run(main)
    received: list[int] = []
    results: list[T] = []

    async def watched() -> None:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
            async with anyio.create_task_group() as tasks:

                async def watch() -> None:
                    async for number in signals:
                        received.append(number)
                        tasks.cancel_scope.cancel()

                tasks.start_soon(watch)
                results.append(await main())
                tasks.cancel_scope.cancel()

    try:
        anyio.run(watched)
    except BaseExceptionGroup as group:
        raise _only(group) from None
    if received and received[0] == signal.SIGINT:
        raise KeyboardInterrupt
    if received:
        raise typer.Exit(BY_SIGNAL + received[0])
    return results[0]


def _only(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
