"""How long it takes to read a transcript, beside the bare parsing of its lines.

    python benchmarks/transcripts.py [-n RUNS] [-m MEGABYTES] [--quick] [--json FILE]

Prints ratios measured in one run, for a made-up session of each program. Exit code 1 when a goal is missed.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "plugins")]

from benchmarks.measuring.reports import Report  # noqa: E402 - after the path is set
from benchmarks.measuring.rows import Goal, Row  # noqa: E402 - as above
from benchmarks.measuring.script import Script  # noqa: E402 - as above
from benchmarks.measuring.sessions import (  # noqa: E402 - as above
    CODE,
    RESULTS,
    chat,
    claude,
    codex,
    parse_all,
    pi,
    written,
)
from benchmarks.measuring.timing import medians  # noqa: E402 - as above
from nexus_core.transcripts.read import read_transcript  # noqa: E402 - as above

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

GOAL = 5.0
"""Reading may take this many times as long as `json.loads` over the lines."""


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, and return the exit code."""
    script = Script("Measure how long reading a transcript takes.")
    script.runs(5, quick=3)
    script.number("-m", "megabytes", 10, 1, "how large each transcript is")
    return script.run(measure, argv)


def measure(given: Namespace) -> Report:
    """A row for each program."""
    rows = []
    for name, make in (("claude-code", claude), ("codex", codex), ("pi", pi), ("messages", chat)):
        text = written(make(CODE * RESULTS[name]), given.megabytes * 1_000_000)
        lines = text.splitlines()
        works = partial(read_transcript, text), partial(parse_all, lines)
        whole, bare = medians(given.runs, *works, collect=True)
        detail = f"{whole:.3f} s / {bare:.3f} s, {len(lines):,} lines"
        rows.append(Row(f"reading {name} / json.loads", whole / bare, (Goal("<=", GOAL),), detail=detail))
    return Report(rows)


if __name__ == "__main__":
    sys.exit(main())
