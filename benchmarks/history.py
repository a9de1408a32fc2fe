"""The cost of choosing what is sent in an agent's loop, beside `trim_messages` of LangChain and of LiteLLM.

    python benchmarks/history.py [-n RUNS] [-t TURNS] [--quick] [--cache DIR] [--without-peers] [--json FILE]

A conversation grows message by message, and before each model call the newest 8,000 tokens of it are chosen. What is
measured is one call: adding the messages that are new since the call before, and choosing. The conversation, the
budget and the loop are the same for all. Prints ratios of CPU time with their goals. Exit code: 0 all goals met, 1 a
goal missed, 2 nothing could be measured. It installs the working tree and each peer into venvs of their own, so it
needs a package index, and POSIX.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from importlib import import_module
from itertools import islice
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
SHORT = 100
LOOP = 3
"""Turns that the conversation grows by in each run."""
INSIDE = "--inside"
"""For the part that runs in a venv."""

Message = dict[str, Any]
Turn = list[Message]

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


def make_conversation(turns: int, begin: int = 0) -> list[Turn]:
    """Questions, up to two tool calls each, and answers; the same for the same numbers."""
    words = ("order", "cache", "ledger", "message", "the", "of", "window", "token", "is", "and", "a", "group", "result")
    dice = random.Random(7 + begin)  # noqa: S311 - a conversation, not a secret

    def text(longest: int) -> str:
        return " ".join(dice.choices(words, k=dice.randint(10, longest)))

    conversation = []
    for number in range(begin, begin + turns):
        turn: Turn = [{"role": "user", "content": text(80)}]
        for step in range(dice.randint(0, 2)):
            name = f"call_{number}_{step}"
            function = {"name": "search", "arguments": json.dumps({"query": text(20)})}
            calls = [{"id": name, "type": "function", "function": function}]
            turn.append({"role": "assistant", "content": None, "tool_calls": calls})
            turn.append({"role": "tool", "tool_call_id": name, "content": text(120)})
        turn.append({"role": "assistant", "content": text(80)})
        conversation.append(turn)
    return conversation


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
    """The median CPU milliseconds of one call, in a short and in a long conversation."""
    sys.path.remove(str(ROOT))  # what is measured is installed, not the checkout
    prepare = {"nexus": prepare_nexus, "langchain": prepare_langchain, "litellm": prepare_litellm}[kind]
    quick: dict[str, Callable[[], float]] = {}
    slow: dict[str, Callable[[], float]] = {}
    for size in (SHORT,) if kind == "litellm" else (SHORT, turns):
        # Every run goes on where the one before stopped; the first one does not count.
        turns_so_far, turns_to_come = make_conversation(size), make_conversation(LOOP * (runs + 1), begin=size)
        for name, (add, choose) in prepare().items():
            # LiteLLM takes a third of a second for each call, and counting all of a long conversation takes seconds.
            works = slow if name == LITELLM or (name == TRIM_EXACT and size > SHORT) else quick
            works[name.format(size)] = grow(turns_so_far, turns_to_come, add, choose)
    return named_medians(runs, quick) | named_medians(1, slow)


def grow(
    turns_so_far: list[Turn], turns_to_come: list[Turn], add: Callable[[Message], object], choose: Callable[[], object]
) -> Callable[[], float]:
    """A run of a loop that has come so far: the mean seconds of a call over the next few turns."""
    for turn in turns_so_far:
        for message in turn:
            add(message)
    choose()
    upcoming = iter(turns_to_come)

    def run() -> float:
        calls, started = 0, time.process_time()
        for turn in islice(upcoming, LOOP):
            for message in turn:
                add(message)
                if message["role"] != "assistant":  # a model is called after a question and after a tool result
                    choose()
                    calls += 1
        return (time.process_time() - started) / calls

    return run


def prepare_nexus() -> Mapping[str, tuple[Callable[[Message], object], Callable[[], object]]]:
    """Both ways to choose: a manager that is given each message, and `fit` on the whole list; both count exactly."""
    from nexus_core import fit
    from nexus_core.context import ContextConfig, ContextManager, ToolCall, get_token_counter

    config = ContextConfig(max_tokens=BUDGET, reserve_tokens=0, clock="off")
    context = ContextManager(config, get_token_counter("gpt-4o"))
    messages: list[Message] = []

    def add_to_manager(message: Message) -> None:
        if message["role"] == "user":
            context.add_user_message(message["content"])
        elif message["role"] == "tool":
            context.add_tool_result(message["tool_call_id"], "search", message["content"])
        else:
            calls = message.get("tool_calls", ())
            made = [ToolCall(call["id"], "search", json.loads(call["function"]["arguments"])) for call in calls]
            context.add_assistant_message(message["content"] or "", made)

    return {
        MANAGER: (add_to_manager, context.build_messages),
        FIT: (messages.append, lambda: fit(messages, model="gpt-4o", budget=BUDGET)),
    }


def prepare_langchain() -> Mapping[str, tuple[Callable[[Message], object], Callable[[], object]]]:
    """LangChain's way, with its own messages: with its own approximate counter, and counting as Nexus does."""
    langchain = import_module("langchain_core.messages")  # by name: it is installed in the venv only
    guess = import_module("langchain_core.messages.utils").count_tokens_approximately
    encode = import_module("tiktoken").get_encoding("o200k_base").encode_ordinary

    def count(messages: list[Any]) -> int:
        return sum(4 + len(encode(message.content)) for message in messages)

    def trim(counter: object) -> tuple[Callable[[Message], object], Callable[[], object]]:
        theirs: list[Any] = []
        return (
            lambda message: theirs.extend(langchain.convert_to_messages([message])),
            lambda: langchain.trim_messages(theirs, max_tokens=BUDGET, strategy="last", token_counter=counter),
        )

    return {TRIM: trim(guess), TRIM_EXACT: trim(count)}


def prepare_litellm() -> Mapping[str, tuple[Callable[[Message], object], Callable[[], object]]]:
    """LiteLLM's way, which counts with tiktoken."""
    theirs: list[Message] = []
    trim = import_module("litellm.utils").trim_messages  # by name: it is installed in the venv only
    return {
        LITELLM: (
            lambda message: theirs.append(message | {"content": message["content"] or ""}),
            lambda: trim(theirs, model="gpt-4o", max_tokens=BUDGET),
        )
    }


if __name__ == "__main__":
    sys.exit(main())
