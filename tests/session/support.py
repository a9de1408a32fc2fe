"""Replies as models give them, and steps as a ledger keeps them."""

from __future__ import annotations

import json
from typing import Any

from nexus_core.ledger.ledger import StoreLedger
from nexus_core.types.ledger import Ledger, NewStep, Step
from nexus_core.types.messages import Message
from nexus_core.types.payloads import CompactionPayload, ReplyPayload, ResultPayload

TOOLS = [
    {
        "name": "look",
        "description": "Look at a file.",
        "input_schema": {"type": "object", "properties": {"path": {"type": "string"}, "lines": {"type": "integer"}}},
    }
]
USAGE = {
    "input_tokens": 10,
    "cache_read_input_tokens": 200,
    "cache_creation_input_tokens": 30,
    "output_tokens": 50,
    "output_tokens_details": {"thinking_tokens": 20},
}


def spoken(message: Message | None) -> str:
    """What was said in a message, without the circumstances before it."""
    assert message is not None
    text = message.content
    return text.split("\n\n", 1)[1] if text.startswith("Current time: ") else text


def says(text: str, *, name: str = "msg_1", stop: str = "end_turn") -> dict[str, Any]:
    """An answer in words."""
    return replied([{"type": "text", "text": text}], name=name, stop=stop)


def calls(*ids: str, name: str = "msg_1", text: str = "", tool: str = "look") -> dict[str, Any]:
    """An answer that asks for a tool, once for each id."""
    words = [{"type": "text", "text": text}] if text else []
    wanted = [{"type": "tool_use", "id": each, "name": tool, "input": {"path": each}} for each in ids]
    return replied([*words, *wanted], name=name, stop="tool_use")


def streamed(*texts: str, name: str = "msg_1") -> str:
    """An answer in words that comes in pieces, as it is on the wire."""
    head = {**replied([], name=name, stop=""), "stop_reason": None}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": head},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}} for text in texts),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": dict(USAGE)},
        {"type": "message_stop"},
    ]
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)


def replied(blocks: list[dict[str, Any]], *, name: str, stop: str) -> dict[str, Any]:
    return {
        "id": name,
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-20250514",
        "content": blocks,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": dict(USAGE),
    }


def gemini_calls(*names: str) -> dict[str, Any]:
    """An answer that asks for tools, without any id."""
    parts = [{"functionCall": {"name": name, "args": {}}} for name in names]
    return {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]}


def gemini_says(text: str) -> dict[str, Any]:
    return {"candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP"}]}


def steps_of(ledger: Ledger, label: str) -> list[Step]:
    """Everything that a session recorded."""
    record = ledger.session(label)
    return ledger.thread(record.tip) if record is not None and record.tip is not None else []


def compaction_of(step: Step) -> CompactionPayload:
    """The fields of a compaction."""
    assert isinstance(step.payload, CompactionPayload)
    return step.payload


def reply_of(step: Step) -> ReplyPayload:
    """The fields of a reply, or of a turn made elsewhere."""
    assert isinstance(step.payload, ReplyPayload)
    return step.payload


def result_of(step: Step) -> ResultPayload:
    """The fields of tool results."""
    assert isinstance(step.payload, ResultPayload)
    return step.payload


def kinds_of(ledger: StoreLedger, label: str) -> list[str]:
    return [step.kind for step in steps_of(ledger, label)]


def add_turns(ledger: StoreLedger, label: str, *texts: str) -> list[Step]:
    """Turns made elsewhere, each of one exchange."""
    if ledger.session(label) is None:
        ledger.create(label)
    return [
        add_step(
            ledger,
            label,
            NewStep(
                kind="turn",
                closes=True,
                messages=(Message("user", text), Message("assistant", f"re {text}")),
            ),
        )
        for text in texts
    ]


def add_step(ledger: StoreLedger, label: str, step: NewStep) -> Step:
    record = ledger.session(label)
    assert record is not None
    return ledger.append(label, step, after=record.tip)
