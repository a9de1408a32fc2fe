"""How long it takes to choose what of a conversation is sent, beside `trim_messages` of LangChain and of LiteLLM.

    python benchmarks/history.py [-n RUNS] [-t TURNS] [--quick] [--cache DIR] [--without-peers] [--json FILE]

Prints ratios of CPU time with their goals. Exit code: 0 all goals met, 1 a goal missed, 2 nothing could be measured.
It installs the working tree and each peer into venvs of their own, so it needs a package index, and POSIX. The
conversation, its budget of 8,000 tokens and the work asked for are the same for all.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from benchmarks.measuring.processes import clean_environment, run_program  # noqa: E402 - after the path is set
from benchmarks.measuring.reports import Report  # noqa: E402 - as above
from benchmarks.measuring.rows import Comparison, Goal, compare  # noqa: E402 - as above
from benchmarks.measuring.script import Script  # noqa: E402 - as above
from benchmarks.measuring.tables import write_tables  # noqa: E402 - as above
from benchmarks.measuring.timing import named_medians  # noqa: E402 - as above
from benchmarks.measuring.venvs import Venv, read_version  # noqa: E402 - as above

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Mapping, Sequence

BUDGET = 8000
SHORT, MIDDLE = 100, 1000
INSIDE = "--inside"
"""For the part that runs in a venv."""

MANAGER = "ContextManager, {:,} turns"
FIT = "fit(), {:,} turns"
TRIM = "trim_messages, {:,} turns"
TRIM_EXACT = "trim_messages counting with tiktoken, {:,} turns"
LITELLM = "LiteLLM trim_messages, {:,} turns"


def comparisons(long: int) -> list[Comparison]:
    """What is compared, for a long conversation of so many turns."""

    def row(dividend: str, turns: int, divisor: str, others: int, *goals: Goal) -> Comparison:
        return Comparison(dividend.format(turns), divisor.format(others), goals)

    return [
        row(MANAGER, long, MANAGER, SHORT, Goal("<=", 1.5, "P1"), Goal("<=", 2)),
        row(FIT, long, FIT, SHORT, Goal("<=", 1.5, "P1"), Goal("<=", 2)),
        row(TRIM, long, TRIM, SHORT),
        row(LITELLM, MIDDLE, LITELLM, SHORT),
        row(TRIM, long, MANAGER, long, Goal(">=", 1000, "P2")),
        row(TRIM, SHORT, MANAGER, SHORT, Goal(">=", 10, "P2")),
        row(TRIM_EXACT, long, MANAGER, long, Goal(">=", 10_000, "P2")),
        row(TRIM_EXACT, SHORT, MANAGER, SHORT),
        row(TRIM, long, FIT, long, Goal(">=", 1000, "P2")),
        row(TRIM, SHORT, FIT, SHORT, Goal(">=", 10, "P2")),
        row(TRIM_EXACT, long, FIT, long, Goal(">=", 10_000, "P2")),
        row(TRIM_EXACT, SHORT, FIT, SHORT),
        row(LITELLM, SHORT, MANAGER, SHORT),
        row(LITELLM, SHORT, FIT, SHORT),
    ]


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, and return the exit code."""
    if argv is None and INSIDE in sys.argv:
        kind, runs, turns = sys.argv[2:]
        print(json.dumps(measure_inside(kind, int(runs), int(turns))))
        return 0
    script = Script("Measure how long it takes to choose what of a conversation is sent.")
    script.runs(7, quick=5)
    script.number("-t", "turns", 100_000, 5000, "turns of the long conversation")
    script.peers()
    return script.run(measure, argv)


def measure(given: Namespace) -> Report:
    """Nexus, then each peer that there is, each in a process of its own."""
    peers = given.peers
    nexus = peers.nexus()
    found = {
        "nexus": nexus,
        "langchain": peers.get("langchain-core", "tiktoken"),
        "litellm": peers.get("litellm"),
    }
    medians: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as scratch:
        tables = write_tables(Path(scratch) / "tiktoken")
        for kind, venv in found.items():
            if venv:
                medians |= measure_in(venv, kind, tables, given)
    versions = {"nexusctx": read_version(nexus, "nexusctx")} | peers.versions
    return Report(compare(medians, comparisons(given.turns)), versions, peers.missing)


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


def measure_in(venv: Venv, kind: str, tables: Path, given: Namespace) -> dict[str, float]:
    """The medians of `measure_inside`, with what is installed in the venv."""
    with tempfile.TemporaryDirectory() as scratch:
        places = {"HOME": scratch, "XDG_CACHE_HOME": f"{scratch}/cache", "TIKTOKEN_CACHE_DIR": str(tables)}
        environment = clean_environment() | places | {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}
        arguments = [INSIDE, kind, str(given.runs), str(given.turns)]
        program = run_program(venv.python, str(Path(__file__).resolve()), *arguments, environment=environment)
    medians: dict[str, float] = json.loads(program.splitlines()[-1])
    return medians


def measure_inside(kind: str, runs: int, turns: int) -> dict[str, float]:
    """The median CPU milliseconds of one choice, for a short and a long conversation."""
    sys.path.remove(str(ROOT))  # what is measured is installed, not the checkout
    prepare = {"nexus": prepare_nexus, "langchain": prepare_langchain, "litellm": prepare_litellm}[kind]
    quick: dict[str, Callable[[], object]] = {}
    slow: dict[str, Callable[[], object]] = {}
    for size in (SHORT, MIDDLE if kind == "litellm" else turns):
        for name, choose in prepare(make_conversation(size)).items():
            # What counts the whole of a long conversation takes half a minute each time.
            (slow if name == TRIM_EXACT and size > MIDDLE else quick)[name.format(size)] = choose
    return named_medians(runs, quick) | named_medians(1, slow)


def prepare_nexus(messages: list[dict[str, Any]]) -> Mapping[str, Callable[[], object]]:
    """Both ways to choose: from a manager that was told every message, and from the plain list; both count exactly."""
    from nexus_core import fit  # noqa: PLC0415 - only inside the venv
    from nexus_core.context import ContextConfig, ContextManager, ToolCall, get_token_counter  # noqa: PLC0415 - as above

    config = ContextConfig(max_tokens=BUDGET, reserve_tokens=0, clock="off")
    context = ContextManager(config, get_token_counter("gpt-4o"))
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
    """LangChain's way, with its own messages: with its own quick counter, and counting as Nexus does."""
    langchain = import_module("langchain_core.messages")  # by name: it is installed in the venv only
    guess = import_module("langchain_core.messages.utils").count_tokens_approximately
    encode = import_module("tiktoken").get_encoding("o200k_base").encode_ordinary
    theirs = langchain.convert_to_messages(messages)

    def count(messages: list[Any]) -> int:
        return sum(4 + len(encode(message.content)) for message in messages)

    def trim(counter: object) -> Callable[[], object]:
        return lambda: langchain.trim_messages(theirs, max_tokens=BUDGET, strategy="last", token_counter=counter)

    return {TRIM: trim(guess), TRIM_EXACT: trim(count)}


def prepare_litellm(messages: list[dict[str, Any]]) -> Mapping[str, Callable[[], object]]:
    """LiteLLM's way, which counts with tiktoken."""
    theirs = [message | {"content": message["content"] or ""} for message in messages]
    trim = import_module("litellm.utils").trim_messages  # by name: it is installed in the venv only
    return {LITELLM: lambda: trim(theirs, model="gpt-4o", max_tokens=BUDGET)}


if __name__ == "__main__":
    sys.exit(main())
