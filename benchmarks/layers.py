"""How long a warm load of layers takes, beside the bare reading of the same files.

    python benchmarks/layers.py [-n RUNS]

Prints ratios measured in one run: a load of the user's own layer, two ancestors and a local one against reading those
files, and the growth from 100 to 1,000 imported files. Exit code 1 when a goal is missed.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "plugins")]

from nexus_core import Nexus  # noqa: E402 - after the path is set
from nexus_core.testing import write_files  # noqa: E402 - as above

if TYPE_CHECKING:
    from collections.abc import Callable

LOAD_GOAL = 10.0
"""A load may take this many times as long as reading its files."""
GROWTH_GOAL = 15.0
"""Ten times as many imports may take this many times as long; linear growth is 10."""

BLOCK = 10
"""How often each work is done before it is another's turn."""

TEXT = "Use type hints. Run the tests before you finish.\n" * 40
SETTINGS = '{"provider": {"model": "gpt-4o"}, "context": {"include_readme": false}}'


def main() -> int:
    """Measure, print, and return the exit code."""
    parser = argparse.ArgumentParser(description="Measure how long a load of layers takes.")
    parser.add_argument("-n", dest="runs", type=int, default=200, help="loads of each kind (200)")
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch).resolve()
        os.environ["XDG_CACHE_HOME"] = str(root / "cache")
        load, bare = measure_load(root, runs)
        few, many = medians(runs // 10, load_with_imports(root, 100), load_with_imports(root, 1000))
    rows = [
        ("warm load of 4 layers / bare reading of their files", load / bare, LOAD_GOAL),
        ("load with 1,000 imports / load with 100 imports", many / few, GROWTH_GOAL),
    ]
    print(f"load {load * 1e6:.0f} us, bare reading {bare * 1e6:.0f} us")
    for name, ratio, goal in rows:
        print(f"{name}: {ratio:.2f} (goal <= {goal:g}) {'ok' if ratio <= goal else 'MISSED'}")
    return int(any(ratio > goal for _, ratio, goal in rows))


def measure_load(root: Path, runs: int) -> tuple[float, float]:
    """Seconds of CPU time for a load, and for reading the same files as plainly as Python can."""
    names = ("home", "a/.nexus3", "a/b/.nexus3", "a/b/c/.nexus3")
    files = {f"{name}/{file}": text for name in names for file, text in (("NEXUS.md", TEXT), ("config.json", SETTINGS))}
    write_files(root, {name: text + name for name, text in files.items() if name.endswith(".md")})
    write_files(root, {name: text for name, text in files.items() if name.endswith(".json")})
    paths = [root / name for name in files]
    with Nexus(root / "a/b/c", home=root / "home", defaults=False) as nexus:
        request = nexus.request()
        nexus.load(request)  # the first load checks the settings; afterwards they are known to be valid
        load, bare = medians(runs, lambda: nexus.load(request), lambda: [path.read_text() for path in paths])
    return load, bare


def load_with_imports(root: Path, count: int) -> Callable[[], object]:
    """A load of texts that import `count` files, in chunks of 50 as the limit allows."""
    work = root / f"imports-{count}"
    chunk = 50
    # Every directory is a level of its own below the limit of imports for one text.
    for part in range(count // chunk):
        directory = work / f"part-{part}"
        write_files(directory, {f"{number}.md": f"Rule {part}-{number}.\n" for number in range(chunk)})
        write_files(directory, {"NEXUS.md": "".join(f"@{number}.md\n" for number in range(chunk))})
    homes = [work / f"part-{part}" for part in range(count // chunk)]
    opened = [Nexus(home, home=root / "home", defaults=False) for home in homes]
    return lambda: [nexus.load() for nexus in opened]


def medians(runs: int, *works: Callable[[], object]) -> list[float]:
    """The median CPU time of each of some works, in seconds; done in turns, so that a busy moment hits them all."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(max(runs // BLOCK, 1)):
        for work, measured in zip(works, times, strict=True):
            measured += [seconds(work) for _ in range(BLOCK)]
    return [statistics.median(measured) for measured in times]


def seconds(work: Callable[[], object]) -> float:
    """The CPU time of some work."""
    before = time.process_time()
    work()
    return time.process_time() - before


if __name__ == "__main__":
    sys.exit(main())
