"""How long something takes, told so that neither other programs nor earlier tests change it much."""

from __future__ import annotations

import gc
from collections.abc import Callable
from time import thread_time


def seconds(work: Callable[[], object], *, tries: int = 1) -> float:
    """Return the processor time of some work in this thread: the least of several tries, since noise only adds to it.

    What earlier tests have left in memory is not searched for garbage meanwhile.
    """
    return min(_measure(work) for _ in range(tries))


def _measure(work: Callable[[], object]) -> float:
    gc.freeze()
    try:
        start = thread_time()
        work()
        return thread_time() - start
    finally:
        gc.unfreeze()
