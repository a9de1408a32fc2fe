"""Real transcripts as chat messages, and the calls that an agent makes of them, counted piece by piece."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core import MessageError, repair
from nexus_core.tokens.counters import open_counter
from nexus_core.transcripts.read import read_transcript

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

MODEL = "gpt-4o"
COUNTER = open_counter(MODEL)
MIN_CALLS = 30
"""Transcripts with fewer model calls never fill the window."""
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


def measure_piece(message: ChatMessage) -> tuple[str, int]:
    """A message as text, with its tokens: content, tool calls and what a message costs besides."""
    functions = [call["function"] for call in message.get("tool_calls", ())]
    texts = [message.get("content") or "", *(each["name"] + each["arguments"] for each in functions)]
    return json.dumps(message, sort_keys=True), sum(map(COUNTER.count, texts)) + OVERHEAD
