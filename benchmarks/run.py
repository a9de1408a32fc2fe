"""Runs every benchmark, one after the other, and writes what they found into RESULTS.md.

    python benchmarks/run.py [--quick] [--only AREA ...] [--output FILE] [--cache DIR] [--without-peers]

Peers are installed by the scripts into environments of their own, kept in DIR. `--quick` runs the short form of each:
no peers, no network, goals ten times as wide, and nothing is written. `--only` writes nothing without `--output`. Exit
code: 0 all goals met, 1 a goal missed, 2 something could not be measured.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from benchmarks.measuring.document import Area, write_document  # noqa: E402 - after the path is set
from benchmarks.measuring.goals import read_reasons  # noqa: E402 - as above
from benchmarks.measuring.reports import Report, exit_code  # noqa: E402 - as above
from benchmarks.measuring.script import CACHE  # noqa: E402 - as above

if TYPE_CHECKING:
    from collections.abc import Sequence

RESULTS = ROOT / "benchmarks" / "RESULTS.md"


class Benchmark(NamedTuple):
    """A script.

    Attributes:
        name: Its file, without `.py`.
        title: What its table is called.
        peers: Whether it has peers beside it, or measures in an environment of its own.
        quick: Whether it has a place in a quick run.
    """

    name: str
    title: str
    peers: bool = False
    quick: bool = True

    @property
    def command(self) -> str:
        """What runs it alone."""
        return f"python benchmarks/{self.name}.py"


BENCHMARKS = (
    Benchmark("startup", "Start-up", peers=True),
    Benchmark("layers", "Layers"),
    Benchmark("tokens", "Counting tokens", peers=True),
    Benchmark("engines", "Counting tokens with splintr", peers=True, quick=False),
    Benchmark("once", "Counting once"),
    Benchmark("history", "Choosing history", peers=True),
    Benchmark("checks", "Checking and repairing messages"),
    Benchmark("pairs", "Calls and their results", peers=True),
    Benchmark("transcripts", "Transcripts"),
    Benchmark("importing", "Importing"),
    Benchmark("ledger", "The ledger", peers=True),
    Benchmark("fleet", "Many writers on one server"),
    Benchmark("assembly", "Putting a call together"),
    Benchmark("writing", "Writing a call"),
    Benchmark("caching", "Caching"),
    Benchmark("fidelity", "What is left after compactions", peers=True),
    Benchmark("memory", "Search in conversations"),
    Benchmark("servers", "MCP servers"),
    Benchmark("journeys", "Modules on the way", peers=True),
    Benchmark("agent_turns", "Turns of agents", peers=True),
    Benchmark("chat", "The first token, and the recorder", peers=True),
    Benchmark("serve", "Requests to the server"),
    Benchmark("memory_use", "Memory of long processes"),
)
"""Every script of this directory, in the order of a run. The last one times nothing and takes longest."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run them, write the document, and return the exit code."""
    given = read_options(argv)
    started = time.monotonic()
    chosen = [each for each in BENCHMARKS if is_chosen(each, given)]
    areas: dict[str, Area] = {}
    expected = read_durations(given.cache, quick=given.quick)
    for number, each in enumerate(chosen, 1):
        left = estimate_rest(chosen[number - 1 :], expected)
        print(f"\n== {number} of {len(chosen)}{left}: {each.title}: {each.command}", flush=True)
        begun = time.monotonic()
        areas[each.name] = run(each, given)
        expected[each.name] = time.monotonic() - begun
        print(f"-- {expected[each.name]:.0f} s", flush=True)
    write_durations(given.cache, expected, quick=given.quick)
    print(f"\n{len(areas)} benchmarks, {time.monotonic() - started:.0f} s")
    if given.output:
        left_out = {each.name: Area(each.title, each.command, None, "left out of this run") for each in BENCHMARKS}
        everything = [areas.get(name, area) for name, area in left_out.items()]
        given.output.write_text(write_document(everything, describe_machine(), read_reasons()), encoding="utf-8")
        print(f"written: {given.output}")
    return tell_verdict(list(areas.values()))


