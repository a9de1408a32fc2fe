"""How long it takes to choose what of a conversation is sent, beside LangChain's `trim_messages`.

    python benchmarks/history.py [-n RUNS] [--cache DIR] [--without-peers]

Prints ratios with their goals, then the medians behind them. Exit code: 0 all goals met, 1 a goal missed, 2 nothing
could be measured. It installs the working tree and `langchain-core` into venvs of their own, so it needs a package
index, and POSIX. The conversation, its budget of 8,000 tokens and the work asked for are the same for all.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from benchmarks.startup import (  # noqa: E402 - after the path is set
    CannotMeasureError,
    Comparison,
    Goal,
    Venv,
    clean_environment,
    compare,
    count_runs,
    exit_code,
    format_report,
    install,
    install_nexus,
    make_venv,
    open_cache,
    read_version,
    run_program,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

BUDGET = 8000
SHORT, LONG = 100, 100_000
INSIDE = "--inside"

MANAGER = "ContextManager, {:,} turns"
FIT = "fit(), {:,} turns"
TRIM = "trim_messages, {:,} turns"

COMPARISONS = (
    Comparison(MANAGER.format(LONG), MANAGER.format(SHORT), Goal("<=", 2)),
    Comparison(FIT.format(LONG), FIT.format(SHORT), Goal("<=", 2)),
    Comparison(TRIM.format(LONG), MANAGER.format(LONG), Goal(">=", 1000)),
    Comparison(TRIM.format(SHORT), MANAGER.format(SHORT), Goal(">=", 10)),
    Comparison(TRIM.format(LONG), FIT.format(LONG), Goal(">=", 1000)),
    Comparison(TRIM.format(SHORT), FIT.format(SHORT)),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, and return the exit code."""
    options = read_options(argv)
    if options.inside:
        print(json.dumps(measure_inside(options.inside, options.runs)))
        return 0
    try:
        cache = open_cache(options.cache)
        nexus = install_nexus(cache)
        langchain = None if options.without_peers else install_langchain(cache)
        print(describe(nexus, langchain))
        medians = measure_in(nexus, "nexus", options.runs)
        if langchain:
            medians |= measure_in(langchain, "langchain", options.runs)
    except (CannotMeasureError, OSError) as error:
        print(f"history: {error}", file=sys.stderr)
        return 2
    rows = compare(medians, COMPARISONS)
    print(format_report(rows, medians))
    return exit_code(rows)


