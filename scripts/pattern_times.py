"""Measure each regular expression of the project on 100 KB of hostile text.

`python scripts/pattern_times.py [MODULE …]` measures those of some modules, or of all.
Prints the slowest expressions and how many take longer than 50 ms of processor time. `tests/contract/test_patterns.py`
holds that each takes time in proportion to the length; this measures the time itself, on a quiet machine.
"""

from __future__ import annotations

import sys
from pathlib import Path
from time import thread_time

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "plugins")]

from tests.contract.test_patterns import BOUNDED, apply_pattern  # noqa: E402 - found by the line above
from tests.hostile_patterns import UsedPattern, find_patterns, list_modules, write_hostile_texts  # noqa: E402 - as above

LENGTH = 100_000
MAX_MILLISECONDS = 50
TRIES = 3
SHOWN = 10


def measure_pattern(used: UsedPattern) -> float:
    """Return the milliseconds that an expression takes for its worst text, each measured at its best."""
    return max((_measure_text(used, text) for text in write_hostile_texts(used.pattern, LENGTH)), default=0.0)


def _measure_text(used: UsedPattern, text: str) -> float:
    best = float("inf")
    for _ in range(TRIES):
        start = thread_time()
        apply_pattern(used.pattern, text, searches=used.searches)
        best = min(best, (thread_time() - start) * 1000)
        if best <= MAX_MILLISECONDS:
            break
    return best


def main(modules: list[str]) -> None:
    """Measure the expressions of some modules, or of all."""
    used = [each for module in modules or list_modules() for each in find_patterns(module) if each.name not in BOUNDED]
    times = sorted(((measure_pattern(each), each.name) for each in used), reverse=True)
    for milliseconds, name in times[:SHOWN]:
        print(f"{milliseconds:8.1f} ms  {name}")
    slow = sum(milliseconds > MAX_MILLISECONDS for milliseconds, _ in times)
    print(f"{len(times)} expressions, {slow} take longer than {MAX_MILLISECONDS} ms for {LENGTH // 1000} KB")


if __name__ == "__main__":
    main(sys.argv[1:])