def read_durations(cache: Path, *, quick: bool) -> dict[str, float]:
    """Seconds that each script took the last time, as far as they are known."""
    try:
        found = json.loads(_durations_file(cache, quick=quick).read_text(encoding="utf-8"))
        return {str(name): float(seconds) for name, seconds in found.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def write_durations(cache: Path, durations: dict[str, float], *, quick: bool) -> None:
    """Keep how long each script took, for the next run to tell what is left."""
    file = _durations_file(cache, quick=quick)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(durations), encoding="utf-8")


def _durations_file(cache: Path, *, quick: bool) -> Path:
    return cache / f"durations{'-quick' * quick}.json"


def estimate_rest(left: Sequence[Benchmark], durations: dict[str, float]) -> str:
    """How long the rest will take, for display; "" if nothing is known of one of them."""
    if any(each.name not in durations for each in left):
        return ""
    minutes = sum(durations[each.name] for each in left) / 60
    return f", about {minutes:.0f} min left" if minutes >= 1 else ", less than a minute left"


def is_chosen(benchmark: Benchmark, given: argparse.Namespace) -> bool:
    """Whether it is to run."""
    return (not given.only or benchmark.name in given.only) and (benchmark.quick or not given.quick)


def tell_verdict(areas: Sequence[Area]) -> int:
    """Print what is not as it should be, and return the exit code."""
    for area in areas:
        for row in area.rows:
            if row.missed:
                print(f"MISSED: {area.title}: {row.name}: {row.shown} (goal {row.wanted})")
        if area.report is None:
            print(f"FAILED: {area.title}: {area.failure}")
    if any(area.report is None for area in areas):
        return 2
    return exit_code(row for area in areas for row in area.rows)


def read_options(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description="Run every benchmark and write RESULTS.md.")
    names = [each.name for each in BENCHMARKS]
    parser.add_argument("--quick", action="store_true", help="the short form of each; nothing is written")
    parser.add_argument("--only", nargs="+", choices=names, metavar="AREA", help=f"some of {', '.join(names)}")
    parser.add_argument("--output", type=Path, metavar="FILE", help="where to write (RESULTS.md, if all are run)")
    parser.add_argument("--cache", type=Path, default=CACHE, metavar="DIR", help=f"where venvs are kept ({CACHE})")
    parser.add_argument("--without-peers", action="store_true", help="measure Nexus only")
    given = parser.parse_args(argv)
    if given.quick:
        given.output = None
    elif not (given.only or given.output):
        given.output = RESULTS
    return given


def run(benchmark: Benchmark, given: argparse.Namespace) -> Area:
    """What a script found; it prints its own report meanwhile."""
    options = ["--quick"] if given.quick else []
    if benchmark.peers:
        options += ["--cache", str(given.cache), *["--without-peers"] * given.without_peers]
    with tempfile.TemporaryDirectory() as scratch:
        found = Path(scratch) / "report.json"
        script = ROOT / "benchmarks" / f"{benchmark.name}.py"
        settings = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        done = subprocess.run(
            [sys.executable, str(script), *options, "--json", str(found)],
            env=settings,
            cwd=ROOT,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        sys.stderr.write(done.stderr)
        if found.exists():
            return Area(
                benchmark.title, benchmark.command, Report.from_json(json.loads(found.read_text(encoding="utf-8")))
            )
    said = done.stderr.strip().splitlines()
    return Area(
        benchmark.title,
        benchmark.command,
        None,
        without_paths(said[-1] if said else f"it ended with {done.returncode}"),
    )


def without_paths(text: str) -> str:
    """A message without the places of this machine."""
    return text.replace(str(ROOT), ".").replace(tempfile.gettempdir(), "TMP").replace(str(Path.home()), "~")


def describe_machine() -> str:
    """What numbers depend on: processor, system and interpreter; not whose machine it is."""
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{os.cpu_count()} cores, {read_processor()}, {platform.system()}, {python}, SQLite {sqlite3.sqlite_version}"


def read_processor() -> str:
    """The model of the processor; its kind where that is not told."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    told = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    return told or platform.machine()


if __name__ == "__main__":
    sys.exit(main())