def read_options(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options, and `inside` for the part that runs in a venv."""
    parser = argparse.ArgumentParser(description="Measure how long it takes to choose what of a conversation is sent.")
    parser.add_argument("-n", dest="runs", type=count_runs, default=15, metavar="RUNS", help="runs of each kind (15)")
    cache = Path(tempfile.gettempdir()) / "nexus-benchmarks"
    parser.add_argument("--cache", type=Path, default=cache, metavar="DIR", help=f"where the venvs are kept ({cache})")
    parser.add_argument("--without-peers", action="store_true", help="leave langchain-core out")
    parser.add_argument(INSIDE, choices=("nexus", "langchain"), help=argparse.SUPPRESS)
    return parser.parse_args(argv)


# Preparing ------------------------------------------------------------------------------------------------------------


def install_langchain(cache: Path) -> Venv | None:
    """A venv with `langchain-core`; None, and a message, when it cannot be had."""
    try:
        venv = make_venv(cache, "langchain")
        install(venv, "langchain-core")
    except CannotMeasureError as error:
        print(f"langchain-core cannot be installed, its rows are left out: {error}", file=sys.stderr)
        return None
    return venv


def describe(nexus: Venv, langchain: Venv | None) -> str:
    """What the numbers depend on, in one line."""
    versions = [f"nexus-core {read_version(nexus, 'nexus-core')}"]
    if langchain:
        versions.append(f"langchain-core {read_version(langchain, 'langchain-core')}")
    return ", ".join([*versions, f"{os.cpu_count()} cores"])


def make_conversation(turns: int) -> list[dict[str, Any]]:
    """Questions, up to two tools each, and answers; the same for the same number of turns."""
    words = ("order", "cache", "ledger", "message", "the", "of", "window", "token", "is", "and", "a", "group", "result")
    dice = random.Random(7)  # noqa: S311 - a conversation, not a secret

    def text(longest: int) -> str:
        return " ".join(dice.choices(words, k=dice.randint(10, longest)))

    messages: list[dict[str, Any]] = []
    for turn in range(turns):
        messages.append({"role": "user", "content": text(80)})
        for step in range(dice.randint(0, 2)):
            name = f"call_{turn}_{step}"
            function = {"name": "search", "arguments": json.dumps({"query": text(20)})}
            calls = [{"id": name, "type": "function", "function": function}]
            messages.append({"role": "assistant", "content": None, "tool_calls": calls})
            messages.append({"role": "tool", "tool_call_id": name, "content": text(120)})
        messages.append({"role": "assistant", "content": text(80)})
    return messages


# Measuring, inside a venv ---------------------------------------------------------------------------------------------


def measure_in(venv: Venv, kind: str, runs: int) -> dict[str, float]:
    """The medians of `measure_inside`, with what is installed in the venv."""
    with tempfile.TemporaryDirectory() as scratch:
        places = {"HOME": scratch, "XDG_CACHE_HOME": f"{scratch}/cache"}
        settings = [f"{name}={value}" for name, value in (clean_environment(os.environ) | places).items()]
        arguments = [venv.python, str(Path(__file__).resolve()), INSIDE, kind, "-n", str(runs)]
        medians: dict[str, float] = json.loads(run_program("env", "-i", *settings, *arguments))
    return medians


def measure_inside(kind: str, runs: int) -> dict[str, float]:
    """The median CPU milliseconds of one choice, for a short and a long conversation."""
    sys.path.remove(str(ROOT))  # what is measured is installed, not the checkout
    prepare = prepare_nexus if kind == "nexus" else prepare_langchain
    work: dict[str, Callable[[], object]] = {}
    for turns in (SHORT, LONG):
        work |= {name.format(turns): choose for name, choose in prepare(make_conversation(turns)).items()}
    times: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(1 + runs):
        for name, choose in work.items():  # in turn, so that noise on the machine falls on all of them alike
            before = time.process_time()
            choose()
            times[name].append((time.process_time() - before) * 1000)
    return {name: statistics.median(measured[1:]) for name, measured in times.items()}


def prepare_nexus(messages: list[dict[str, Any]]) -> Mapping[str, Callable[[], object]]:
    """Both ways to choose: from a manager that was told every message, and from the plain list."""
    from nexus_core import fit  # noqa: PLC0415 - only inside the venv
    from nexus_core.context import ContextConfig, ContextManager, SimpleTokenCounter, ToolCall  # noqa: PLC0415 - as above

    config = ContextConfig(max_tokens=BUDGET, reserve_tokens=0, clock="off")
    context = ContextManager(config, SimpleTokenCounter())
    for message in messages:
        if message["role"] == "user":
            context.add_user_message(message["content"])
        elif message["role"] == "tool":
            context.add_tool_result(message["tool_call_id"], "search", message["content"])
        else:
            calls = message.get("tool_calls", ())
            made = [ToolCall(call["id"], "search", json.loads(call["function"]["arguments"])) for call in calls]
            context.add_assistant_message(message["content"] or "", made)
    return {MANAGER: context.preview, FIT: lambda: fit(messages, model="gpt-4o", budget=BUDGET)}


def prepare_langchain(messages: list[dict[str, Any]]) -> Mapping[str, Callable[[], object]]:
    """LangChain's way, with its own messages and its own quick counter."""
    langchain = import_module("langchain_core.messages")  # by name: it is installed in the venv only
    count = import_module("langchain_core.messages.utils").count_tokens_approximately
    theirs = langchain.convert_to_messages(messages)
    return {TRIM: lambda: langchain.trim_messages(theirs, max_tokens=BUDGET, strategy="last", token_counter=count)}


if __name__ == "__main__":
    sys.exit(main())
