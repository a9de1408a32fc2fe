"""How fast Nexus counts tokens, beside tiktoken with its own tables, and how far its estimates are off.

    python benchmarks/tokens.py [-n RUNS] [--transcripts DIR] [--quick] [--cache DIR] [--without-peers] [--json FILE]

Prints ratios of CPU time with their goals. Exit code: 0 all goals met, 1 a goal missed, 2 nothing could be measured.
It installs the working tree, and with it tiktoken, into a venv of its own, so it needs a package index, and POSIX.
`--quick` and `--without-peers` measure what is installed beside the interpreter that runs it.

Where `--transcripts` (or NEXUS_CORPUS) names a folder of transcripts, the size of each recorded call is predicted from
the calls before it, as a session does, and compared with what its provider counted; so are its cache reads.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from benchmarks.measuring.processes import (  # noqa: E402 - after the path is set
    Command,
    measure_medians,
    run_program,
)
from benchmarks.measuring.reports import Report  # noqa: E402 - as above
from benchmarks.measuring.rows import Comparison, Goal, Row, compare  # noqa: E402 - as above
from benchmarks.measuring.script import Script  # noqa: E402 - as above
from benchmarks.measuring.tables import write_tables  # noqa: E402 - as above
from benchmarks.measuring.texts import environment_for, read_messages, read_text  # noqa: E402 - as above
from benchmarks.measuring.timing import named_medians  # noqa: E402 - as above
from benchmarks.measuring.venvs import Venv, read_version  # noqa: E402 - as above

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Mapping, Sequence

INSIDE = "--inside"
"""For the part that runs inside the venv."""
SAMPLES = ROOT / "tests/tokens/samples"

OWN_START = "tiktoken: first count, {}"
START = "nexus: first count, {}"
CACHED_START = "nexus: first count, cached"
OWN_TEXT, TEXT = "tiktoken: 1 MB", "nexus: 1 MB"
OWN_MESSAGES, MESSAGES, NEW_MESSAGES = "tiktoken: messages", "nexus: messages", "nexus: messages, kept for later"
ESTIMATE = "nexus: 1 MB, estimated"

MODELS = {"o200k_base": "gpt-4o", "cl100k_base": "gpt-4"}
COUNT_ONCE = "from nexus_core.tokens.counters import open_counter as o; o('gpt-4o').count('Hello, world!')"
COMPARISONS = (
    Comparison(START.format("o200k_base"), OWN_START.format("o200k_base"), (Goal("<=", 0.7, "P9"), Goal("<=", 0.3))),
    Comparison(START.format("cl100k_base"), OWN_START.format("cl100k_base")),
    Comparison(CACHED_START, OWN_START.format("o200k_base")),
    Comparison(OWN_TEXT, TEXT, (Goal(">=", 0.9),)),
    Comparison(OWN_MESSAGES, MESSAGES, (Goal(">=", 0.9),)),
    Comparison(OWN_MESSAGES, NEW_MESSAGES),
    Comparison(OWN_TEXT, ESTIMATE),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, and return the exit code."""
    script = Script("Measure how fast tokens are counted, beside tiktoken.")
    script.runs(15, quick=3)
    script.peers()
    script.parser.add_argument(
        "--transcripts", type=Path, default=os.environ.get("NEXUS_CORPUS"), metavar="DIR", help="real transcripts"
    )
    if argv is None and INSIDE in sys.argv:
        print(json.dumps(measure_inside(int(sys.argv[-1]))))
        return 0
    return script.run(measure, argv)


def measure(given: Namespace) -> Report:
    """Fresh processes, then texts in one of them, then estimates."""
    nexus = given.peers.nexus()
    with tempfile.TemporaryDirectory() as scratch:
        tables = write_tables(Path(scratch) / "tiktoken")
        environment = environment_for(tables, Path(scratch))
        medians = measure_medians(list_commands(nexus, environment, Path(scratch)), given.runs)
        arguments = [nexus.python, str(Path(__file__).resolve()), INSIDE, str(given.runs)]
        inside = json.loads(run_program(*arguments, environment=environment))
    rows = compare(medians | inside["medians"], COMPARISONS)
    rows += estimate_rows(inside["estimates"])
    notes = []
    if given.transcripts is not None and not given.quick:
        from benchmarks.measuring.counts import build_count_rows  # the product, which the part inside the venv has, too

        rows += build_count_rows(Path(given.transcripts))
    elif not given.quick:
        notes.append("No real transcripts: name a folder of them with --transcripts.")
    return Report(rows, {"tiktoken": read_version(nexus, "tiktoken")}, notes=notes)


