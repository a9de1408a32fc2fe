"""How long a warm load of layers takes, beside the bare reading of the same files.

    python benchmarks/layers.py [-n RUNS] [--quick] [--json FILE]

Prints ratios measured in one run: a load of the user's own layer, two ancestors and a local one against reading those
files, and the growth from 100 to 1,000 imported files. Exit code 1 when a goal is missed.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "plugins")]

from benchmarks.measuring.reports import Report  # noqa: E402 - after the path is set
from benchmarks.measuring.rows import Comparison, Goal, compare  # noqa: E402 - as above
from benchmarks.measuring.script import Script  # noqa: E402 - as above
from benchmarks.measuring.timing import medians  # noqa: E402 - as above
from nexus_core import Nexus  # noqa: E402 - as above
from nexus_core.testing import write_files  # noqa: E402 - as above

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Sequence

LOAD, BARE = "warm load of 4 layers", "bare reading of their 8 files"
MANY, FEW = "load with 1,000 imports", "load with 100 imports"
COMPARISONS = (
    Comparison(LOAD, BARE, (Goal("<=", 10),)),
    Comparison(MANY, FEW, (Goal("<=", 15),)),  # linear growth is 10
)

BLOCK = 10
"""How often each work is done before it is another's turn."""

TEXT = "Use type hints. Run the tests before you finish.\n" * 40
SETTINGS = '{"provider": {"model": "gpt-4o"}, "context": {"include_readme": false}}'


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, and return the exit code."""
    script = Script("Measure how long a load of layers takes.")
    script.runs(200, quick=30)
    return script.run(measure, argv)


def measure(given: Namespace) -> Report:
    """Both ratios."""
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch).resolve()
        os.environ["XDG_CACHE_HOME"] = str(root / "cache")
        load, bare = measure_load(root, given.runs)
        few, many = medians(given.runs // 10, load_with_imports(root, 100), load_with_imports(root, 1000))
    times = {LOAD: load, BARE: bare, FEW: few, MANY: many}
    return Report(compare({name: 1000 * seconds for name, seconds in times.items()}, COMPARISONS))


def measure_load(root: Path, runs: int) -> list[float]:
    """Seconds of CPU time for a load, and for reading the same files as plainly as Python can."""
    names = ("home", "a/.nexus3", "a/b/.nexus3", "a/b/c/.nexus3")
    files = {f"{name}/{file}": text for name in names for file, text in (("NEXUS.md", TEXT), ("config.json", SETTINGS))}
    write_files(root, {name: text + name for name, text in files.items() if name.endswith(".md")})
    write_files(root, {name: text for name, text in files.items() if name.endswith(".json")})
    paths = [root / name for name in files]
    with Nexus(root / "a/b/c", home=root / "home", defaults=False) as nexus:
        request = nexus.request()
        nexus.load(request)  # the first load checks the settings; afterwards they are known to be valid
        return medians(runs, lambda: nexus.load(request), lambda: [path.read_text() for path in paths], block=BLOCK)


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


if __name__ == "__main__":
    sys.exit(main())
