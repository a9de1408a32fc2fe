"""How long something takes, told so that neither other programs nor earlier tests change it much."""

from __future__ import annotations

import gc
from collections.abc import Callable
from time import process_time


def seconds(work: Callable[[], object]) -> float:
    """The processor time of some work. What earlier tests have left in memory is not searched for garbage meanwhile."""
    gc.freeze()
    try:
        start = process_time()
        work()
        return process_time() - start
    finally:
        gc.unfreeze()
