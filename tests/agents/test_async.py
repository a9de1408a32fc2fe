"""AsyncAgent does what Agent does, without blocking the event loop."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from nexus_core import Agent, AsyncAgent
from nexus_core.agents import DoneEvent, TextDelta, ToolResultEvent, tool
from nexus_core.plugin.dialects import Reply
from nexus_core.testing.fixtures import MakeNexus
from tests.agents.fakes import FakeModel, called, replied
from tests.agents.wire import APIS, KEY, VARIABLE, streamed, write_settings
from tests.plugins.providers.endpoints import serving


@pytest.mark.parametrize("api", APIS)
def test_a_turn_with_one_tool_call_in_every_api(
    make_nexus: MakeNexus, nexus_home: Path, monkeypatch: pytest.MonkeyPatch, api: str
) -> None:
    monkeypatch.setenv(VARIABLE, KEY)

    async def add(a: int, b: int) -> int:
        await asyncio.sleep(0)
        return a + b

    async def main() -> str:
        agent = make_nexus().async_agent("sums", tools=[add])
        return "".join([each.text async for each in agent.run("1 + 2?") if isinstance(each, TextDelta)])

    with serving(streamed(api, "Let me see.", ("add", {"a": 1, "b": 2})), streamed(api, "3.", None, "r2")) as server:
        write_settings(nexus_home, server.url, api)
        assert asyncio.run(main()) == "Let me see.3."


def test_an_async_tool_runs_in_the_loop_of_its_program(make_nexus: MakeNexus) -> None:
    loops: list[object] = []

    async def work() -> None:
        loops.append(asyncio.get_running_loop())

    async def main() -> str:
        loops.append(asyncio.get_running_loop())
        model = FakeModel(called("work", {}), replied("Done."))
        return await make_nexus().async_agent("s", tools=[work], provider=model.provider).answer("Go.")

    assert asyncio.run(main()) == "Done."
    assert loops[0] is loops[1]


@pytest.mark.parametrize("blocks", [True, False])
def test_a_tool_that_hangs_is_not_waited_for(make_nexus: MakeNexus, *, blocks: bool) -> None:
    never = threading.Event()

    async def wait() -> None:
        await asyncio.sleep(30)

    work = tool(lambda: never.wait(30), name="work", timeout=0.1) if blocks else tool(wait, name="work", timeout=0.1)
    model = FakeModel(called("work", {}), replied("I see."))

    async def main() -> list[object]:
        return [each async for each in make_nexus().async_agent("s", tools=[work], provider=model.provider).run("Go.")]

    events = asyncio.run(main())

    (result,) = (each.result for each in events if isinstance(each, ToolResultEvent))
    assert "gave no result in 0.1 seconds" in str(result.parts)
    assert isinstance(events[-1], DoneEvent)
    never.set()


def test_twenty_agents_wait_at_the_same_time(make_nexus: MakeNexus) -> None:
    nexus = make_nexus()
    together = threading.Barrier(20)

    def answer(_context: object) -> Reply:
        together.wait(30)  # fails unless all twenty calls are made at the same time
        return replied("Hello.")

    async def main() -> list[str]:
        agents = [nexus.async_agent(f"s{number}", provider=FakeModel(answer).provider) for number in range(20)]
        return await asyncio.gather(*(agent.answer("Hi") for agent in agents))

    assert asyncio.run(main()) == ["Hello."] * 20


def test_both_have_the_same_methods() -> None:
    public = [{name for name in vars(kind) if not name.startswith("_")} for kind in (Agent, AsyncAgent)]

    assert public[0] == public[1]
