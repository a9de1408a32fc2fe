"""Streams of each API, as servers send them, and a Nexus whose provider is a server on this machine."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from nexus_core.testing import write_files
from tests.plugins.providers.endpoints import Answer

APIS = ("openai", "responses", "anthropic", "gemini")
MODELS = {"openai": "gpt-4o", "responses": "gpt-5", "anthropic": "claude-sonnet-5", "gemini": "gemini-3-flash"}
KEY = "sk-test-0123456789abcdef0123456789abcdef"
VARIABLE = "NEXUS_TEST_KEY"

Call = tuple[str, dict[str, Any]]


def sse(events: Iterable[Any], *, end: str = "", names: bool = False) -> bytes:
    """Server-sent events."""
    lines = (
        f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" if names else f"data: {json.dumps(each)}\n\n"
        for each in events
    )
    return ("".join(lines) + end).encode()


def openai_events(text: str, call: Call | None, reply: str) -> list[dict[str, Any]]:
    def chunk(delta: dict[str, Any] | None, reason: str | None = None, **fields: Any) -> dict[str, Any]:
        choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": reason}]
        return {"id": reply, "object": "chat.completion.chunk", "created": 1, "model": "gpt-4o", "choices": choices} | (
            fields
        )

    chunks = [chunk({"role": "assistant", "content": ""}), chunk({"reasoning_content": "Hm."})]
    chunks += [chunk({"content": piece}) for piece in _pieces(text)]
    if call:
        written = json.dumps(call[1])
        head = {"index": 0, "id": f"call_{reply}", "type": "function", "function": {"name": call[0], "arguments": ""}}
        chunks += [chunk({"tool_calls": [head]})]
        chunks += [chunk({"tool_calls": [{"index": 0, "function": {"arguments": each}}]}) for each in _pieces(written)]
    usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
    return [*chunks, chunk({}, "tool_calls" if call else "stop"), chunk(None, usage=usage)]


def anthropic_events(text: str, call: Call | None, reply: str) -> list[dict[str, Any]]:
    def block(index: int, start: dict[str, Any], deltas: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        return [
            {"type": "content_block_start", "index": index, "content_block": start},
            *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
            {"type": "content_block_stop", "index": index},
        ]

    message = {"id": reply, "type": "message", "role": "assistant", "model": "claude-sonnet-5", "content": []} | {
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 11, "output_tokens": 1},
    }
    events: list[dict[str, Any]] = [{"type": "message_start", "message": message}, {"type": "ping"}]
    thought = [{"type": "thinking_delta", "thinking": "Hm."}, {"type": "signature_delta", "signature": "c2ln"}]
    events += block(0, {"type": "thinking", "thinking": "", "signature": ""}, thought)
    events += block(1, {"type": "text", "text": ""}, ({"type": "text_delta", "text": each} for each in _pieces(text)))
    if call:
        start = {"type": "tool_use", "id": f"toolu_{reply}", "name": call[0], "input": {}}
        pieces = _pieces(json.dumps(call[1]))
        events += block(2, start, ({"type": "input_json_delta", "partial_json": each} for each in pieces))
    delta = {"stop_reason": "tool_use" if call else "end_turn", "stop_sequence": None}
    return [
        *events,
        {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 7}},
        {"type": "message_stop"},
    ]


def responses_events(text: str, call: Call | None, reply: str) -> list[dict[str, Any]]:
    response = {
        "id": reply,
        "object": "response",
        "created_at": 1,
        "model": "gpt-5",
        "output": [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "status": "in_progress",
    }
    content = {"type": "output_text", "text": text, "annotations": []}
    said = {"id": f"msg_{reply}", "type": "message", "role": "assistant", "status": "completed", "content": [content]}
    output: list[dict[str, Any]] = [said]
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": response},
        {"type": "response.output_item.added", "output_index": 0, "item": said | {"content": []}},
        {"type": "response.content_part.added", "part": content | {"text": ""}}
        | {"output_index": 0, "content_index": 0, "item_id": said["id"]},
    ]
    events += [
        {"type": "response.output_text.delta", "delta": each, "logprobs": []}
        | {"output_index": 0, "content_index": 0, "item_id": said["id"]}
        for each in _pieces(text)
    ]
    events.append({"type": "response.output_item.done", "output_index": 0, "item": said})
    if call:
        item = {"id": f"fc_{reply}", "type": "function_call", "call_id": f"call_{reply}", "name": call[0]} | {
            "arguments": json.dumps(call[1]),
            "status": "completed",
        }
        output.append(item)
        events += [
            {"type": "response.output_item.added", "output_index": 1, "item": item | {"arguments": ""}},
            *(
                {"type": "response.function_call_arguments.delta", "delta": each}
                | {"output_index": 1, "item_id": item["id"]}
                for each in _pieces(json.dumps(call[1]))
            ),
            {"type": "response.output_item.done", "output_index": 1, "item": item},
        ]
    usage = {"input_tokens": 11, "output_tokens": 7, "total_tokens": 18} | {
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    events.append(
        {"type": "response.completed", "response": response | {"status": "completed", "output": output, "usage": usage}}
    )
    return [each | {"sequence_number": index} for index, each in enumerate(events)]


def gemini_events(text: str, call: Call | None, reply: str) -> list[dict[str, Any]]:
    def chunk(*parts: dict[str, Any], **fields: Any) -> dict[str, Any]:
        candidate = {"content": {"role": "model", "parts": list(parts)}, "index": 0, **fields}
        return {"candidates": [candidate], "responseId": reply, "modelVersion": "gemini-3-flash"}

    chunks = [chunk({"text": "Hm.", "thought": True}), *(chunk({"text": each}) for each in _pieces(text))]
    if call:
        chunks.append(chunk({"functionCall": {"name": call[0], "args": call[1]}}))
    usage = {"promptTokenCount": 11, "candidatesTokenCount": 7, "totalTokenCount": 18}
    return [*chunks, chunk({"text": ""}, finishReason="STOP") | {"usageMetadata": usage}]


EVENTS: dict[str, Callable[[str, Call | None, str], list[dict[str, Any]]]] = {
    "openai": openai_events,
    "responses": responses_events,
    "anthropic": anthropic_events,
    "gemini": gemini_events,
}


def stream(api: str, text: str, call: Call | None = None, reply: str = "r1") -> bytes:
    """The bytes of a streamed reply."""
    end = "data: [DONE]\n\n" if api == "openai" else ""
    return sse(EVENTS[api](text, call, reply), end=end, names=api in ("anthropic", "responses"))


def streamed(api: str, text: str, call: Call | None = None, reply: str = "r1", **fields: Any) -> Answer:
    """A server's answer that streams a reply."""
    return Answer(stream(api, text, call, reply), headers={"Content-Type": "text/event-stream"}, **fields)


def write_settings(home: Path, url: str, api: str = "anthropic", **settings: Any) -> None:
    """Let the user's own settings name a server on this machine as the provider."""
    provider = {"provider": api, "model": MODELS[api], "base_url": url, "api_key_env": VARIABLE}
    write_files(home, {"config.json": json.dumps({"provider": provider, **settings})})


def _pieces(text: str) -> list[str]:
    return [text[start : start + 5] for start in range(0, len(text), 5)]
