"""How long it takes to put a call together, beside the least that has to be done for it.

    python benchmarks/assembly.py [-n RUNS] [-t TURNS]

The floor looks at the same files, without reading them, and reads the same rows of the ledger. Ratios are measured in
one run. Exit code 1 when a goal is missed.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "plugins")]

from benchmarks.ledger import Row, build, medians  # noqa: E402 - after the path is set
from nexus_core import Nexus  # noqa: E402 - as above
from nexus_core.assembly.freshness import SETTLED_AFTER, watched_paths  # noqa: E402 - as above
from nexus_core.values.ledger import NewStep  # noqa: E402 - as above
from nexus_core.values.message import Message  # noqa: E402 - as above
from nexus_plugins.ledger import _statements as sql  # noqa: E402 - as above
from nexus_plugins.ledger.sqlite import open_sqlite  # noqa: E402 - as above

if TYPE_CHECKING:
    from collections.abc import Callable

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


def main() -> int:
    """Measure, print, and return the exit code."""
    given = parse_arguments()
    with tempfile.TemporaryDirectory() as scratch:
        rows = measure(Path(scratch), given.runs, given.turns)
    for row in rows:
        ratio = row.ours / row.theirs
        verdict = "" if row.goal is None else f" (<= {row.goal:g}) {'ok' if ratio <= row.goal else 'MISSED'}"
        print(f"{row.name}: {row.ours * 1e3:,.2f} ms / {row.theirs * 1e3:,.2f} ms = {ratio:.2f}{verdict}")
    return int(any(row.goal is not None and row.ours / row.theirs > row.goal for row in rows))


def parse_arguments() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description="Measure how long putting a call together takes.")
    parser.add_argument("-n", dest="runs", type=int, default=100, help="how often each is done (100)")
    parser.add_argument("-t", dest="turns", type=int, default=1_000_000, help="turns of the long thread (1,000,000)")
    return parser.parse_args()


def measure(scratch: Path, runs: int, turns: int) -> list[Row]:
    """A warm assembly beside its floor, and beside the same with a ledger that holds just what fits."""
    work = make_layers(scratch / "layers")
    long_call, floor, budget = prepare(scratch, work, "long", turns)
    fitting = (budget.available - budget.total + budget.used["history"]) // TURN.tokens
    short_call, *_ = prepare(scratch, work, "short", fitting)
    ours, theirs, short = medians(runs, long_call, floor, short_call)
    name = f"call with {LAYERS} layers, {turns:,} turns, a window of {budget.limit:,} tokens, and placements"
    return [
        Row(f"{name} / looking at the files and reading the rows", ours, theirs, 5),
        Row(f"{name} / the same with the {fitting:,} turns that fit", ours, short, 2),
    ]


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
    tip = build(ledger, turns, TURN)
    nexus = Nexus(work, home=scratch / "home", installed=False, defaults=False, ledger=ledger)
    request = nexus.request(session="long", message="And now?", model=MODEL)
    time.sleep(SETTLED_AFTER / 1e9 * 2)

    def assemble() -> object:
        context = nexus.assemble(request)
        return context, context.placements

    context = nexus.assemble(request)
    kept = len(context.history) // 2
    files = sorted(watched_paths(nexus.request(), nexus.load()))
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
