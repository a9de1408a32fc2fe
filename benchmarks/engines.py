"""How fast Nexus counts tokens where splintr is installed, beside tiktoken, and whether they are the same tokens.

    python benchmarks/engines.py [-n RUNS] [--quick] [--cache DIR] [--without-peers] [--json FILE]

Prints ratios of CPU time with their goals. Exit code: 0 all goals met, 1 a goal missed, 2 nothing could be measured.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from benchmarks.measuring.processes import Command, measure_medians, run_program  # noqa: E402 - after the path is set
from benchmarks.measuring.reports import Report  # noqa: E402 - as above
from benchmarks.measuring.rows import Comparison, Goal, Row, compare  # noqa: E402 - as above
from benchmarks.measuring.script import Script  # noqa: E402 - as above
from benchmarks.measuring.tables import write_tables  # noqa: E402 - as above
from benchmarks.measuring.texts import environment_for, read_messages  # noqa: E402 - as above
from benchmarks.measuring.timing import named_medians  # noqa: E402 - as above
from benchmarks.measuring.venvs import install  # noqa: E402 - as above

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Mapping, Sequence

INSIDE = "--inside"
"""For the part that runs inside the venv."""

OWN_START, START = "tiktoken: first count", "nexus with splintr: first count"
OWN_MESSAGES = "tiktoken: messages"
NEW_MESSAGES, MESSAGES = "nexus with splintr: new messages", "nexus with splintr: the same messages again"
STARTS = {
    START: "from nexus_core.context import get_token_counter as g; g('gpt-4o').count('Hello, world!')",
    OWN_START: "import tiktoken; tiktoken.encoding_for_model('gpt-4o').encode_ordinary('Hello, world!')",
}
COMPARISONS = (
    Comparison(START, OWN_START, (Goal("<=", 0.2, "P9"),)),
    Comparison(OWN_MESSAGES, NEW_MESSAGES, (Goal(">=", 2, "P10"),)),
    Comparison(OWN_MESSAGES, MESSAGES),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, and return the exit code."""
    script = Script("Measure how fast tokens are counted with splintr, beside tiktoken.")
    script.runs(15, quick=3)
    script.peers()
    if argv is None and INSIDE in sys.argv:
        print(json.dumps(measure_inside(int(sys.argv[-1]))))
        return 0
    return script.run(measure, argv)


def measure(given: Namespace) -> Report:
    """Fresh processes, then texts in one of them."""
    venv = given.peers.get("splintr-rs", str(ROOT))
    if venv is None:
        return Report([], given.peers.versions, given.peers.missing)
    install(venv, "--force-reinstall", "--no-deps", str(ROOT))  # the version may be the same, the tree is not
    with tempfile.TemporaryDirectory() as scratch:
        environment, work = (
            environment_for(write_tables(Path(scratch) / "tiktoken"), Path(scratch)),
            Path(scratch) / "work",
        )
        work.mkdir()
        commands = [Command(name, (venv.python, "-c", code), work, environment) for name, code in STARTS.items()]
        medians = measure_medians(commands, given.runs)
        arguments = [venv.python, str(Path(__file__).resolve()), INSIDE, str(given.runs)]
        inside = json.loads(run_program(*arguments, environment=environment))
    differing = Row(
        f"of {inside['texts']:,} texts, those with other tokens", inside["differing"], (Goal("<=", 0, "P10"),), "count"
    )
    return Report([*compare(medians | inside["medians"], COMPARISONS), differing], given.peers.versions)


def measure_inside(runs: int) -> dict[str, object]:
    """The median CPU milliseconds of each way to count the same texts, and how many of them differ."""
    sys.path.remove(str(ROOT))  # what is measured is installed, not the checkout
    import tiktoken

    from nexus_core.context import TiktokenCounter
    from nexus_plugins.tiktoken_counter._counter import load_engine

    messages = read_messages()
    own, ours = tiktoken.get_encoding("o200k_base").encode_ordinary, TiktokenCounter("o200k_base")
    fast: Any = load_engine("o200k_base")  # the one that the counter uses, too

    def count_new() -> None:
        fast.__self__.clear_cache()  # it remembers words
        ours.count_many(messages)

    work: Mapping[str, Callable[[], object]] = {
        OWN_MESSAGES: lambda: [len(own(message)) for message in messages],
        NEW_MESSAGES: count_new,
        MESSAGES: lambda: ours.count_many(messages),
    }
    differing = sum(own(message) != fast(message) for message in messages)
    return {"medians": named_medians(runs, work), "texts": len(messages), "differing": differing}


if __name__ == "__main__":
    sys.exit(main())
