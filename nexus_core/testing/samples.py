"""Sample files, conversations and calls to test plugins with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.request.write import CallWriter
from nexus_core.tokens.estimator import SimpleTokenCounter
from nexus_core.types.assembled import AssembledContext, CacheReport
from nexus_core.types.budget import Model, TokenBudget
from nexus_core.types.compaction import CompactionBudget, ThreadGroup, ThreadMessage, ThreadOutline, ThreadTurn
from nexus_core.types.ledger import Step
from nexus_core.types.messages import Message, Usage

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from nexus_core.types.request import Request


def write_files(root: Path, files: Mapping[str, str]) -> Path:
    """Write `files` (relative path to content) below `root`, creating directories as needed. Return `root`."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8", newline="\n")
    return root


_SAMPLE_MODEL = Model(name="gpt-4o", window=128_000)
_SAMPLE_TURN_ID = "01J0000000000000000000000A"


def build_sample_thread() -> tuple[ThreadOutline, CompactionBudget, SimpleTokenCounter]:
    """Return a thread of five short turns, of which four should be summarized."""
    messages = [(Message("user", "Why?"), True), (Message("assistant", "Because."), False)]
    turns = [
        ThreadTurn(
            f"turn-{number}",
            tuple(
                ThreadGroup((ThreadMessage(message, f"turn-{number}" if first else f"reply-{number}", tokens=100),))
                for message, first in messages
            ),
            f"turn-{number}",
        )
        for number in range(5)
    ]
    return ThreadOutline(tuple(turns)), CompactionBudget(available=900, target=500, summary=200), SimpleTokenCounter()


def build_sample_context(request: Request) -> AssembledContext:
    """Return an assembled call that is about to be sent."""
    return AssembledContext(
        system_prompt="You help.",
        current_message=Message("user", "Why?"),
        model=_SAMPLE_MODEL.name,
        provider="openai",
        token_budget=TokenBudget(limit=_SAMPLE_MODEL.window, used={"system": 3, "event": 2}),
        session_label="sample",
        turn_id=_SAMPLE_TURN_ID,
        workspace_path=request.cwd,
        message_tokens=(2,),
        writer=CallWriter(_SAMPLE_MODEL, lambda _: _SAMPLE_MODEL),
    )


def build_sample_record() -> tuple[Step, str, Usage, CacheReport]:
    """Return a reply that was just recorded, with the other arguments of `nexus_step_recorded`."""
    reply = Step(
        id="01J0000000000000000000000B",
        parent=_SAMPLE_TURN_ID,
        turn=_SAMPLE_TURN_ID,
        branch=_SAMPLE_TURN_ID,
        position=1,
        kind="reply",
        closes=True,
        messages=(Message("assistant", "Because."),),
        tokens=2,
        counter="estimate",
        data={"model": "gpt-4o", "stop": "end", "stop_reason": "stop", "api": "openai"},
        total=7,
        compaction=None,
        created=0,
        digest="",
        chain="",
    )
    return reply, "sample", Usage(input_tokens=5, output_tokens=2), CacheReport(expected=0, got=0)
