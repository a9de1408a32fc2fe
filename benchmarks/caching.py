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
from typing import TYPE_CHECKING, Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "plugins")]

from benchmarks.measuring.reports import Report  # noqa: E402 - after the path is set
from benchmarks.measuring.rows import Row  # noqa: E402 - as above
from benchmarks.measuring.script import Script  # noqa: E402 - as above
from nexus_core import MessageError, Nexus, fit, repair  # noqa: E402 - as above
from nexus_core.tokens.counters import open_counter  # noqa: E402 - as above
from nexus_core.transcripts.read import read_transcript  # noqa: E402 - as above

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from nexus_core import Session

MODEL = "gpt-4o"
WINDOW = 32_768
RESERVED = 8_000
"""Tokens that all three keep free for the reply."""
RULES = "A rule of this project, which says what to do and what to leave. " * 120
QUESTION = "Why does this happen, and what else depends on it? " * 10
ANSWER = "It happens because of the change that was made above. " * 10
EVERY = 20
"""Turns between two edits of the instructions."""
MIN_CALLS = 30
"""Transcripts with fewer model calls never fill the window."""
COUNTER = open_counter(MODEL)

OVERHEAD = 4
"""Tokens of a message besides its texts."""

ChatMessage = dict[str, Any]


class Call(NamedTuple):
    """A request, piece by piece: each as text, with its tokens; the system prompt first."""

    pieces: list[tuple[str, int]]

    @property
    def tokens(self) -> int:
        """All of it."""
        return sum(tokens for _, tokens in self.pieces)

    def shared_with(self, other: Call) -> int:
        """The tokens with which both begin."""
        shared = 0
        for (one, tokens), (another, _) in zip(self.pieces, other.pieces, strict=False):
            if one != another:
                break
            shared += tokens
        return shared


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


def read_conversations(folder: Path) -> dict[str, list[ChatMessage]]:
    """By file name, every transcript below the folder that has enough calls, as chat messages."""
    found = {}
    for path in sorted(folder.rglob("*.jsonl")):
        try:
            transcript = read_transcript(path.read_text(encoding="utf-8"), path.name)
        except MessageError:
            continue
        messages = join_messages(write_chat(message) for message in transcript.messages)
        if sum(is_call(messages, index) for index in range(len(messages))) >= MIN_CALLS:
            found[f"{transcript.format} {path.stem}"] = messages
    return found


def write_chat(message: Any) -> list[ChatMessage]:  # noqa: ANN401 - a neutral message
    """A neutral message in the shape of chat completions; media and reasoning are left out."""
    if message.tool_results:
        return [{"role": "tool", "tool_call_id": each.call_id, "content": each.text} for each in message.tool_results]
    written: ChatMessage = {"role": message.role, "content": message.content}
    if message.tool_calls:
        written["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(dict(call.arguments))},
            }
            for call in message.tool_calls
        ]
    return [written]


def join_messages(written: Iterable[list[ChatMessage]]) -> list[ChatMessage]:
    """One message for each run of the same role, every call with its results, as an agent sends them."""
    joined: list[ChatMessage] = []
    for message in repair([each for messages in written for each in messages], "openai", source="openai").messages:
        last = joined[-1] if joined else {"role": ""}
        is_empty = not (message.get("content") or message.get("tool_calls") or message["role"] == "tool")
        if is_empty or message["role"] == "system":
            continue
        if message["role"] == last["role"] and message["role"] != "tool" and not last.get("tool_calls"):
            joined[-1] = last | message | {"content": f"{last['content'] or ''}\n{message['content'] or ''}"}
        elif joined or message["role"] == "user":
            joined.append(message)
    return joined


def is_call(messages: Sequence[ChatMessage], index: int) -> bool:
    """True if a model is called after this message: a reply comes next."""
    return (
        messages[index]["role"] != "assistant"
        and index + 1 < len(messages)
        and messages[index + 1]["role"] == "assistant"
    )


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


def measure_piece(message: ChatMessage) -> tuple[str, int]:
    """A message as text, with its tokens: content, tool calls and what a message costs besides."""
    functions = [call["function"] for call in message.get("tool_calls", ())]
    texts = [message.get("content") or "", *(each["name"] + each["arguments"] for each in functions)]
    return json.dumps(message, sort_keys=True), sum(map(COUNTER.count, texts)) + OVERHEAD


if __name__ == "__main__":
    sys.exit(main())
