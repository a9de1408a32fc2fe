"""How long it takes to bring a transcript into a ledger, beside the bare parsing of its lines.

    python benchmarks/importing.py [-n RUNS] [-m MEGABYTES]

Prints ratios measured in one run, for a made-up session of Claude Code and a ledger in a file. Exit code 1 when a goal
is missed.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from contextlib import closing
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "plugins")]

from benchmarks.transcripts import CODE, RESULTS, claude, medians, parse_all, written  # noqa: E402 - after the path is set
from nexus_core.cli.session.imported import find_repaired, without_collecting  # noqa: E402 - as above
from nexus_core.dialects.transcripts.reading import read_transcript  # noqa: E402 - as above
from nexus_core.session.importing.transcripts import Given, find_imported, import_transcript  # noqa: E402 - as above
from nexus_plugins.ledger.sqlite import open_sqlite  # noqa: E402 - as above

GOAL = 5.0
"""Importing may take this many times as long as `json.loads` over the lines."""
FORMAT = "claude-code"


def main() -> int:
    """Measure, print, and return the exit code."""
    parser = argparse.ArgumentParser(description="Measure how long importing a transcript takes.")
    parser.add_argument("-n", dest="runs", type=int, default=5, help="imports of each kind (5)")
    parser.add_argument("-m", dest="megabytes", type=int, default=10, help="how large the transcript is (10)")
    given = parser.parse_args()
    text = written(claude(CODE * RESULTS[FORMAT]), given.megabytes * 1_000_000)
    lines = text.splitlines(keepends=True)
    data, most = text.encode(), "".join(lines[: len(lines) * 99 // 100]).encode()
    with tempfile.TemporaryDirectory() as scratch:
        known, begun, new = (Path(scratch) / name for name in ("known.db", "begun.db", "new.db"))
        bring(known, data)
        bring(begun, most)
        bare, *times = medians(
            given.runs,
            partial(parse_all, lines),
            partial(read_transcript, text),
            partial(bring, new, data),
            partial(bring, known, data, begun=known),
            partial(bring, new, data, begun=begun),
        )
    names = ("reading it", "importing it", "importing it again", "importing it when 1 % is new")
    for name, seconds in zip(names, times, strict=True):
        goal = GOAL if name == "importing it" else None
        verdict = "" if goal is None else f" (<= {goal:g}) {'ok' if seconds / bare <= goal else 'MISSED'}"
        print(f"{name} / json.loads: {seconds:.3f} s / {bare:.3f} s = {seconds / bare:.2f}{verdict}")
    return int(times[1] / bare > GOAL)


def bring(path: Path, data: bytes, *, begun: Path | None = None) -> None:
    """What `nexus session import` does with a file, in a new ledger or in a copy of one."""
    if path != begun:
        path.unlink(missing_ok=True)
        if begun is not None:
            shutil.copy(begun, path)
    with closing(open_sqlite(f"sqlite:///{path}")) as ledger, without_collecting():
        if find_imported(ledger, data) is None:
            transcript = read_transcript(data.decode())
            import_transcript(ledger, Given(transcript, data, "session.jsonl"))
            find_repaired(transcript)


if __name__ == "__main__":
    sys.exit(main())
