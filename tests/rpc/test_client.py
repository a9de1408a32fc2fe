"""Client and AsyncClient: methods, events, batches, and errors by their classes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from nexus_core import FileError, Nexus, ProviderError, TurnError, UnknownNameError, UsageError
from nexus_core.rpc import (
    AsyncClient,
    Client,
    RpcConnectionError,
    RpcError,
    RpcProviderError,
    RpcRequestError,
    RpcTokenError,
    RpcTurnError,
    RpcUnknownNameError,
)
from nexus_core.rpc.server import open_listener
from nexus_core.rpc.server_file import ServerAddress, read_server_file, write_server_file
from nexus_core.testing.fixtures import MakeNexus
from tests.agents.fakes import replied
from tests.rpc.models import Gate, ScriptedModel, last_text
from tests.rpc.servers import RunningServer, running_server


def says(context: Any) -> Any:
    if last_text(context) == "fail":
        raise ProviderError("the model is away", hint="try later")
    return replied(f"{context.session_label}: {last_text(context)}")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    directory = tmp_path_factory.mktemp("client")
    with (
        Nexus(directory, home=directory / "home", defaults=False, installed=False) as nexus,
        running_server(nexus, ScriptedModel(says).provider) as running,
    ):
        yield running


@pytest.fixture
def client(served: RunningServer) -> Iterator[Client]:
    with Client(served.url, served.token) as opened:
        yield opened


def test_agent_is_used_from_a_program(client: Client) -> None:
    client.create_agent("one", model="gpt-5")
    events = list(client.send("one", "Hello."))

    assert [each["type"] for each in events] == ["text", "step", "usage", "done"]
    assert client.answer("one", "Again.") == "one: Again."
    assert client.get_tokens("one")["usage"]["output_tokens"] == 4
    assert client.get_context("one")["model"] == "gpt-5"
    assert client.get_messages("one", offset=-1)["messages"][0]["role"] == "assistant"
    assert client.fork("one", "two")["agent_id"] == "two"
    assert client.compact("one") == {"compacted": False}
    assert client.cancel("one") is False
    assert client.memory_search("Hello", limit=1)
    assert client.destroy_agent("two") == ["two"]
    assert "one" in [each["agent_id"] for each in client.list_agents()]


def test_agent_is_used_from_an_asynchronous_program(served: RunningServer) -> None:
    async def main() -> None:
        async with AsyncClient(served.url, served.token) as client:
            await client.create_agent("async", model="gpt-5")
            events = [each["type"] async for each in client.send("async", "Hello.")]
            answers = await asyncio.gather(*(client.answer("async", str(number)) for number in range(3)))

            assert events == ["text", "step", "usage", "done"]
            assert sorted(answers) == ["async: 0", "async: 1", "async: 2"]
            assert (await client.get_tokens("async"))["usage"]["output_tokens"] == 8
            assert (await client.get_context("async"))["model"] == "gpt-5"
            assert (await client.get_messages("async", limit=2))["total"] >= 8
            assert (await client.fork("async", "async-2"))["agent_id"] == "async-2"
            assert await client.compact("async-2") == {"compacted": False}
            assert await client.cancel("async") is False
            assert await client.memory_search("Hello", agent_id="async-2", limit=1)
            assert await client.destroy_agent("async-2") == ["async-2"]
            assert "async" in [each["agent_id"] for each in await client.list_agents()]
            assert await client.call_batch([("get_tokens", ["async"]), ("list_agents", None)])
            await client.notify("cancel", ["async"])
            with pytest.raises(RpcUnknownNameError):
                _ = [each async for each in client.resume("nothing")]

    asyncio.run(main())


def test_batch_has_results_and_errors_in_order(client: Client) -> None:
    first, second = client.call_batch([("get_tokens", ["nothing"]), ("list_agents", None)])

    assert isinstance(first, RpcUnknownNameError)
    assert isinstance(second, list)
    assert client.call_batch([]) == []


@pytest.mark.parametrize(
    ("method", "params", "error", "local", "code"),
    [
        ("nothing", None, RpcRequestError, UsageError, -32601),
        ("get_tokens", None, RpcRequestError, UsageError, -32602),
        ("get_tokens", ["nothing"], RpcUnknownNameError, UnknownNameError, -32001),
        ("create_agent", ["errors"], RpcError, RpcError, -32002),
        ("resume", ["errors"], RpcTurnError, TurnError, -32003),
        ("send", ["errors", "fail"], RpcProviderError, ProviderError, -32005),
    ],
)
def test_errors_of_the_server_have_the_classes_of_a_program(
    client: Client, method: str, params: Any, *, error: type[RpcError], local: type[Exception], code: int
) -> None:
    if "errors" not in [each["agent_id"] for each in client.list_agents()]:
        client.create_agent("errors", model="gpt-5")

    with pytest.raises(error) as raised:
        client.call(method, params)

    assert isinstance(raised.value, local)
    assert raised.value.code == code
    assert raised.value.type.endswith("Error")
    assert str(raised.value).startswith(raised.value.what)


def test_error_during_a_stream_is_raised_where_it_is_read(client: Client) -> None:
    client.create_agent("stream", model="gpt-5")

    with pytest.raises(RpcProviderError, match="the model is away") as raised:
        list(client.send("stream", "fail"))

    assert raised.value.hint == "try later"


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_answer_of_a_cancelled_turn_is_an_error(make_nexus: MakeNexus, kind: type[Client | AsyncClient]) -> None:
    gate = Gate()

    def wait(_context: Any) -> Any:
        gate.wait()
        return replied("Too late.")

    def answer(url: str, token: str) -> str:
        if kind is Client:
            with Client(url, token) as client:
                return client.answer("a", "Hello.")

        async def main() -> str:
            async with AsyncClient(url, token) as client:
                return await client.answer("a", "Hello.")

        return asyncio.run(main())

    with running_server(make_nexus(), ScriptedModel(wait).provider) as running, ThreadPoolExecutor(1) as executor:
        running.result("create_agent", agent_id="a", model="gpt-5")
        answered = executor.submit(answer, running.url, running.token)
        assert gate.reached.wait(60)
        assert running.result("cancel", agent_id="a") == {"cancelled": True}

        with pytest.raises(RpcTurnError, match="the turn of agent 'a' was cancelled"):
            answered.result(60)
        gate.opened.set()


def test_wrong_token_is_refused(served: RunningServer) -> None:
    with Client(served.url, "wrong") as client, pytest.raises(RpcTokenError):
        client.list_agents()


def test_server_that_is_gone_is_named() -> None:
    with open_listener(0) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"

    with Client(url, "token") as client, pytest.raises(RpcConnectionError, match="does not answer") as raised:
        client.list_agents()

    assert raised.value.where == url


def test_address_and_token_come_from_the_file(served: RunningServer, tmp_path: Path) -> None:
    (tmp_path / "server.json").write_text(json.dumps({"url": served.url, "token": served.token, "pid": 1}))

    with Client(home=tmp_path) as client:
        assert isinstance(client.list_agents(), list)


def test_home_without_a_server_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RpcConnectionError, match="no server is running"):
        Client(home=tmp_path)


DAMAGED = (
    *("{", "[]", "{}", '{"url": "x"}', "[" * 100_000),
    *('{"url": "x", "token": "y", "pid": 1e999}', '{"url": "x", "token": "\\u20ac"}'),
    '{"url": "http://127.0.0.1\\u0000", "token": "y"}',
)


@pytest.mark.parametrize("text", DAMAGED, ids=range(len(DAMAGED)))
def test_damaged_file_is_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "server.json").write_text(text)

    with pytest.raises(FileError, match="is not the file of a server"):
        Client(home=tmp_path)


def test_file_of_another_server_stays_when_one_ends(tmp_path: Path) -> None:
    one, other = (ServerAddress(f"http://127.0.0.1:{port}", f"token-{port}", port) for port in (1, 2))

    with write_server_file(tmp_path, one), write_server_file(tmp_path, other):
        pass
    assert not (tmp_path / "server.json").exists()

    with write_server_file(tmp_path, one):
        second = write_server_file(tmp_path, other)
        second.__enter__()
    assert read_server_file(tmp_path) == other
    second.__exit__(None, None, None)


@pytest.mark.parametrize(
    ("url", "token", "what"),
    [("http://\0", "x", "is not a URL"), ("http://127.0.0.1:x", "x", "is not a URL"), ("http://a", "€", "the token")],
)
def test_impossible_address_is_refused(url: str, token: str, what: str) -> None:
    with pytest.raises(UsageError, match=what):
        Client(url, token)


def test_halves_of_characters_are_sent_and_other_objects_are_refused(client: Client) -> None:
    client.create_agent("halves", model="gpt-5")

    assert client.answer("halves", "half \udcff").startswith("halves: half ")
    with pytest.raises(UsageError, match="not JSON"):
        client.answer("halves", object())
