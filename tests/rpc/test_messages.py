"""Messages that arrive during a turn: they wait, join it, or end it, as their sender chooses."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from nexus_core import ProviderError, TurnError, UnknownNameError
from nexus_core.agents import DoneEvent, SteeringMessageEvent
from nexus_core.rpc import AgentDestroyedError, AgentPool, PooledAgent, SharedComponents
from nexus_core.testing.fixtures import MakeNexus
from tests.agents.fakes import FakeModel, called, replied
from tests.rpc.models import Gate, ScriptedModel, last_text


class WorkingModel(ScriptedModel):
    """Calls the tool `work`, which waits at a gate, then tells what it has read."""

    def __init__(self) -> None:
        super().__init__(self.answer)
        self.gate = Gate()

    def answer(self, context: Any) -> Any:
        text = last_text(context)
        return called("work", {}) if text == "Work." and not context.progress else replied(f"Read: {text}")

    def work(self) -> str:
        """Work."""
        self.gate.wait()
        return "worked"


async def start(pool: AgentPool, model: WorkingModel) -> tuple[PooledAgent, Any]:
    agent = await pool.create("a", tools=[model.work])
    turn = agent.send("Work.")
    await model.gate.until_reached()
    return agent, turn


def spoken(agent: PooledAgent) -> list[tuple[str, str]]:
    """Role and text of each message, without the first and without times."""
    found = [(each.role, each.content.rpartition("\n\n")[2]) for each in agent.context.messages[1:]]
    return [(role, text) for role, text in found if text]


def test_queued_messages_have_turns_of_their_own_in_their_order(make_nexus: MakeNexus) -> None:
    async def main() -> tuple[list[str], list[tuple[str, str]]]:
        model = WorkingModel()
        async with AgentPool(SharedComponents(nexus=make_nexus(), provider=model.provider)) as pool:
            agent, turn = await start(pool, model)
            later = [agent.send("One."), agent.send("Two.")]
            assert (agent.is_running, agent.waiting) == (True, 2)
            model.gate.opened.set()
            return [await each.answer() for each in (turn, *later)], spoken(agent)

    answers, said = asyncio.run(main())

    assert answers == ["Read: Work.", "Read: One.", "Read: Two."]
    assert [text for _, text in said] == ["Work.", "Read: Work.", "One.", "Read: One.", "Two.", "Read: Two."]


def test_a_steering_message_is_read_before_the_next_call_of_the_turn(make_nexus: MakeNexus) -> None:
    async def main() -> tuple[list[str], list[Any], list[tuple[str, str]]]:
        model = WorkingModel()
        async with AgentPool(SharedComponents(nexus=make_nexus(), provider=model.provider)) as pool:
            agent, turn = await start(pool, model)
            steered = agent.send("Rather rest.", delivery="steer")
            model.gate.opened.set()
            events = [each async for each in turn]
            return [await steered.answer()], events, spoken(agent)

    answers, events, said = asyncio.run(main())

    assert answers == ["Read: Rather rest."]
    assert [each.message for each in events if isinstance(each, SteeringMessageEvent)] == ["Rather rest."]
    assert isinstance(events[-1], DoneEvent)
    assert (events[-1].text, events[-1].calls) == ("Read: Rather rest.", 2)
    assert [role for role, _ in said] == ["user", "user", "assistant"]  # tool call and result have no text


def test_the_work_before_a_steering_message_is_not_lost(make_nexus: MakeNexus) -> None:
    async def main() -> list[Any]:
        model = WorkingModel()
        async with AgentPool(SharedComponents(nexus=make_nexus(), provider=model.provider)) as pool:
            agent, turn = await start(pool, model)
            agent.send("Rather rest.", delivery="steer")
            model.gate.opened.set()
            await turn.answer()
            return [each for message in model.contexts[-1].messages for each in message.tool_results]

    assert [(each.text, each.is_error) for each in asyncio.run(main())] == [("worked", False)]


def test_a_steering_message_that_comes_too_late_is_the_next_turn_before_queued_ones(make_nexus: MakeNexus) -> None:
    gate = Gate()

    def says(context: Any) -> Any:
        if last_text(context) == "Begin.":
            gate.wait()
        return replied(f"Read: {last_text(context)}")

    async def main() -> list[str]:
        async with AgentPool(SharedComponents(nexus=make_nexus(), provider=ScriptedModel(says).provider)) as pool:
            agent = await pool.create("a")
            first = agent.send("Begin.")
            await gate.until_reached()
            queued, steered = agent.send("Queued."), agent.send("Steered.", delivery="steer")
            gate.opened.set()
            for turn in (first, queued, steered):
                await turn.answer()
            return [text for role, text in spoken(agent) if role == "user"]

    assert asyncio.run(main()) == ["Begin.", "Steered.", "Queued."]


def test_an_interrupting_message_ends_the_turn_and_keeps_what_was_said(make_nexus: MakeNexus) -> None:
    async def main() -> tuple[list[Any], str, list[str]]:
        model = WorkingModel()
        async with AgentPool(SharedComponents(nexus=make_nexus(), provider=model.provider)) as pool:
            agent, turn = await start(pool, model)
            queued = agent.send("Queued.")
            answer = await agent.answer("Stop.", delivery="interrupt")
            await queued.answer()
            model.gate.opened.set()
            events = [each async for each in turn]
            return events, answer, [text for role, text in spoken(agent) if role == "user"]

    events, answer, said = asyncio.run(main())

    assert (events[-1].cancelled, answer) == (True, "Read: Stop.")
    assert said == ["Work.", "Stop.", "Queued."]


@pytest.mark.parametrize("delivery", ["queue", "steer", "interrupt"])
def test_without_a_running_turn_every_delivery_starts_one(make_nexus: MakeNexus, delivery: Any) -> None:
    async def main() -> str:
        model = FakeModel(replied("Hello."))
        async with AgentPool(SharedComponents(nexus=make_nexus(), provider=model.provider)) as pool:
            return await (await pool.create("a")).answer("Hi.", delivery=delivery)

    assert asyncio.run(main()) == "Hello."


def test_an_unknown_delivery(make_nexus: MakeNexus) -> None:
    async def main() -> None:
        async with AgentPool(make_nexus()) as pool:
            agent = await pool.create("a")
            with pytest.raises(UnknownNameError, match="queue"):
                agent.send("Hi.", delivery="quene")  # type: ignore[arg-type]

    asyncio.run(main())


def test_cancel_ends_the_turn_only(make_nexus: MakeNexus) -> None:
    async def main() -> None:
        model = WorkingModel()
        async with AgentPool(SharedComponents(nexus=make_nexus(), provider=model.provider)) as pool:
            agent, turn = await start(pool, model)
            queued = agent.send("Queued.")
            assert agent.cancel() is True
            with pytest.raises(TurnError, match="was cancelled"):
                await turn.answer()
            assert await queued.answer() == "Read: Queued."
            assert agent.cancel() is False
            model.gate.opened.set()

    asyncio.run(main())


@pytest.mark.parametrize("way", ["cancel", "interrupt"])
def test_a_turn_that_has_not_begun_is_cancelled_too(make_nexus: MakeNexus, way: str) -> None:
    async def main() -> tuple[list[str], list[tuple[str, str]]]:
        model = WorkingModel()
        async with AgentPool(SharedComponents(nexus=make_nexus(), provider=model.provider)) as pool:
            agent = await pool.create("a")
            turn = agent.send("One.")
            if way == "cancel":
                assert agent.cancel() is True
            following = agent.send("Two.", delivery="queue" if way == "cancel" else "interrupt")
            with pytest.raises(TurnError, match="was cancelled"):
                await turn.answer()
            assert await following.answer() == "Read: Two."
            return [last_text(each) for each in model.contexts], spoken(agent)

    called_with, said = asyncio.run(main())

    assert called_with == ["Two."]
    assert next(text for role, text in said if role == "user") == "One."


def test_a_failed_turn_is_resumed(make_nexus: MakeNexus) -> None:
    async def main() -> tuple[str, list[str]]:
        model = FakeModel(ProviderError("down"), replied("Here."))
        async with AgentPool(SharedComponents(nexus=make_nexus(), provider=model.provider)) as pool:
            agent = await pool.create("a")
            with pytest.raises(ProviderError, match="down"):
                await agent.answer("Hi.")
            with pytest.raises(TurnError, match="a turn is open"):
                await agent.answer("Hello?")
            return await agent.resume().answer(), [text for _, text in spoken(agent)]

    assert asyncio.run(main()) == ("Here.", ["Hi.", "Here."])


def test_who_stops_reading_does_not_end_the_turn(make_nexus: MakeNexus) -> None:
    async def main() -> list[tuple[str, str]]:
        async with AgentPool(
            SharedComponents(nexus=make_nexus(), provider=FakeModel(replied("Hello.")).provider)
        ) as pool:
            agent = await pool.create("a")
            turn = agent.send("Hi.")
            async for _ in turn:
                break
            await turn.wait()
            return spoken(agent)

    assert asyncio.run(main()) == [("user", "Hi."), ("assistant", "Hello.")]


def test_destroying_a_working_agent_keeps_what_was_said_and_refuses_the_rest(make_nexus: MakeNexus) -> None:
    async def main() -> None:
        model, nexus = WorkingModel(), make_nexus()
        async with AgentPool(SharedComponents(nexus=nexus, provider=model.provider)) as pool:
            agent, turn = await start(pool, model)
            queued = agent.send("Queued.")
            await pool.destroy("a")
            assert [each async for each in turn][-1].cancelled
            with pytest.raises(AgentDestroyedError):
                await queued.answer()
            model.gate.opened.set()
        session = nexus.session("a")
        assert not session.is_open
        assert "Work." in session.messages[1].content

    asyncio.run(main())
