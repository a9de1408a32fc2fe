"""Many agents and concurrent turns: nothing is lost, nothing is mixed up."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from nexus_core.rpc import AgentPool, SharedComponents
from nexus_core.testing.fixtures import MakeNexus
from tests.agents.fakes import called, replied
from tests.rpc.models import ScriptedModel, last_text


def says(context: Any) -> Any:
    """Call the tool with the name of the session and the message, then repeat what the tool returned."""
    if not context.progress:
        return called("stamp", {"name": context.session_label, "text": last_text(context)})
    (result,) = context.progress[-1].tool_results
    return replied(f"answer {result.text}")


async def stamp(name: str, text: str) -> str:
    """Stamp a text."""
    await asyncio.sleep(0)
    return f"{name}|{text}"


async def run_agents(pool: AgentPool, agents: int, rounds: int, at_once: int) -> None:
    limit = asyncio.Semaphore(at_once)

    async def talk(name: str) -> None:
        for number in range(rounds):
            async with limit:
                assert await pool.get(name).answer(f"m{number}") == f"answer {name}|m{number}"

    names = [f"agent-{number}" for number in range(agents)]
    for name in names:
        await pool.create(name, tools=[stamp])
    await asyncio.gather(*map(talk, names))


def check(pool: AgentPool, rounds: int) -> None:
    for agent in pool:
        messages = agent.context.messages
        asked = [each.content.rpartition("\n\n")[2] for each in messages if each.role == "user"]
        replies = [each.content for each in messages if each.role == "assistant" and each.content]
        results = [part.text for each in messages for part in each.tool_results]
        assert asked[-rounds:] == [f"m{number}" for number in range(rounds)]
        assert results == [f"{agent.id}|m{number}" for number in range(rounds)]
        assert replies == [f"answer {result}" for result in results]


def test_twenty_agents_at_once_keep_their_words_apart(make_nexus: MakeNexus) -> None:
    async def main() -> None:
        async with AgentPool(SharedComponents(nexus=make_nexus(), provider=ScriptedModel(says).provider)) as pool:
            await run_agents(pool, agents=20, rounds=1, at_once=20)
            check(pool, 1)

    asyncio.run(main())


@pytest.mark.slow
def test_two_hundred_agents_with_twenty_turns_at_once(make_nexus: MakeNexus) -> None:
    async def main() -> None:
        nexus = make_nexus()
        async with AgentPool(SharedComponents(nexus=nexus, provider=ScriptedModel(says).provider)) as pool:
            await run_agents(pool, agents=200, rounds=2, at_once=20)
            check(pool, 2)
            assert sum(bool(re.fullmatch(r"agent-\d+", each.label)) for each in nexus.ledger.sessions()) == 200

    asyncio.run(main())
