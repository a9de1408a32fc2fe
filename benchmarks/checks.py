"""Time that `check` and `repair` take for a message with which nothing is wrong.

    python benchmarks/checks.py [-m MESSAGES] [--quick] [--json FILE]

CPU time of one call, divided by the messages of its list. Exit code 1 when a goal is missed.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "plugins")]

from benchmarks.measuring.reports import Report  # noqa: E402 - after the path is set
from benchmarks.measuring.rows import Goal, Row  # noqa: E402 - as above
from benchmarks.measuring.script import Script  # noqa: E402 - as above
from nexus_core import check, repair  # noqa: E402 - as above

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Sequence

    Body = dict[str, Any]
    Work = Callable[[list[Body]], object]

QUESTION = "Why does this happen, and what else depends on it? " * 6
ANSWER = "It happens because of something that was said above. " * 6
RESULT = "def login(user):\n    return issue(user)\n" * 8
FAST = Goal("<=", 5)
"""Microseconds."""
LINEAR = Goal("<=", 1.5, quick=5)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, and return the exit code."""
    script = Script("Measure check and repair with sound messages of five APIs.")
    script.number("-m", "messages", 1_000_000, 20_000, "messages of a list")
    return script.run(measure, argv)


def measure(given: Namespace) -> Report:
    """Rows for each API: check, repair, and both with one odd turn in the list."""
    rows: list[Row] = []
    for api, write_turn in TURNS.items():
        elements = make_list(write_turn, given.messages)
        check(elements[:100])  # what is imported for it is not measured
        short, checked = time_per_message(check, elements[: len(elements) // 10]), time_per_message(check, elements)
        rows += [
            Row(f"{api}: µs of check for a sound message", checked, (FAST,)),
            Row(f"{api}: µs of repair for a sound message", time_per_message(repair, elements), (FAST,)),
            Row(f"{api}: check of {len(elements):,} messages / of a tenth, for a message", checked / short, (LINEAR,)),
        ]
        del elements[len(elements) // 8 * 4 + 2]  # the result of a call
        rows.append(Row(f"{api}: µs of check beside an odd turn", time_per_message(check, elements), (FAST,)))
    return Report(rows)


def time_per_message(work: Work, elements: list[Body]) -> float:
    """The CPU time of one call, in microseconds for each element."""
    gc.collect()
    started = time.process_time()
    work(elements)
    return (time.process_time() - started) / len(elements) * 1e6


def make_list(write_turn: Callable[[int], list[Body]], length: int) -> list[Body]:
    """Whole turns, and a last question."""
    elements = [element for number in range(length // 4) for element in write_turn(number)]
    return [*elements, write_turn(length)[0]]


def write_chat(number: int) -> list[Body]:
    """A turn of chat completions."""
    function = {"name": "read", "arguments": json.dumps({"path": f"src/{number}.py"})}
    call = {"id": f"call_{number}", "type": "function", "function": function}
    return [
        {"role": "user", "content": QUESTION},
        {"role": "assistant", "content": ANSWER, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"call_{number}", "content": RESULT},
        {"role": "assistant", "content": ANSWER},
    ]


def write_items(number: int) -> list[Body]:
    """A turn of Responses."""
    arguments = json.dumps({"path": f"src/{number}.py"})
    return [
        {"role": "user", "content": QUESTION},
        {"type": "function_call", "call_id": f"call_{number}", "name": "read", "arguments": arguments},
        {"type": "function_call_output", "call_id": f"call_{number}", "output": RESULT},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": ANSWER}]},
    ]


def write_blocks(number: int) -> list[Body]:
    """A turn of Anthropic's."""
    said = {"type": "text", "text": ANSWER}
    call = {"type": "tool_use", "id": f"toolu_{number}", "name": "read", "input": {"path": f"src/{number}.py"}}
    result = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": RESULT}
    return [
        {"role": "user", "content": QUESTION},
        {"role": "assistant", "content": [said, call]},
        {"role": "user", "content": [result]},
        {"role": "assistant", "content": [said]},
    ]


def write_contents(number: int) -> list[Body]:
    """A turn of Gemini's."""
    call = {"functionCall": {"name": "read", "args": {"path": f"src/{number}.py"}}}
    result = {"functionResponse": {"name": "read", "response": {"output": RESULT}}}
    return [
        {"role": "user", "parts": [{"text": QUESTION}]},
        {"role": "model", "parts": [{"text": ANSWER}, call]},
        {"role": "user", "parts": [result]},
        {"role": "model", "parts": [{"text": ANSWER}]},
    ]


def write_converse(number: int) -> list[Body]:
    """A turn of Bedrock's Converse."""
    call = {"toolUse": {"toolUseId": f"tool_{number}", "name": "read", "input": {"path": f"src/{number}.py"}}}
    result = {"toolResult": {"toolUseId": f"tool_{number}", "content": [{"text": RESULT}], "status": "success"}}
    return [
        {"role": "user", "content": [{"text": QUESTION}]},
        {"role": "assistant", "content": [{"text": ANSWER}, call]},
        {"role": "user", "content": [result]},
        {"role": "assistant", "content": [{"text": ANSWER}]},
    ]


TURNS = {
    "openai": write_chat,
    "responses": write_items,
    "anthropic": write_blocks,
    "gemini": write_contents,
    "bedrock": write_converse,
}


if __name__ == "__main__":
    sys.exit(main())
