"""How long it takes to put a call into an API's shape, beside the bare writing of its body as JSON.

    python benchmarks/writing.py [-n RUNS] [-m MESSAGES] [--quick] [--json FILE]

Prints ratios measured in one run: `context.to(api)` with everything that is looked at on the way (whether the API would
refuse anything, what its cache is told to keep), and the same for ten times as many messages. Exit code 1 when a goal
is missed.
"""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "plugins")]

import nexus_plugins.models  # noqa: E402 - after the path is set
from benchmarks.measuring.reports import Report  # noqa: E402 - as above
from benchmarks.measuring.rows import Comparison, Goal, Row, compare  # noqa: E402 - as above
from benchmarks.measuring.script import Script  # noqa: E402 - as above
from benchmarks.measuring.timing import medians  # noqa: E402 - as above
from nexus_core.request.write import CallWriter  # noqa: E402 - as above
from nexus_core.tokens.models import find_model  # noqa: E402 - as above
from nexus_core.types.assembled import AssembledContext  # noqa: E402 - as above
from nexus_core.types.budget import TokenBudget  # noqa: E402 - as above
from nexus_core.types.messages import (  # noqa: E402 - as above
    Message,
    Tool,
    ToolCall,
    ToolResult,
)

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

GOALS = {"anthropic": 8.0, "openai": 8.0, "responses": 8.0, "gemini": 16.0}
"""Writing may take this many times as long as `json.dumps` of what is written. Gemini matches results by their order,
which no quick look can judge."""
GROWTH = 16.0
"""Ten times as many messages may take this many times as long."""
MODELS = {"anthropic": "claude-opus-5", "openai": "gpt-5.6", "responses": "gpt-5.6", "gemini": "gemini-3-pro"}
TEXT = "The token is issued before the clock is set, so that it expires at once. " * 12


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, and return the exit code."""
    script = Script("Measure how long it takes to write a call.")
    script.runs(15, quick=3)
    script.number("-m", "messages", 1000, 200, "messages of a call")
    return script.run(measure, argv)


def measure(given: Namespace) -> Report:
    """Both ratios of each API."""
    return Report([row for api in GOALS for row in measure_api(api, given.runs, given.messages)])


def measure_api(api: str, runs: int, messages: int) -> list[Row]:
    """Writing beside the bare JSON, and ten times as much of it."""
    context, longer = (context_of(api, messages * times) for times in (1, 10))
    body = context.to(api)
    whole, bare = medians(runs, partial(context.to, api), partial(json.dumps, body), collect=True)
    long, short = medians(max(runs // 5, 1), partial(longer.to, api), partial(context.to, api), collect=True)
    written = f'to("{api}")'
    more, fewer = (f"{written} of {count:,} messages" for count in (10 * messages, messages))
    times = {written: whole, "json.dumps": bare, more: long, fewer: short}
    return compare(
        {name: 1000 * seconds for name, seconds in times.items()},
        [Comparison(written, "json.dumps", (Goal("<=", GOALS[api]),)), Comparison(more, fewer, (Goal("<=", GROWTH),))],
    )


def context_of(api: str, size: int) -> AssembledContext:
    """A session of turns with four calls each, and a question that is not answered yet."""
    messages: list[Message] = []
    while len(messages) < size - 1:
        messages.append(Message("user", TEXT))
        for _ in range(4):
            name = f"call_{len(messages)}"
            messages.append(Message("assistant", [ToolCall(name, "read", {"path": "src/login.py"})]))
            messages.append(Message("tool", [ToolResult(name, TEXT * 2)]))
        messages.append(Message("assistant", TEXT))
    known = {model.name: model for model in nexus_plugins.models.nexus_models()}
    model = find_model(MODELS[api], known)
    return AssembledContext(
        system_prompt=TEXT * 20,
        history=tuple(messages),
        current_message=Message("user", TEXT),
        tools=tuple(Tool(name=f"tool_{each}", description=TEXT) for each in range(20)),
        model=model.name,
        token_budget=TokenBudget(limit=model.window, used={"system": 5000, "history": 200 * len(messages)}),
        message_tokens=(200,) * (len(messages) + 1),
        workspace_path=ROOT,
        session_label="benchmark",
        writer=CallWriter(model, partial(find_model, models=known)),
    )


if __name__ == "__main__":
    sys.exit(main())
