"""The dispatcher: methods of a pool by name, JSON in and out, typed errors."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from nexus_core import UnknownNameError
from nexus_core.agents import tool
from nexus_core.rpc import (
    AgentExistsError,
    AgentPool,
    Dispatcher,
    InvalidParamsError,
    SharedComponents,
    UnknownMethodError,
)
from nexus_core.rpc.dispatcher import METHODS, STREAMS, error_to_json
from nexus_core.testing.fixtures import MakeNexus
from tests.agents.fakes import FakeModel, called, replied
from tests.rpc.models import ScriptedModel, echo


def work(number: int) -> str:
    """Work."""
    return f"worked {number}"


async def ask(dispatcher: Dispatcher, agent_id: str, message: str) -> list[dict[str, Any]]:
    params = {"agent_id": agent_id, "message": message}
    return [json.loads(json.dumps(each)) async for each in dispatcher.stream("send", params)]


@pytest.mark.acceptance("V-11")
def test_tokens_context_and_messages_of_an_agent(make_nexus: MakeNexus) -> None:
    async def main() -> None:
        shared = SharedComponents(nexus=make_nexus({"NEXUS.md": "Be brief.\n"}), provider=ScriptedModel(echo).provider)
        async with AgentPool(shared) as pool:
            dispatcher = Dispatcher(pool)
            created = await dispatcher.dispatch("create_agent", {"agent_id": "a", "model": "gpt-5"})
            before = await dispatcher.dispatch("get_tokens", {"agent_id": "a"})
            await ask(dispatcher, "a", "Hello.")
            after = await dispatcher.dispatch("get_tokens", {"agent_id": "a"})
            context = await dispatcher.dispatch("get_context", {"agent_id": "a"})
            messages = await dispatcher.dispatch("get_messages", {"agent_id": "a"})

            assert created["agent_id"] == "a"
            assert after["total"] == after["system"] + after["tools"] + after["messages"]
            assert (before["messages"] < after["messages"], after["model"]) == (True, "gpt-5")
            assert after["usage"]["input_tokens"] == 10
            assert "Be brief." in context["system_prompt"]
            assert any("NEXUS.md" in each["source"] for each in context["sections"])
            assert messages["total"] == len(messages["messages"]) == 3
            assert messages["messages"][-1]["role"] == "assistant"
            json.dumps([created, before, after, context, messages])

    asyncio.run(main())


@pytest.mark.acceptance("V-11")
def test_an_agent_is_offered_its_own_tools(make_nexus: MakeNexus) -> None:
    async def main() -> list[list[str]]:
        async with AgentPool(make_nexus()) as pool:
            dispatcher = Dispatcher(pool)
            await pool.create("a", tools=[work])
            await pool.create("b")
            found = [await dispatcher.get_context(each) for each in ("a", "b")]
            return [[each["name"] for each in context["tools"]] for context in found]

    assert asyncio.run(main()) == [["work"], []]


def test_events_are_json(make_nexus: MakeNexus) -> None:
    async def main() -> list[dict[str, Any]]:
        model = FakeModel(called("work", {"number": 3}, "Let me see."), replied("Done."))
        shared = SharedComponents(nexus=make_nexus(), provider=model.provider, ask=lambda _call, _reason: True)
        async with AgentPool(shared) as pool:
            await pool.create("a", tools=[tool(work, risk="high")])
            return await ask(Dispatcher(pool), "a", "Go.")

    events = asyncio.run(main())

    kinds = [each["type"] for each in events]
    assert kinds == [
        *("text", "step", "usage", "tool_call", "permission", "tool_result", "step"),
        *("text", "step", "usage", "done"),
    ]
    assert events[3]["arguments"] == {"number": 3}
    assert events[5]["result"]["parts"][0]["text"] == "worked 3"
    assert (events[-1]["text"], events[-1]["calls"]) == ("Done.", 2)


def test_messages_are_read_in_pages(make_nexus: MakeNexus) -> None:
    async def main() -> list[Any]:
        async with AgentPool(SharedComponents(nexus=make_nexus(), provider=ScriptedModel(echo).provider)) as pool:
            dispatcher = Dispatcher(pool)
            agent = await pool.create("a")
            for number in range(3):
                await agent.answer(str(number))
            pages = [await dispatcher.get_messages("a", offset, 2) for offset in (0, 2, -1, 100)]
            return [(page["total"], page["offset"], len(page["messages"])) for page in pages]

    assert asyncio.run(main()) == [(7, 0, 2), (7, 2, 2), (7, 6, 1), (7, 100, 0)]


def test_compact_cancel_fork_and_destroy(make_nexus: MakeNexus) -> None:
    async def main() -> list[Any]:
        async with AgentPool(SharedComponents(nexus=make_nexus(), provider=ScriptedModel(echo).provider)) as pool:
            dispatcher = Dispatcher(pool)
            agent = await pool.create("a")
            found = [await dispatcher.dispatch("compact", {"agent_id": "a"})]
            for number in range(8):
                await agent.answer(f"{number} " + "Tell me about the files in src/app.py. " * 40)
            found.append(await dispatcher.dispatch("compact", {"agent_id": "a", "focus": "files"}))
            found.append(await dispatcher.dispatch("cancel", {"agent_id": "a"}))
            found.append((await dispatcher.dispatch("fork", {"agent_id": "a", "name": "b"}))["agent_id"])
            found.append(len((await dispatcher.get_messages("b"))["messages"]))
            found.append(await dispatcher.dispatch("destroy_agent", {"agent_id": "a"}))
            found.append([each["agent_id"] for each in await dispatcher.dispatch("list_agents")])
            return found

    nothing, compacted, cancelled, forked, messages, destroyed, left = asyncio.run(main())

    assert nothing == {"compacted": False}
    assert compacted["compacted"]
    assert compacted["tokens_after"] < compacted["tokens_before"]
    assert (cancelled, forked, destroyed, left) == ({"cancelled": False}, "b", {"destroyed": ["a"]}, ["b"])
    assert messages > 1


def test_a_fork_never_takes_the_name_of_an_agent(make_nexus: MakeNexus) -> None:
    async def main() -> tuple[int, list[Any]]:
        async with AgentPool(SharedComponents(nexus=make_nexus(), provider=ScriptedModel(echo).provider)) as pool:
            dispatcher = Dispatcher(pool)
            await (await pool.create("a")).answer("A secret.")
            await pool.create("b")  # without messages, it has no session in the ledger yet
            forks = [dispatcher.fork("a", "b"), dispatcher.fork("a", "c"), dispatcher.fork("a", "c")]
            forked = await asyncio.gather(*forks, return_exceptions=True)
            return (await dispatcher.get_messages("b"))["total"], forked

    total, (refused, *same) = asyncio.run(main())

    assert (total, type(refused)) == (0, AgentExistsError)
    assert sorted(type(each).__name__ for each in same) == ["AgentExistsError", "dict"]


def test_an_id_in_use_is_an_error_that_names_methods(make_nexus: MakeNexus) -> None:
    async def main() -> list[Any]:
        async with AgentPool(SharedComponents(nexus=make_nexus(), provider=ScriptedModel(echo).provider)) as pool:
            dispatcher = Dispatcher(pool)
            await dispatcher.create_agent("a")
            again = dispatcher.create_agent("a"), dispatcher.fork("a", "a")
            return list(await asyncio.gather(*again, return_exceptions=True))

    for error in asyncio.run(main()):
        assert isinstance(error, AgentExistsError)
        assert error.what == "there is an agent 'a' already"
        assert error.hint == "`send` sends it a message; `destroy_agent` ends it, so that the id is free"


def test_a_fork_has_the_permission_level_of_its_original(make_nexus: MakeNexus) -> None:
    async def main() -> list[str]:
        async with AgentPool(SharedComponents(nexus=make_nexus(), provider=ScriptedModel(echo).provider)) as pool:
            dispatcher = Dispatcher(pool)
            await pool.create("manager", role="manager", level="sandboxed")
            await pool.create("worker", parent="manager")
            for each in ("manager", "worker"):
                await pool.get(each).answer("Hello.")
            return [(await dispatcher.fork(each, f"{each}-2"))["level"] for each in ("manager", "worker")]

    assert asyncio.run(main()) == ["sandboxed", "sandboxed"]


def test_search_for_an_unknown_agent_names_the_order_of_the_parameters(make_nexus: MakeNexus) -> None:
    async def main() -> str:
        async with AgentPool(make_nexus()) as pool:
            await pool.create("reviewer")
            with pytest.raises(UnknownNameError) as caught:
                await Dispatcher(pool).dispatch("memory_search", ["reviewer", "auth"])
            return caught.value.hint or ""

    assert asyncio.run(main()).startswith("the parameters of memory_search are text, agent_id, limit, in this order")


def test_error_for_an_unknown_method_names_every_method(make_nexus: MakeNexus) -> None:
    async def main() -> str:
        async with AgentPool(make_nexus()) as pool:
            with pytest.raises(UnknownMethodError) as caught:
                await Dispatcher(pool).dispatch("nope", {})
            return caught.value.hint or ""

    assert asyncio.run(main()) == f"known: {', '.join(sorted({*METHODS, *STREAMS}))}"


@pytest.mark.parametrize(
    ("method", "params", "error"),
    [
        ("get_token", {"agent_id": "a"}, UnknownMethodError),
        ("send", {"agent_id": "a", "message": "x"}, UnknownMethodError),
        ("__init__", {}, UnknownMethodError),
        ("get_tokens", {}, InvalidParamsError),
        ("get_tokens", {"agent_id": None}, InvalidParamsError),
        ("get_tokens", {"agent_id": 3}, InvalidParamsError),
        ("get_tokens", {"agent_id": "a", "x": 1}, InvalidParamsError),
        ("get_tokens", "a", InvalidParamsError),
        ("get_tokens", ["a", "b"], InvalidParamsError),
        ("get_messages", {"agent_id": "a", "limit": True}, InvalidParamsError),
        ("get_messages", {"agent_id": "a", "limit": 0}, InvalidParamsError),
        ("get_messages", {"agent_id": "a", "limit": 10**9}, InvalidParamsError),
        ("get_tokens", {"agent_id": "b"}, UnknownNameError),
        ("destroy_agent", {"agent_id": "b"}, UnknownNameError),
    ],
)
def test_what_does_not_fit_is_a_typed_error(
    make_nexus: MakeNexus, method: str, params: Any, error: type[Exception]
) -> None:
    async def main() -> None:
        async with AgentPool(make_nexus()) as pool:
            await pool.create("a")
            with pytest.raises(error) as caught:
                await Dispatcher(pool).dispatch(method, params)
            assert type(caught.value) is error
            assert error_to_json(caught.value)["type"] == error.__name__

    asyncio.run(main())


def test_every_method_has_its_parameters_in_the_table() -> None:
    import inspect

    for name, spec in {**METHODS, **STREAMS}.items():
        parameters = inspect.signature(getattr(Dispatcher, name)).parameters
        known = {*spec.required, *spec.optional}
        own = {each for each in parameters if each not in ("self", "options")}
        assert own <= known
        assert own == known or "options" in parameters


def test_a_failed_turn_raises_where_its_events_are_read(make_nexus: MakeNexus) -> None:
    async def main() -> dict[str, Any]:
        def fail(_context: object) -> Any:
            raise RuntimeError("no power")

        async with AgentPool(SharedComponents(nexus=make_nexus(), provider=ScriptedModel(fail).provider)) as pool:
            await pool.create("a")
            try:
                await ask(Dispatcher(pool), "a", "Go.")
            except Exception as error:  # noqa: BLE001 - looked at below
                return error_to_json(error)
            return {}

    assert asyncio.run(main())["type"] == "ProviderError"
