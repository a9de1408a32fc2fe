"""The share of each call that begins as the call before it did, so that a provider may find it in its cache.

    python benchmarks/caching.py [-t TURNS] [--transcripts DIR] [--window TOKENS] [--quick] [--json FILE]

Nothing is timed and no model is asked: tokens are counted. A call's beginning is the system prompt and then whole
messages, as long as they are the same bytes as in the call before. Three programs send the same conversation: a
session of Nexus; one that cuts the list anew for each call, from the oldest message on, until it fits; and one that,
when the list is full, cuts it to half and goes on. Neither of the last two splits a tool call from its result.

Conversations are made up, and, where `--transcripts` (or NEXUS_CORPUS) names a folder of them, the real transcripts of
coding agents, sent again call by call.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "plugins")]

from benchmarks.measuring.conversations import (  # noqa: E402 - after the path is set
    MODEL,
    Call,
    ChatMessage,
    is_call,
    measure_piece,
    read_conversations,
)
from benchmarks.measuring.reports import Report  # noqa: E402 - as above
from benchmarks.measuring.rows import Row  # noqa: E402 - as above
from benchmarks.measuring.script import Script  # noqa: E402 - as above
from nexus_core import Nexus, fit  # noqa: E402 - as above

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Iterator, Sequence

    from nexus_core import Session

WINDOW = 32_768
RESERVED = 8_000
"""Tokens that all three keep free for the reply."""
RULES = "A rule of this project, which says what to do and what to leave. " * 120
QUESTION = "Why does this happen, and what else depends on it? " * 10
ANSWER = "It happens because of the change that was made above. " * 10
EVERY = 20
"""Turns between two edits of the instructions."""


def main(argv: Sequence[str] | None = None) -> int:
    """Count, print, and return the exit code."""
    script = Script("Count how much of each call begins as the one before.")
    script.number("-t", "turns", 400, 60, "turns of the conversation that is made up")
    script.number("--window", "window", WINDOW, WINDOW, "tokens of the model's window")
    script.parser.add_argument(
        "--transcripts", type=Path, default=os.environ.get("NEXUS_CORPUS"), metavar="DIR", help="real transcripts"
    )
    return script.run(measure, argv)


def measure(given: Namespace) -> Report:
    """A row for each conversation and program."""
    made_up = make_conversation(given.turns)
    cases = {
        "made up, a session": session_calls(made_up, given.window),
        "made up, a session without summaries": session_calls(made_up, given.window, settings={"enabled": False}),
        "made up, cut to half when full": halved_calls(made_up, given.window),
        f"made up, a session, NEXUS.md edited every {EVERY} turns": session_calls(made_up, given.window, edit=True),
        "made up, the same with reload() after each edit": session_calls(
            made_up, given.window, edit=True, between=lambda session: session.reload()
        ),
    }
    found = {} if given.quick or given.transcripts is None else read_conversations(given.transcripts)
    for name, conversation in found.items():
        cases[f"{name}, a session"] = session_calls(conversation, given.window)
        cases[f"{name}, cut to half when full"] = halved_calls(conversation, given.window)
        cases[f"{name}, cut anew for each call"] = cut_calls(conversation, given.window)
    rows = [make_row(name, list(calls)) for name, calls in cases.items()]
    notes = [f"{given.turns} turns made up, {len(found)} transcripts; a window of {given.window:,} tokens."]
    if not given.quick and not found:
        notes.append("No real transcripts: name a folder of them with --transcripts.")
    return Report(rows, notes=notes)


def make_row(name: str, calls: Sequence[Call]) -> Row:
    """The share of all tokens, after the first call, that begin as in the call before."""
    pairs = list(pairwise(calls))
    shared = sum(after.shared_with(before) for before, after in pairs) / sum(after.tokens for _, after in pairs)
    changed = sum(after.shared_with(before) < before.tokens for before, after in pairs)
    mean = sum(call.tokens for call in calls) // len(calls)
    detail = f"{changed} of {len(pairs)} calls begin otherwise than the one before; {mean:,} tokens a call"
    return Row(f"{name}: tokens as in the call before", shared, unit="share", detail=detail)


# The conversations ----------------------------------------------------------------------------------------------------


def make_conversation(turns: int) -> list[ChatMessage]:
    """Questions and answers without tools."""
    messages: list[ChatMessage] = []
    for number in range(turns):
        messages.append({"role": "user", "content": f"{number}: {QUESTION}"})
        messages.append({"role": "assistant", "content": f"{number}: {ANSWER}"})
    return messages


# The programs ---------------------------------------------------------------------------------------------------------


def session_calls(
    conversation: Sequence[ChatMessage],
    window: int,
    *,
    settings: dict[str, Any] | None = None,
    edit: bool = False,
    between: Callable[[Session], object] = lambda _session: None,
) -> Iterator[Call]:
    """A session of Nexus, with the settings of compaction; edits of the instructions come every few turns."""
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch, "work")
        (work / ".nexus3").mkdir(parents=True)
        config = {
            "compaction": settings or {},
            "models": {MODEL: {"window": window}},
            "budget": {"reserve_response": RESERVED, "reserve_tools": 0},
        }
        (work / ".nexus3/config.json").write_text(json.dumps(config))
        (work / "NEXUS.md").write_text(RULES)
        with Nexus(work, home=Path(scratch, "home"), installed=False, defaults=False, ledger="memory:") as nexus:
            session = nexus.session("long", model=MODEL)
            asked = 0
            for index, message in enumerate(conversation):
                if message["role"] == "user":
                    asked += 1
                    if edit and asked % EVERY == 0:
                        (work / "NEXUS.md").write_text(f"{RULES}\nRule {asked}.\n")
                        between(session)
                    context = session.ask(message["content"], interrupt=True)
                else:
                    session.record(message)
                    if not is_call(conversation, index):
                        continue
                    context = session.next()
                body = context.to("openai", cache=False)
                yield Call([measure_piece(each) for each in body["messages"]])


def halved_calls(conversation: Sequence[ChatMessage], window: int) -> Iterator[Call]:
    """A program that cuts its list to half of what fits whenever it no longer fits."""
    system = measure_piece({"role": "system", "content": RULES})
    available = window - RESERVED - system[1]
    sizes = [measure_piece(each) for each in conversation]
    start = 0
    for index in range(len(conversation)):
        if not is_call(conversation, index):
            continue
        if sum(tokens for _, tokens in sizes[start : index + 1]) > available:
            while start < index and (
                conversation[start]["role"] == "tool"
                or sum(tokens for _, tokens in sizes[start : index + 1]) > available // 2
            ):
                start += 1
            while start < index and conversation[start]["role"] == "tool":
                start += 1
        yield Call([system, *sizes[start : index + 1]])


def cut_calls(conversation: Sequence[ChatMessage], window: int) -> Iterator[Call]:
    """A program that drops the oldest messages in every call until the rest fits."""
    system = measure_piece({"role": "system", "content": RULES})
    for index in range(len(conversation)):
        if is_call(conversation, index):
            fitted = fit(conversation[: index + 1], model=MODEL, budget=window - RESERVED - system[1], api="openai")
            yield Call([system, *(measure_piece(each) for each in fitted.messages)])


if __name__ == "__main__":
    sys.exit(main())
