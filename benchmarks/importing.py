"""How long it takes to bring a transcript into a ledger, beside the bare parsing of its lines.

    python benchmarks/importing.py [-n RUNS] [-m MEGABYTES] [--quick] [--json FILE]

Prints ratios measured in one run, for a made-up session of Claude Code and a ledger in a file, and the time of a
message for one with short lines. Exit code 1 when a goal is missed.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "plugins")]

from benchmarks.measuring.reports import Report  # noqa: E402 - after the path is set
from benchmarks.measuring.rows import Goal, Row  # noqa: E402 - as above
from benchmarks.measuring.script import Script  # noqa: E402 - as above
from benchmarks.measuring.sessions import CODE, RESULTS, claude, parse_all, written  # noqa: E402 - as above
from benchmarks.measuring.timing import medians  # noqa: E402 - as above
from nexus_core.cli.commands.session.import_files import count_repairs, pause_garbage_collection  # noqa: E402 - as above
from nexus_core.dialects.registry import BUILT_IN_DIALECTS  # noqa: E402 - as above
from nexus_core.transcripts.read import read_transcript  # noqa: E402 - as above
from nexus_core.transfer.importer import TranscriptImporter  # noqa: E402 - as above
from nexus_plugins.ledger.sqlite import open_sqlite  # noqa: E402 - as above

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Sequence

GOALS = {"importing it": (Goal("<=", 5, quick=150),)}
"""How many times as long as `json.loads` over the lines each may take."""
FORMAT = "claude-code"


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, and return the exit code."""
    script = Script("Measure how long importing a transcript takes.")
    script.runs(5, quick=2)
    script.number("-m", "megabytes", 10, 1, "how large the transcript is")
    return script.run(measure, argv)


def measure(given: Namespace) -> Report:
    """Reading, importing, and importing what is known already."""
    text = written(claude(CODE * RESULTS[FORMAT]), given.megabytes * 1_000_000)
    lines = text.splitlines(keepends=True)
    data, most = text.encode(), "".join(lines[: len(lines) * 99 // 100]).encode()
    with tempfile.TemporaryDirectory() as scratch:
        known, begun, new = (Path(scratch) / name for name in ("known.db", "begun.db", "new.db"))
        bring(known, data)
        bring(begun, most)
        works: dict[str, Callable[[], object]] = {
            "reading it": partial(read_transcript, text),
            "importing it": partial(bring, new, data),
            "importing it again": partial(bring, known, data, begun=known),
            "importing it when 1 % is new": partial(bring, new, data, begun=begun),
        }
        bare, *times = medians(given.runs, partial(parse_all, lines), *works.values(), collect=True)
        short = measure_short_lines(given, new)
    rows = [
        Row(f"{name} / json.loads", taken / bare, GOALS.get(name, ()), detail=f"{taken:.3f} s / {bare:.3f} s")
        for name, taken in zip(works, times, strict=True)
    ]
    return Report([*rows, short])


def measure_short_lines(given: Namespace, path: Path) -> Row:
    """Importing lines without long results, of which a file of the same size has four times as many."""
    text = written(claude("ok"), given.megabytes * 1_000_000)
    lines = text.splitlines()
    bare, taken = medians(given.runs, partial(parse_all, lines), partial(bring, path, text.encode()), collect=True)
    detail = f"{taken:.3f} s / {bare:.3f} s, {len(lines):,} lines, {taken / len(lines) * 1e6:.0f} µs each"
    return Row("importing short lines / json.loads", taken / bare, detail=detail)


def bring(path: Path, data: bytes, *, begun: Path | None = None) -> None:
    """What `nexus session import` does with a file, in a new ledger or in a copy of one."""
    if path != begun:
        path.unlink(missing_ok=True)
        if begun is not None:
            shutil.copy(begun, path)
    with closing(open_sqlite(f"sqlite:///{path}")) as ledger, pause_garbage_collection():
        importer = TranscriptImporter(ledger)
        if not importer.find_imported(data):
            transcript = read_transcript(data.decode())
            importer.import_transcript(transcript, data, file_name="session.jsonl")
            count_repairs(transcript, BUILT_IN_DIALECTS)


if __name__ == "__main__":
    sys.exit(main())
