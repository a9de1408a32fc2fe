"""Medians of works that are done in turns, so that a busy moment hits all of them alike."""

from __future__ import annotations

import gc
import statistics
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def medians(
    runs: int,
    *works: Callable[[], object],
    clock: Callable[[], float] = time.process_time,
    warm_up: int = 0,
    block: int = 1,
    collect: bool = False,
) -> list[float]:
    """The median seconds of each work.

    Args:
        runs: How often each is done.
        works: What is measured. One that returns a float has measured itself.
        clock: CPU time; `time.perf_counter` for what waits, such as for a disk.
        warm_up: How often each is done before it counts.
        block: How often one is done before it is another's turn, where a work by itself is over too soon.
        collect: Whether garbage of the work before is collected first.
    """
    times: list[list[float]] = [[] for _ in works]
    for _ in range(-(-(runs + warm_up) // block)):
        for work, measured in zip(works, times, strict=True):
            measured += [_seconds(work, clock, collect=collect) for _ in range(block)]
    return [statistics.median(measured[warm_up:]) for measured in times]


def named_medians(runs: int, works: Mapping[str, Callable[[], object]]) -> dict[str, float]:
    """The median milliseconds of CPU time of each work; the first time does not count."""
    return {
        name: 1000 * seconds for name, seconds in zip(works, medians(runs, *works.values(), warm_up=1), strict=True)
    }


def _seconds(work: Callable[[], object], clock: Callable[[], float], *, collect: bool) -> float:
    if collect:
        gc.collect()
    before = clock()
    measured = work()
    seconds = clock() - before
    return measured if isinstance(measured, float) else seconds
