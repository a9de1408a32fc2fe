"""Questions about tool calls of a server's agents, and their answers over RPC."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from nexus_core.agents import tool
from nexus_core.rpc import AgentPool, AsyncClient, Client, Dispatcher, RpcUnknownNameError, SharedComponents
from nexus_core.testing.fixtures import MakeNexus
from tests.agents.fakes import FakeModel, called, replied
from tests.rpc.servers import RunningServer, running_server

RAN: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    RAN.clear()


def write(path: str) -> str:
    """Write a file."""
    RAN.append(path)
    return "written"


@contextmanager
def asking(make_nexus: MakeNexus, seconds: float = 60) -> Iterator[RunningServer]:
    """A server whose agent `a` calls a tool that needs permission."""
    model = FakeModel(called("write", {"path": "x"}), replied("Done."))
    tools = [tool(write, risk="high")]
    with (
        make_nexus() as nexus,
        running_server(nexus, model.provider, tools=tools, question_seconds=seconds) as server,
    ):
        server.result("create_agent", agent_id="a", model="gpt-5")
        yield server


@pytest.mark.parametrize(("allow", "ran"), [(True, ["x"]), (False, [])])
def test_client_answers_the_question_in_the_stream(make_nexus: MakeNexus, allow: bool, ran: list[str]) -> None:
    events: list[dict[str, Any]] = []

    with asking(make_nexus) as server, Client(server.url, server.token) as client:
        for event in client.send("a", "Write x."):
            events.append(event)
            if event["type"] == "permission":
                assert client.list_agents()[0]["question"] == {k: v for k, v in event.items() if k != "type"}
                client.answer_permission("a", event["question"], allow=allow)
        assert client.list_agents()[0]["question"] is None

    (asked,) = (each for each in events if each["type"] == "permission")
    (result,) = (each for each in events if each["type"] == "tool_result")
    assert (asked["name"], asked["arguments"]) == ("write", {"path": "x"})
    assert asked["reason"] == "the permission level is 'trusted'"
    assert (RAN, result["is_error"], events[-1]["text"]) == (ran, not allow, "Done.")


def test_async_client_answers_too(make_nexus: MakeNexus) -> None:
    async def main(server: RunningServer) -> None:
        async with AsyncClient(server.url, server.token) as client:
            async for event in client.send("a", "Write x."):
                if event["type"] == "permission":
                    await client.answer_permission("a", event["question"], allow=True)

    with asking(make_nexus) as server:
        asyncio.run(main(server))

    assert RAN == ["x"]


def test_question_without_an_answer_in_time_is_refused(make_nexus: MakeNexus) -> None:
    with asking(make_nexus, seconds=0.01) as server, Client(server.url, server.token) as client:
        events = list(client.send("a", "Write x."))

    (result,) = (each for each in events if each["type"] == "tool_result")
    assert "write was not run: the permission question was not answered in 0.01 seconds" in str(result)
    assert (RAN, events[-1]["text"]) == ([], "Done.")


@pytest.mark.parametrize("way", ["cancel", "destroy_agent", "shutdown"])
def test_end_of_the_turn_refuses_the_question(make_nexus: MakeNexus, way: str) -> None:
    last: dict[str, Any] = {}

    with asking(make_nexus) as server, Client(server.url, server.token) as client:
        for event in client.send("a", "Write x."):
            last = event
            if event["type"] == "permission":
                client.call(way, {} if way == "shutdown" else {"agent_id": "a"})

    assert (RAN, last["type"], last["cancelled"]) == ([], "done", True)


def test_answer_to_another_question_is_an_error_and_changes_nothing(make_nexus: MakeNexus) -> None:
    with asking(make_nexus) as server, Client(server.url, server.token) as client:
        with pytest.raises(RpcUnknownNameError, match="permission question"):
            client.answer_permission("a", "nothing.0", allow=True)
        for event in client.send("a", "Write x."):
            if event["type"] == "permission":
                with pytest.raises(RpcUnknownNameError):
                    client.answer_permission("a", f"{event['question']}1", allow=True)
                client.answer_permission("a", event["question"], allow=False)
                with pytest.raises(RpcUnknownNameError):
                    client.answer_permission("a", event["question"], allow=True)

    assert RAN == []


@pytest.mark.parametrize("allow", [None, 1, "true", [True]])
def test_answer_that_is_not_true_or_false_is_refused(make_nexus: MakeNexus, allow: object) -> None:
    with asking(make_nexus) as server:
        params = {"agent_id": "a", "question": "x", "allow": allow}

        assert server.call("answer_permission", params)["error"]["code"] == -32602


def test_pool_without_time_for_questions_refuses_at_once(make_nexus: MakeNexus) -> None:
    model = FakeModel(called("write", {"path": "x"}), replied("Done."))

    async def main() -> list[str]:
        tools = [tool(write, risk="high")]
        shared = SharedComponents(nexus=make_nexus(), provider=model.provider, tools=tools)
        async with AgentPool(shared) as pool:
            await pool.create("a", model="gpt-5")
            return [event["type"] async for event in Dispatcher(pool).send("a", "Write x.")]

    assert "permission" not in asyncio.run(main())
    assert RAN == []
