"""How often a tool's result is sent without its call, beside LangChain, LiteLLM and openai-agents.

    python benchmarks/pairs.py [-c CONVERSATIONS] [-p THEIRS] [--quick] [--cache DIR] [--without-peers] [--json FILE]

Nothing is timed: random conversations, the same every time, are cut to random budgets. An API refuses a result without
its call. Exit code 1 when a goal is missed.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "plugins")]

from benchmarks.measuring.processes import clean_environment, run_program  # noqa: E402 - after the path is set
from benchmarks.measuring.reports import Report  # noqa: E402 - as above
from benchmarks.measuring.rows import Goal, Row  # noqa: E402 - as above
from benchmarks.measuring.script import Script  # noqa: E402 - as above
from benchmarks.measuring.tables import write_tables  # noqa: E402 - as above

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from nexus_core.types.messages import Message

INSIDE = "--inside"
"""For the part that runs in a peer's venv."""
WORDS = ("order", "cache", "ledger", "message", "the", "of", "window", "token", "is", "and", "a", "group", "result")
ITEMS = 50
"""openai-agents cuts by items, not by tokens."""
STRATEGIES = ("oldest_first", "middle_out")
PEERS = {"langchain": "langchain-core", "litellm": "litellm", "agents": "openai-agents"}
Found = tuple[int, int, float | None]
"""Conversations with a split pair, all of them, and the share of the budget that was used."""
NEVER = (Goal("<=", 0, "P11"),)


class Case(NamedTuple):
    """A conversation in the shape of chat completions, and what it is cut to."""

    messages: list[dict[str, Any]]
    budget: int


def main(argv: Sequence[str] | None = None) -> int:
    """Count, print, and return the exit code."""
    if argv is None and INSIDE in sys.argv:
        kind, number = sys.argv[2:]
        print(json.dumps(PEER_CUTS[kind](make_cases(int(number)))))
        return 0
    script = Script("Count how often a result is sent without its call.")
    script.number("-c", "conversations", 10_000, 200, "conversations that Nexus cuts")
    script.number("-p", "theirs", 200, 200, "conversations that the others cut")
    script.peers()
    return script.run(measure, argv)


def measure(given: Namespace) -> Report:
    """Nexus, then each peer that there is."""
    rows = cut_with_fit(given.conversations)
    with tempfile.TemporaryDirectory() as scratch:
        environment = clean_environment() | {
            "TIKTOKEN_CACHE_DIR": str(write_tables(Path(scratch))),
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # else it asks the network
        }
        for kind, distribution in PEERS.items():
            if venv := given.peers.get(distribution):
                arguments = [str(Path(__file__).resolve()), INSIDE, kind, str(given.theirs)]
                said = run_program(venv.python, *arguments, environment=environment)
                rows += [peer_row(name, *found) for name, found in json.loads(said.splitlines()[-1]).items()]
    return Report(rows, given.peers.versions, given.peers.missing)


def peer_row(name: str, split: int, cases: int, used: float | None) -> Row:
    """The share of conversations that a peer has split a pair of."""
    detail = f"{split} of {cases}" + (f", {used:.0%} of the budget used".replace("%", " %") if used else "")
    return Row(
        f"{name}: conversations with a result that has lost its call", split / cases, unit="share", detail=detail
    )


# Conversations --------------------------------------------------------------------------------------------------------


def make_cases(number: int) -> Iterator[Case]:
    """Conversations with calls of one to three tools; the same every time."""
    for seed in range(number):
        dice = random.Random(seed)  # noqa: S311 - a conversation, not a secret
        messages: list[dict[str, Any]] = []
        for turn in range(dice.randint(5, 40)):
            messages.append({"role": "user", "content": _talk(dice, 40)})
            for step in range(dice.randint(0, 3)):
                messages += _call(dice, f"call_{turn}_{step}")
            messages.append({"role": "assistant", "content": _talk(dice, 60)})
        yield Case(messages, dice.randint(300, 3000))


def _call(dice: random.Random, name: str) -> list[dict[str, Any]]:
    names = [f"{name}_{place}" for place in range(dice.randint(1, 3))]
    calls = [{"id": each, "type": "function", "function": {"name": "search", "arguments": "{}"}} for each in names]
    results = [{"role": "tool", "tool_call_id": each, "content": _talk(dice, 90)} for each in names]
    return [{"role": "assistant", "content": "", "tool_calls": calls}, *results]


def _talk(dice: random.Random, longest: int) -> str:
    return " ".join(dice.choices(WORDS, k=dice.randint(5, longest)))


def is_split(pairs: Iterable[tuple[str, str]]) -> bool:
    """Whether a result stands without a call before it, of `call` and `result` with their ids."""
    called = set()
    for kind, name in pairs:
        if kind == "call":
            called.add(name)
        elif name not in called:
            return True
    return False


