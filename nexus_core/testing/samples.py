"""Small conversations for hooks to be tried on: one to be summarised, a call about to be sent, a step just recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.assembly.writing import RequestWriter
from nexus_core.tokens.estimator import SimpleTokenCounter
from nexus_core.values.assembled import AssembledContext
from nexus_core.values.budget import TokenBudget
from nexus_core.values.cache import CacheReport
from nexus_core.values.compaction import CompactionBudget, ThreadGroup, ThreadMessage, ThreadOutline, ThreadTurn
from nexus_core.values.conversation import Usage
from nexus_core.values.counting import Model
from nexus_core.values.ledger import Step
from nexus_core.values.message import Message

if TYPE_CHECKING:
    from nexus_core.values.request import Request

_MODEL = Model(name="gpt-4o", window=128_000)
_TURN = "01J0000000000000000000000A"


def sample_thread() -> tuple[ThreadOutline, CompactionBudget, SimpleTokenCounter]:
    """A thread of five short turns, of which four should go."""
    said = [(Message("user", "Why?"), True), (Message("assistant", "Because."), False)]
    turns = [
        ThreadTurn(
            f"turn-{number}",
            tuple(
                ThreadGroup((ThreadMessage(message, f"turn-{number}" if first else f"reply-{number}", tokens=100),))
                for message, first in said
            ),
            f"turn-{number}",
        )
        for number in range(5)
    ]
    return ThreadOutline(tuple(turns)), CompactionBudget(available=900, target=500, summary=200), SimpleTokenCounter()


def sample_context(request: Request) -> AssembledContext:
    """A call about to be sent."""
    return AssembledContext(
        system_prompt="You help.",
        current_message=Message("user", "Why?"),
        model=_MODEL.name,
        provider="openai",
        token_budget=TokenBudget(limit=_MODEL.window, used={"system": 3, "event": 2}),
        session_label="sample",
        turn_id=_TURN,
        workspace_path=request.cwd,
        message_tokens=(2,),
        writer=RequestWriter(_MODEL, lambda _: _MODEL),
    )


def sample_record() -> tuple[Step, str, Usage, CacheReport]:
    """A reply just recorded, with all that is told of it."""
    reply = Step(
        id="01J0000000000000000000000B",
        parent=_TURN,
        turn=_TURN,
        branch=_TURN,
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
