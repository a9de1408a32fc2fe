"""Work that may block, in a thread that nobody has to wait for."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

import anyio
import anyio.from_thread
import anyio.lowlevel

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


async def run_aside(work: Callable[[], T]) -> T:
    """What `work` returns or raises.

    Who is cancelled leaves at once; the thread holds up neither the loop nor the end of the program, as one that looks
    up the name of a machine would otherwise do for as long as the network likes.
    """
    done = anyio.Event()
    token = anyio.lowlevel.current_token()
    results: list[T] = []
    failures: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:  # noqa: BLE001 - raised again by whoever waits
            failures.append(error)
        with suppress(RuntimeError):  # the loop is over
            anyio.from_thread.run_sync(done.set, token=token)

    threading.Thread(target=run, daemon=True).start()
    await done.wait()
    if failures:
        raise failures[0]
    return results[0]