def pairs_of(messages: Iterable[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """The calls and results of messages in the shape of chat completions."""
    for message in messages:
        yield from (("call", call["id"]) for call in message.get("tool_calls") or ())
        if message["role"] == "tool":
            yield "result", message["tool_call_id"]


# Nexus ----------------------------------------------------------------------------------------------------------------


def cut_with_fit(number: int) -> list[Row]:
    """What `fit` makes of them: pairs that it splits, and room that the next group would have had."""
    from nexus_core import BudgetError, fit
    from nexus_core.context import SimpleTokenCounter
    from nexus_core.history.fit import OMISSION_NOTICE, OMISSION_RULE
    from nexus_core.history.groups import group_messages

    counter = SimpleTokenCounter()
    notice = counter.count_messages([OMISSION_NOTICE])
    split = wasted = cut = 0
    used = 0.0
    for case in make_cases(number):
        messages = neutral(case.messages)
        for strategy in STRATEGIES:
            try:
                fitted = fit(messages, budget=case.budget, strategy=strategy, counter=counter, api="neutral")
            except BudgetError:  # the newest group alone is too large
                continue
            cut += 1
            used += fitted.budget.total / case.budget
            split += is_split(neutral_pairs(fitted.messages)) or lost_results(fitted.messages)
            dropped = [each for each in fitted.decisions if each.action == "dropped"]
            if strategy == "oldest_first" and dropped:
                newest = [group for group in group_messages(messages) if group.end <= dropped[-1].last + 1][-1]
                added = messages[slice(*newest)]
                has_notice = any(each.rule == OMISSION_RULE for each in fitted.decisions)
                needs_notice = newest.first > 0 and added[0].role != "user"
                room = fitted.budget.remaining + (has_notice - needs_notice) * notice
                wasted += room >= counter.count_messages(added)
    name, detail = f"fit(), {number:,} conversations", f"{cut:,} cuts, {100 * used / cut:.0f} % of the budget used"
    return [
        Row(f"{name}: cuts that split a call from its result", split, NEVER, "count", detail),
        Row(f"{name}: cuts that leave room for the next group", wasted, NEVER, "count", detail),
    ]


def neutral(messages: Iterable[dict[str, Any]]) -> list[Message]:
    """The messages as Nexus has them."""
    from nexus_core.types.messages import Message as Neutral
    from nexus_core.types.messages import ToolCall, ToolResult

    def read(message: dict[str, Any]) -> Message:
        if message["role"] == "tool":
            return Neutral("tool", [ToolResult(message["tool_call_id"], message["content"])])
        if calls := message.get("tool_calls"):
            return Neutral("assistant", [ToolCall(call["id"], "search", {}) for call in calls])
        return Neutral(message["role"], message["content"])

    return [read(message) for message in messages]


def neutral_pairs(messages: Iterable[Message]) -> Iterator[tuple[str, str]]:
    """The calls and results of messages."""
    for message in messages:
        yield from (("call", call.id) for call in message.tool_calls)
        yield from (("result", result.call_id) for result in message.tool_results)


def lost_results(messages: Sequence[Message]) -> bool:
    """Whether a call stands without its result; none of these conversations ends in one."""
    pairs = list(neutral_pairs(messages))
    return {name for kind, name in pairs if kind == "call"} != {name for kind, name in pairs if kind == "result"}


# Peers, inside their venvs --------------------------------------------------------------------------------------------


def cut_with_langchain(cases: Iterable[Case]) -> dict[str, Found]:
    """`trim_messages` as it comes, and beginning with what a person says."""
    langchain = import_module("langchain_core.messages")  # by name: it is installed in the venv only
    count = import_module("langchain_core.messages.utils").count_tokens_approximately
    found: dict[str, Found] = {}
    conversations = [(langchain.convert_to_messages(case.messages), case.budget) for case in cases]
    for name, options in (("trim_messages", {}), ('trim_messages(start_on="human")', {"start_on": "human"})):
        split, used = 0, 0.0
        for messages, budget in conversations:
            kept = langchain.trim_messages(messages, max_tokens=budget, strategy="last", token_counter=count, **options)
            split += is_split(pairs_of(langchain.convert_to_openai_messages(kept)))
            used += count(kept) / budget
        found[f"LangChain {name}"] = (split, len(conversations), used / len(conversations))
    return found


def cut_with_litellm(cases: Iterable[Case]) -> dict[str, Found]:
    """Its `trim_messages`, which counts with tiktoken."""
    trim = import_module("litellm.utils").trim_messages  # by name: it is installed in the venv only
    cut = [trim(case.messages, model="gpt-4o", max_tokens=case.budget) for case in cases]
    return {"LiteLLM trim_messages": (sum(is_split(pairs_of(kept)) for kept in cut), len(cut), None)}


def cut_with_agents(cases: Iterable[Case]) -> dict[str, Found]:
    """The newest items of a session, as many as are asked for."""
    return {f"openai-agents get_items({ITEMS})": (*asyncio.run(_get_items(cases)), None)}


async def _get_items(cases: Iterable[Case]) -> tuple[int, int]:
    session_type = import_module("agents").SQLiteSession  # by name: it is installed in the venv only
    kinds = {"function_call": "call", "function_call_output": "result"}
    split = cut = 0
    for number, case in enumerate(cases):
        session = session_type(f"case {number}")
        await session.add_items([item for message in case.messages for item in _items(message)])
        kept = await session.get_items(ITEMS)
        if len(kept) == ITEMS:
            cut += 1
            split += is_split((kinds[item["type"]], item["call_id"]) for item in kept if item.get("type") in kinds)
        session.close()
    return split, cut


def _items(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if message["role"] == "tool":
        yield {"type": "function_call_output", "call_id": message["tool_call_id"], "output": message["content"]}
    elif calls := message.get("tool_calls"):
        yield from ({"type": "function_call", "call_id": call["id"], **call["function"]} for call in calls)
    else:
        yield message


PEER_CUTS: dict[str, Callable[[Iterable[Case]], dict[str, Found]]] = {
    "langchain": cut_with_langchain,
    "litellm": cut_with_litellm,
    "agents": cut_with_agents,
}


if __name__ == "__main__":
    sys.exit(main())
