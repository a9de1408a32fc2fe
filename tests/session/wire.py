"""Replies of four APIs as they come over the wire: one that calls a tool, and one that answers."""

from __future__ import annotations

import json
from typing import Any, Literal

Api = Literal["openai", "responses", "anthropic", "gemini"]

READ = 500
"""The tokens that the first call is said to have read."""
WRITTEN = 17


def asks(api: Api, number: int, tool: str, **arguments: str) -> dict[str, Any]:
    """A reply that calls a tool.

    Args:
        api: Whose reply it is.
        number: Which reply it is; the more there were before, the more was read.
        tool: The tool.
        arguments: What to run it with.
    """
    name = f"call_{number}"
    if api == "openai":
        function = {"name": tool, "arguments": json.dumps(arguments)}
        call = {"id": name, "type": "function", "function": function}
        return _chat(number, {"content": None, "tool_calls": [call]}, "tool_calls")
    if api == "responses":
        item = {"type": "function_call", "id": f"fc_{number}", "call_id": name, "name": tool, "status": "completed"}
        return _response(number, item | {"arguments": json.dumps(arguments)})
    if api == "anthropic":
        return _message(number, {"type": "tool_use", "id": name, "name": tool, "input": arguments}, "tool_use")
    return _content(number, {"functionCall": {"name": tool, "args": arguments}})


def says(api: Api, number: int, text: str) -> dict[str, Any]:
    """A reply in words; arguments as above."""
    if api == "openai":
        return _chat(number, {"content": text}, "stop")
    if api == "responses":
        item = {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed"}
        return _response(number, item | {"content": [{"type": "output_text", "text": text, "annotations": []}]})
    if api == "anthropic":
        return _message(number, {"type": "text", "text": text}, "end_turn")
    return _content(number, {"text": text})


def _read(number: int) -> int:
    return READ + 50 * number


def _chat(number: int, message: dict[str, Any], reason: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-5.5",
        "choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": reason}],
        "usage": {
            "prompt_tokens": _read(number),
            "completion_tokens": WRITTEN,
            "total_tokens": _read(number) + WRITTEN,
        },
    }


def _response(number: int, item: dict[str, Any]) -> dict[str, Any]:
    usage = {
        "input_tokens": _read(number),
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": WRITTEN,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": _read(number) + WRITTEN,
    }
    settings = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    facts = {"id": f"resp_{number}", "object": "response", "created_at": 1, "model": "gpt-5.5", "status": "completed"}
    return {**facts, **settings, "output": [item], "usage": usage}


def _message(number: int, block: dict[str, Any], reason: str) -> dict[str, Any]:
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-5",
        "content": [block],
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": {"input_tokens": _read(number), "output_tokens": WRITTEN},
    }


def _content(number: int, part: dict[str, Any]) -> dict[str, Any]:
    return {
        "candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": _read(number), "candidatesTokenCount": WRITTEN},
        "modelVersion": "gemini-3.8-flash",
    }
