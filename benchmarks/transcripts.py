"""How long it takes to read a transcript, beside the bare parsing of its lines.

    python benchmarks/transcripts.py [-n RUNS] [-m MEGABYTES]

Prints ratios measured in one run, for a made-up session of each program. Exit code 1 when a goal is missed.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "plugins")]

from nexus_core.dialects.transcripts.reading import read_transcript  # noqa: E402 - after the path is set

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

GOAL = 5.0
"""Reading may take this many times as long as `json.loads` over the lines."""

CODE = "def login(user):\n    token = issue(user)\n    return {'token': token, 'expires': 3600}\n"
RESULTS = {"claude-code": 22, "codex": 45, "pi": 56, "messages": 56}
"""How many such pieces a result has, so that a line has 1.7 kB on average, as in long sessions of Claude Code."""


def main() -> int:
    """Measure, print, and return the exit code."""
    parser = argparse.ArgumentParser(description="Measure how long reading a transcript takes.")
    parser.add_argument("-n", dest="runs", type=int, default=5, help="readings of each kind (5)")
    parser.add_argument("-m", dest="megabytes", type=int, default=10, help="how large each transcript is (10)")
    given = parser.parse_args()
    missed = False
    for name, make in (("claude-code", claude), ("codex", codex), ("pi", pi), ("messages", chat)):
        text = written(make(CODE * RESULTS[name]), given.megabytes * 1_000_000)
        lines = text.splitlines()
        whole, bare = medians(given.runs, partial(read_transcript, text), partial(parse_all, lines))
        missed |= whole / bare > GOAL
        verdict = "ok" if whole / bare <= GOAL else "MISSED"
        print(
            f"{name}, {len(lines):,} lines: {whole:.3f} s / {bare:.3f} s = {whole / bare:.2f} (<= {GOAL:g}) {verdict}"
        )
    return int(missed)


def parse_all(lines: Sequence[str]) -> list[object]:
    """The lines as Python parses them."""
    return [json.loads(line) for line in lines]


def medians(runs: int, *works: Callable[[], object]) -> list[float]:
    """Seconds of CPU time for each, done in turns, so that a busy moment hits all of them."""
    turns = [[seconds(work) for work in works] for _ in range(runs)]
    return [statistics.median(column) for column in zip(*turns, strict=True)]


def seconds(work: Callable[[], object]) -> float:
    """The CPU time of one run."""
    gc.collect()
    started = time.process_time()
    work()
    return time.process_time() - started


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


if __name__ == "__main__":
    sys.exit(main())
