"""Processor time, compared so that an assertion holds on a machine of any speed, busy or not."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable
from time import sleep, thread_time
from typing import TypeVar

CLOCK_FLOOR_SECONDS = 0.001
"""Shorter work counts as this, since the clock measures nothing finer."""
MAX_PAIRS = 20
"""Both sides of a comparison are measured so often at most; noise only adds, so one pair within the limit is enough."""
PAUSE_SECONDS = 0.2
"""The pause before another pair: what else the machine does comes in bursts, which take longer than a few pairs."""
MEASURE_TRIES = 3
YARDSTICK = "[" + ", ".join(['{"name": [1, 2.5, "text"]}'] * 20_000) + "]"
"""Half a megabyte of JSON, which a machine parses in some 10 to 100 ms."""

Input = TypeVar("Input")


def assert_linear(work: Callable[[Input], object], short: Input, long: Input, *, times: int = 4) -> None:
    """Assert that an input `times` as long takes about `times` as long, and not the square of that.

    The limit is halfway between both, by factors.
    """
    _assert_ratio(lambda: work(long), lambda: work(short), times**1.5, f"the input {times} times as long")


def assert_quick(work: Callable[[], object], *, times: float) -> None:
    """Assert that some work takes less than so many times as long as `json.loads` of half a megabyte."""
    _assert_ratio(work, lambda: json.loads(YARDSTICK), times, "the work")


def _assert_ratio(work: Callable[[], object], other: Callable[[], object], limit: float, name: str) -> None:
    """Measure both one right after the other, so that what slows the machine slows both."""
    # The garbage collector must not search meanwhile what earlier tests have left in memory. It is not to search it
    # later either: to unfreeze it is to unfreeze all tests that were collected, and each search then takes seconds.
    gc.collect()
    gc.freeze()
    ratios: list[float] = []
    while len(ratios) < MAX_PAIRS and not any(ratio < limit for ratio in ratios):
        if ratios:
            sleep(PAUSE_SECONDS)
        least = min(_measure_seconds(other) for _ in range(MEASURE_TRIES))
        ratios.append(_measure_seconds(work) / max(least, CLOCK_FLOOR_SECONDS))
    assert min(ratios) < limit, f"{name} took {min(ratios):.1f} times as long as its measure, the limit is {limit:g}"


def _measure_seconds(work: Callable[[], object]) -> float:
    """Return the processor time of some work in this thread."""
    start = thread_time()
    work()
    return thread_time() - start
