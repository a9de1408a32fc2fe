"""Made-up sessions of other programs, as those write them to disk."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

CODE = "def login(user):\n    token = issue(user)\n    return {'token': token, 'expires': 3600}\n"
RESULTS = {"claude-code": 22, "codex": 45, "pi": 56, "messages": 56}
"""How many such pieces a result has, so that a line has 1.7 kB on average, as in long sessions of Claude Code."""


def parse_all(lines: Sequence[str]) -> list[object]:
    """The lines as Python parses them."""
    return [json.loads(line) for line in lines]


def written(values: Iterator[dict[str, Any]], size: int) -> str:
    """So many of them that the text has that size."""
    lines: list[str] = []
    length = 0
    while length < size:
        lines.append(json.dumps(next(values)))
        length += len(lines[-1]) + 1
    return "\n".join(lines) + "\n"


def claude(result: str) -> Iterator[dict[str, Any]]:
    """Turns with a text, two calls and their results, each on a line of its own."""
    parent, number = None, 0
    while True:
        number += 1
        envelope = {"sessionId": "s", "cwd": "/srv/shop", "version": "2.1.0", "isSidechain": False, "gitBranch": "main"}
        said: list[tuple[str, dict[str, Any]]] = [
            ("user", {"role": "user", "content": f"Step {number}: look at login."})
        ]
        blocks: list[dict[str, Any]] = [{"type": "text", "text": "I will look at it."}]
        blocks += [
            {"type": "tool_use", "id": f"t{number}-{each}", "name": "Read", "input": {"path": f"src/{each}.py"}}
            for each in range(2)
        ]
        usage = {"input_tokens": 10, "cache_read_input_tokens": 9000, "output_tokens": 80, "service_tier": "standard"}
        answer = {"id": f"m{number}", "role": "assistant", "usage": usage}
        said += [("assistant", answer | {"content": [block]}) for block in blocks]
        for each in range(2):
            block = {"type": "tool_result", "tool_use_id": f"t{number}-{each}", "content": result}
            said.append(("user", {"role": "user", "content": [block]}))
        for place, (kind, message) in enumerate(said):
            line: dict[str, Any] = {"parentUuid": parent, **envelope, "type": kind, "message": message}
            if place > 3:  # noqa: PLR2004 - the results
                line["toolUseResult"] = {"file": {"content": message["content"][0]["content"], "numLines": 30}}
            parent = f"u{number}-{place}"
            yield {**line, "uuid": parent, "timestamp": "2026-01-02T03:04:05.678Z"}


def codex(result: str) -> Iterator[dict[str, Any]]:
    """Turns with a call and its result, and the events that show them."""
    number = 0
    while True:
        number += 1
        prompt, call = f"Step {number}: look at login.", f"c{number}"
        items: list[tuple[str, dict[str, Any]]] = [
            ("response_item", {"type": "message", "role": "user", "content": [{"type": "input_text", "text": prompt}]}),
            ("event_msg", {"type": "user_message", "message": prompt}),
            (
                "response_item",
                {"type": "function_call", "name": "shell", "arguments": '{"cmd": "ls"}', "call_id": call},
            ),
            ("response_item", {"type": "function_call_output", "call_id": call, "output": result}),
            ("event_msg", {"type": "exec_command_end", "call_id": call, "aggregated_output": result}),
        ]
        for kind, payload in items:
            yield {"timestamp": "2026-01-02T03:04:05.678Z", "type": kind, "payload": payload}


def pi(result: str) -> Iterator[dict[str, Any]]:
    """Turns with a call and its result."""
    yield {"type": "session", "version": 3, "id": "s", "timestamp": "2026-01-02T03:04:05.678Z", "cwd": "/srv/shop"}
    number, parent = 0, None
    while True:
        number += 1
        call = {"type": "toolCall", "id": f"c{number}", "name": "read", "arguments": {"path": "src/login.py"}}
        messages: list[dict[str, Any]] = [
            {"role": "user", "content": f"Step {number}: look at login."},
            {"role": "assistant", "content": [{"type": "text", "text": "I will."}, call], "api": "openai-completions"},
            {"role": "toolResult", "toolCallId": f"c{number}", "content": [{"type": "text", "text": result}]},
        ]
        for place, message in enumerate(messages):
            entry = f"{number}-{place}"
            yield {"type": "message", "id": entry, "parentId": parent, "timestamp": "2026-01-02", "message": message}
            parent = entry


def chat(result: str) -> Iterator[dict[str, Any]]:
    """Turns of chat completions with a call and its result."""
    number = 0
    while True:
        number += 1
        function = {"name": "read", "arguments": '{"path": "src/login.py"}'}
        calls = [{"id": f"c{number}", "type": "function", "function": function}]
        yield {"role": "user", "content": f"Step {number}: look at login."}
        yield {"role": "assistant", "content": None, "tool_calls": calls}
        yield {"role": "tool", "tool_call_id": f"c{number}", "content": result}
