"""How long it takes to put a call together, beside the least that has to be done for it.

    python benchmarks/assembly.py [-n RUNS] [-t TURNS] [--quick] [--json FILE]

The floor looks at the same files, without reading them, and reads the same rows of the ledger. Ratios are of CPU time,
measured in one run. Exit code 1 when a goal is missed.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "plugins")]

from benchmarks.measuring.reports import Report  # noqa: E402 - after the path is set
from benchmarks.measuring.rows import Comparison, Goal, compare  # noqa: E402 - as above
from benchmarks.measuring.script import Script  # noqa: E402 - as above
from benchmarks.measuring.threads import build_thread  # noqa: E402 - as above
from benchmarks.measuring.timing import medians  # noqa: E402 - as above
from nexus_core import Nexus  # noqa: E402 - as above
from nexus_core.request.static_context import MIN_FILE_AGE_NS, list_watched_paths  # noqa: E402 - as above
from nexus_core.types.ledger import NewStep  # noqa: E402 - as above
from nexus_core.types.messages import Message  # noqa: E402 - as above
from nexus_plugins.ledger import _statements as sql  # noqa: E402 - as above
from nexus_plugins.ledger.sqlite import open_sqlite  # noqa: E402 - as above

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Sequence

    from nexus_core import TokenBudget

MODEL = "gpt-4o"
LAYERS = 10
BODY = "A turn has words like these, some four hundred characters of them in each of its messages. " * 4
TURN = NewStep(
    kind="turn",
    closes=True,
    messages=(Message("user", BODY), Message("assistant", BODY)),
    tokens=162,
    counter="tiktoken:o200k_base",
    data={"sizes": [81, 81]},
)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, and return the exit code."""
    script = Script("Measure how long putting a call together takes.")
    script.runs(100, quick=20)
    script.number("-t", "turns", 1_000_000, 20_000, "turns of the long thread")
    return script.run(measure, argv)


def measure(given: Namespace) -> Report:
    """A warm assembly beside its floor, and beside the same with a ledger that holds just what fits."""
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        work = make_layers(scratch / "layers")
        long_call, floor, budget = prepare(scratch, work, "long", given.turns)
        fitting = (budget.available - budget.total + budget.used["history"]) // TURN.tokens
        short_call, *_ = prepare(scratch, work, "short", fitting)
        times = medians(given.runs, long_call, floor, short_call, warm_up=given.runs // 10)
    call = f"call with {given.turns:,} turns"
    names = (call, "looking at the files and reading the rows", "the same with just the turns that fit")
    rows = compare(
        {name: 1000 * seconds for name, seconds in zip(names, times, strict=True)},
        [Comparison(call, names[1], (Goal("<=", 5, "P4"),)), Comparison(call, names[2], (Goal("<=", 2, "P1"),))],
    )
    note = f"A call has {LAYERS} layers, a window of {budget.limit:,} tokens and placements; {fitting:,} turns fit."
    return Report(rows, notes=[note])


def make_layers(root: Path) -> Path:
    """Directories inside each other, each with instructions, settings and servers; the innermost one."""
    place = root
    (root / ".git").mkdir(parents=True)
    for number in range(LAYERS):
        place = place / f"level{number}" if number else root
        own = place / ".nexus3"
        own.mkdir(parents=True, exist_ok=True)
        (own / "NEXUS.md").write_text(f"# Level {number}\n\n" + "A rule of this level. " * 40)
        (own / "config.json").write_text('{"context": {"ancestor_depth": 10}}')
    return place


def prepare(
    scratch: Path, work: Path, name: str, turns: int
) -> tuple[Callable[[], object], Callable[[], object], TokenBudget]:
    """What puts a call together, what does the least for the same, and what the call takes."""
    path = scratch / f"{name}.db"
    ledger = open_sqlite(f"sqlite:///{path}")
    tip = build_thread(ledger, turns, TURN)
    nexus = Nexus(work, home=scratch / "home", installed=False, defaults=False, ledger=ledger)
    request = nexus.request(session="long", message="And now?", model=MODEL)
    time.sleep(MIN_FILE_AGE_NS / 1e9 * 2)

    def assemble() -> object:
        context = nexus.assemble(request)
        return context, context.placements

    context = nexus.assemble(request)
    kept = len(context.history) // 2
    files = sorted(list_watched_paths(nexus.request(), nexus.load()))
    bare = sqlite3.connect(path)
    statement = sql.STEP.partition(" where")[0] + " where branch = ? and position > ? order by position desc"
    branch = ledger.thread(tip, limit=1)[0].branch

    def floor() -> object:
        looked = [_stat(file) for file in files]
        return looked, bare.execute(statement, (branch, turns - 1 - kept)).fetchall()

    if not context.placements or len(bare.execute(statement, (branch, turns - 1 - kept)).fetchall()) != kept:
        raise AssertionError("they do not read the same")
    return assemble, floor, context.token_budget


def _stat(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)  # noqa: PTH116 - as the one it is compared with
    except OSError:
        return None


if __name__ == "__main__":
    sys.exit(main())
