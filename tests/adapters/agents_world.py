"""Agents of the real SDK over a scripted model. Takes seconds to import, so tests do it late.

As a program, it has the second of two conversations: python -m tests.adapters.agents_world WORK URL FILE.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

from agents import Agent, ModelResponse, RunConfig, Runner, Session, SQLiteSession, function_tool, set_tracing_disabled
from agents.items import TResponseOutputItem
from agents.memory import SessionSettings
from agents.models.interface import Model
from agents.run_config import ModelInputData
from agents.usage import Usage
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseReasoningItem,
)

from nexus_core import Nexus
from nexus_core.adapters.openai_agents import NexusSession, fit_input

__all__ = [
    "Agent",
    "ModelInputData",
    "RunConfig",
    "Runner",
    "SQLiteSession",
    "Session",
    "SessionSettings",
    "Usage",
    "fit_input",
]

set_tracing_disabled(True)  # which would open connections


class ScriptedModel(Model):
    """Answers from a list, and remembers what it was sent."""

    def __init__(self, answers: Iterable[list[TResponseOutputItem]], usage: Usage | None = None) -> None:
        self._answers = iter(answers)
        self._usage = usage or Usage()
        self.model = "gpt-4o"
        self.sent: list[list[Any]] = []

    async def get_response(self, system_instructions: Any, input: Any, *given: Any, **options: Any) -> ModelResponse:  # noqa: A002, ARG002 - the SDK's name and order
        self.sent.append(json.loads(json.dumps(input)))
        return ModelResponse(output=next(self._answers), usage=self._usage, response_id=None)

    def stream_response(self, *given: Any, **options: Any) -> AsyncIterator[Any]:
        raise NotImplementedError(given, options)


def says(text: str) -> TResponseOutputItem:
    content = ResponseOutputText(annotations=[], text=text, type="output_text", logprobs=[])
    return ResponseOutputMessage(
        id=f"msg_{text}", content=[content], role="assistant", status="completed", type="message"
    )


def calls(name: str, call: str, **arguments: Any) -> TResponseOutputItem:
    return ResponseFunctionToolCall(
        arguments=json.dumps(arguments), call_id=call, name=name, type="function_call", id=f"fc_{call}"
    )


def thinks(name: str) -> TResponseOutputItem:
    return ResponseReasoningItem(id=name, summary=[], type="reasoning", encrypted_content="gAAAAABo+/==")


@function_tool
def look(path: str) -> str:
    """Look at a file."""
    return f"There is nothing in {path}. " * 40


def agents_over(model: Model) -> Agent[Any]:
    """An agent that has a tool, and another one to hand over to."""
    second = Agent[Any](name="second", instructions="Be brief.", model=model, tools=[look])
    return Agent[Any](name="first", instructions="Be thorough.", model=model, tools=[look], handoffs=[second])


def first_answers() -> list[list[TResponseOutputItem]]:
    return [
        [thinks("rs_1"), calls("look", "c1", path="a"), calls("look", "c2", path="b")],
        [calls("transfer_to_second", "c3")],
        [thinks("rs_2"), says("It expires.")],
    ]


def second_answers() -> list[list[TResponseOutputItem]]:
    return [[says("One moment."), calls("look", "c4", path="c")], [says("At midnight.")]]


async def converse(session: Session, said: str, answers: list[list[TResponseOutputItem]], **config: Any) -> list[Any]:
    """What a model was sent in one run."""
    model = ScriptedModel(answers)
    await Runner.run(agents_over(model), said, session=session, run_config=RunConfig(**config), max_turns=100)
    return model.sent


async def converse_with_hooks(session: NexusSession, answers: list[list[TResponseOutputItem]]) -> None:
    """One run whose model reports what it used."""
    used = Usage(requests=1, input_tokens=1000, output_tokens=20, total_tokens=1020)
    used.input_tokens_details.cached_tokens = 900
    used.output_tokens_details.reasoning_tokens = 5
    agent = agents_over(ScriptedModel(answers, used))
    await Runner.run(agent, "Why?", session=session, hooks=session.hooks, max_turns=100)


async def resume(work: str, url: str) -> dict[str, list[Any]]:
    """Go on with a conversation that another process began."""
    with Nexus(work, ledger=url, installed=False) as nexus:
        session = NexusSession("chat", nexus=nexus)
        sent = await converse(session, "When?", second_answers())
        return {"sent": sent, "items": await session.get_items()}


if __name__ == "__main__":
    outcome = asyncio.run(resume(sys.argv[1], sys.argv[2]))
    Path(sys.argv[3]).write_text(json.dumps(outcome), encoding="utf-8")
