"""Replies as each API gives them, and what is said to a model beside plain text."""

from __future__ import annotations

import base64
import json
from typing import Any

TOOLS = [
    {
        "name": "look",
        "description": "Look at a file.",
        "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    },
    {
        "name": "run",
        "description": "Run a command in a shell.",
        "input_schema": {
            "type": "object",
            "properties": {"command": {"type": "string"}, "seconds": {"type": "integer"}},
        },
    },
]
MAIL = {"name": "send_mail", "description": "Send mail.", "input_schema": {"type": "object"}, "scope": "messaging"}
DELEGATE = {
    "name": "delegate",
    "description": "Hand over a task.",
    "input_schema": {"type": "object"},
    "scope": "spawn",
}
PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(range(64))).decode()
PDF = base64.b64encode(b"%PDF-1.4\n" + bytes(range(32, 96))).decode()


def image() -> dict[str, Any]:
    """A picture, as Anthropic writes it."""
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}


def document() -> dict[str, Any]:
    """A document, as Anthropic writes it."""
    source = {"type": "base64", "media_type": "application/pdf", "data": PDF}
    return {"type": "document", "source": source, "title": "price-list.pdf"}


def claude(*blocks: dict[str, Any], id: str, read: int = 200, written: int = 30) -> dict[str, Any]:  # noqa: A002 - as the API calls it
    """A reply of Anthropic."""
    stop = "tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn"
    usage = {
        "input_tokens": 10,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": written,
        "output_tokens": 50,
    }
    head = {"id": id, "type": "message", "role": "assistant", "model": "claude-sonnet-4-20250514"}
    return {**head, "content": list(blocks), "stop_reason": stop, "stop_sequence": None, "usage": usage}


def text(words: str) -> dict[str, Any]:
    """A block of text, as Anthropic writes it."""
    return {"type": "text", "text": words}


def thought(words: str) -> dict[str, Any]:
    """A block of reasoning, as Anthropic signs it."""
    return {"type": "thinking", "thinking": words, "signature": "c2lnbmVk"}


def use(id: str, name: str = "look", **arguments: object) -> dict[str, Any]:  # noqa: A002 - as above
    """A tool call, as Anthropic writes it."""
    return {"type": "tool_use", "id": id, "name": name, "input": arguments}


def says(words: str, id: str) -> dict[str, Any]:  # noqa: A002 - as above
    """A reply of Anthropic that is only text."""
    return claude(text(words), id=id)


def streamed(*pieces: str, id: str, ended: bool = True) -> list[dict[str, Any]]:  # noqa: A002 - as above
    """The events of a reply of Anthropic that is only text."""
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**claude(id=id), "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": text("")},
        *(
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": each}}
            for each in pieces
        ),
    ]
    if ended:
        events += [
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}},
            {"type": "message_stop"},
        ]
    return events


def completion(words: str | None, *calls: tuple[str, str, object], id: str) -> dict[str, Any]:  # noqa: A002 - as above
    """A reply of OpenAI's chat completions; a call is its id, its tool and its arguments."""
    made = [
        {
            "id": key,
            "type": "function",
            "function": {"name": name, "arguments": given if isinstance(given, str) else json.dumps(given)},
        }
        for key, name, given in calls
    ]
    message = {"role": "assistant", "content": words, "refusal": None} | ({"tool_calls": made} if made else {})
    return {
        "id": id,
        "object": "chat.completion",
        "created": 1770370200,
        "model": "gpt-4o-2024-11-20",
        "choices": [
            {"index": 0, "message": message, "finish_reason": "tool_calls" if made else "stop", "logprobs": None}
        ],
        "usage": {
            "prompt_tokens": 120,
            "completion_tokens": 20,
            "total_tokens": 140,
            "prompt_tokens_details": {"cached_tokens": 64},
            "completion_tokens_details": {"reasoning_tokens": 0},
        },
    }


def response(*output: dict[str, Any], id: str) -> dict[str, Any]:  # noqa: A002 - as above
    """A reply of OpenAI's Responses."""
    return {
        "id": id,
        "object": "response",
        "created_at": 1770370200,
        "model": "gpt-5",
        "status": "completed",
        "output": list(output),
        "usage": {
            "input_tokens": 100,
            "output_tokens": 20,
            "total_tokens": 120,
            "input_tokens_details": {"cached_tokens": 64},
            "output_tokens_details": {"reasoning_tokens": 5},
        },
    }


def reasoning(id: str) -> dict[str, Any]:  # noqa: A002 - as above
    """Encrypted reasoning, as Responses gives it."""
    summary = [{"type": "summary_text", "text": "Looking at the cart."}]
    return {"type": "reasoning", "id": id, "summary": summary, "encrypted_content": "ZW5jcnlwdGVk"}


def function_call(id: str, name: str, **arguments: object) -> dict[str, Any]:  # noqa: A002 - as above
    """A tool call, as Responses writes it."""
    item = {"type": "function_call", "id": f"fc_{id}", "call_id": id, "status": "completed"}
    return {**item, "name": name, "arguments": json.dumps(arguments)}


def output_message(words: str, id: str) -> dict[str, Any]:  # noqa: A002 - as above
    """A message of the model, as Responses writes it."""
    content = [{"type": "output_text", "text": words, "annotations": []}]
    return {"type": "message", "id": id, "role": "assistant", "status": "completed", "content": content}


def candidate(*parts: dict[str, Any], id: str = "") -> dict[str, Any]:  # noqa: A002 - as above
    """A reply of Gemini; its calls need no id."""
    usage = {"promptTokenCount": 90, "candidatesTokenCount": 12, "totalTokenCount": 102, "cachedContentTokenCount": 40}
    content = {"role": "model", "parts": list(parts)}
    head = {"responseId": id} if id else {}
    return head | {
        "candidates": [{"content": content, "finishReason": "STOP"}],
        "modelVersion": "gemini-2.5-pro",
        "usageMetadata": usage,
    }


def converse(*blocks: dict[str, Any], stop: str = "end_turn") -> dict[str, Any]:
    """A reply of Bedrock's Converse."""
    return {
        "output": {"message": {"role": "assistant", "content": list(blocks)}},
        "stopReason": stop,
        "usage": {"inputTokens": 80, "outputTokens": 15, "totalTokens": 95},
        "metrics": {"latencyMs": 5},
    }