def estimate_rows(estimates: Mapping[str, Mapping[str, Mapping[str, float]]]) -> list[Row]:
    """The text that each way to estimate is furthest below the exact count for."""
    rows = []
    for encoding, ways in estimates.items():
        for way, shares in ways.items():
            name, low = max(shares.items(), key=lambda item: item[1])
            goals = (Goal("<=", 0.1, "P12"),) if way == "estimate" else ()
            of = f"{name}; {len(shares)} kinds of text"
            rows.append(Row(f"{way}: furthest below the exact count, {encoding}", max(low, 0.0), goals, "share", of))
    return rows


# Preparing ------------------------------------------------------------------------------------------------------------


def list_commands(nexus: Venv, environment: Mapping[str, str], scratch: Path) -> list[Command]:
    """Fresh processes that count one short text."""
    work = scratch / "work"
    work.mkdir()

    def command(name: str, code: str) -> Command:
        return Command(name, (nexus.python, "-c", code), work, environment)

    commands = []
    for name, model in MODELS.items():
        ours = f"from nexus_core.context import get_token_counter as g; g({model!r}).count('Hello, world!')"
        own = f"import tiktoken; tiktoken.encoding_for_model({model!r}).encode_ordinary('Hello, world!')"
        commands += [command(START.format(name), ours), command(OWN_START.format(name), own)]
    return [*commands, command(CACHED_START, COUNT_ONCE)]


# Inside the venv ------------------------------------------------------------------------------------------------------


def measure_inside(runs: int) -> dict[str, object]:
    """The median CPU milliseconds of each way to count the same texts, and what estimates are."""
    sys.path.remove(str(ROOT))  # what is measured is installed, not the checkout
    import tiktoken

    from nexus_core.context import TiktokenCounter
    from nexus_core.tokens.count_cache import CountCache
    from nexus_core.tokens.counters import CachingCounter
    from nexus_core.tokens.estimator import estimate

    text, messages = read_text(), read_messages()
    own, ours = tiktoken.get_encoding("o200k_base").encode_ordinary, TiktokenCounter("o200k_base")

    def count_new() -> None:
        with tempfile.TemporaryDirectory() as fresh:
            CachingCounter(ours, CountCache(Path(fresh) / "counts")).count_many(messages)

    work: Mapping[str, Callable[[], object]] = {
        TEXT: lambda: ours.count(text),
        OWN_TEXT: lambda: len(own(text)),
        MESSAGES: lambda: ours.count_many(messages),
        OWN_MESSAGES: lambda: [len(own(message)) for message in messages],
        NEW_MESSAGES: count_new,
        ESTIMATE: lambda: estimate(text),
    }
    exact = {name: tiktoken.get_encoding(name).encode_ordinary for name in MODELS}
    return {"medians": named_medians(runs, work), "estimates": compare_estimates(exact, estimate)}


def compare_estimates(
    exact: Mapping[str, Callable[[str], Sequence[int]]], estimate: Callable[[str], int]
) -> dict[str, dict[str, dict[str, float]]]:
    """By encoding and way to estimate, how far below the exact count it is for each kind of text."""
    ways: Mapping[str, Callable[[str], float]] = {"estimate": estimate, "characters / 4": lambda text: len(text) / 4}
    samples = {path.stem: path.read_text(encoding="utf-8") for path in sorted(SAMPLES.glob("*.txt"))}
    return {
        encoding: {
            way: {name: 1 - guess(text) / len(encode(text)) for name, text in samples.items()}
            for way, guess in ways.items()
        }
        for encoding, encode in exact.items()
    }


if __name__ == "__main__":
    sys.exit(main())
