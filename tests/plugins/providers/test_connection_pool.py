"""Agents and summarizers share connections to a server, and nothing else."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from nexus_core import Nexus, hookimpl
from nexus_core.plugin import CancelSignal, Provider
from nexus_core.rpc import AgentPool, SharedComponents
from nexus_core.testing.fixtures import MakeNexus
from nexus_core.types.plugins import Problem
from nexus_plugins.providers import EndpointError
from nexus_plugins.providers._connection_pool import CONNECTIONS, build_connection_key
from nexus_plugins.providers._endpoint import EndpointClient, ModelEndpoint
from tests.agents.wire import KEY, MODELS, VARIABLE, stream, streamed, write_settings
from tests.plugins.providers.endpoints import GOOD, SUMMARY, Answer, request, serving, summarizer


@pytest.fixture(autouse=True)
def _no_idle_connections() -> Iterator[None]:
    CONNECTIONS.close_idle()
    yield
    CONNECTIONS.close_idle()


def chunked(*chunks: bytes, end: bool = True) -> Answer:
    """A stream in chunks; without its end, the server says nothing more and keeps the connection."""
    written = b"".join(b"%x\r\n%s\r\n" % (len(each), each) for each in chunks)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    return Answer(head + written + (b"0\r\n\r\n" if end else b""), raw=True, holds=True)


@pytest.mark.parametrize(
    ("api", "agents"),
    [("openai", 3), *(pytest.param(api, 20, marks=pytest.mark.slow) for api in ("openai", "anthropic"))],
)
def test_agents_of_a_pool_share_one_connection_for_turns_that_follow_each_other(
    make_nexus: MakeNexus, nexus_home: Path, monkeypatch: pytest.MonkeyPatch, api: str, agents: int
) -> None:
    monkeypatch.setenv(VARIABLE, KEY)

    async def run(nexus: Nexus) -> set[str]:
        async with AgentPool(SharedComponents(nexus=nexus)) as pool:
            created = [await pool.create(f"a{number}", model=MODELS[api]) for number in range(agents)]
            return {await agent.answer("Hello") for _ in range(2) for agent in created}

    with serving(streamed(api, "Hi."), keeps=True) as server:
        write_settings(nexus_home, server.url, api)
        with make_nexus() as nexus:
            replies = asyncio.run(run(nexus))
        assert server.ended_connections.acquire(timeout=60)

    assert (replies, len(server.bodies), server.connections) == ({"Hi."}, 2 * agents, 1)


def test_agents_with_turns_at_once_have_one_connection_each_and_use_it_again(
    make_nexus: MakeNexus, nexus_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, KEY)

    async def run(nexus: Nexus) -> None:
        async with AgentPool(SharedComponents(nexus=nexus)) as pool:
            agents = [await pool.create(f"a{number}", model=MODELS["anthropic"]) for number in range(4)]
            for _ in range(2):
                await asyncio.gather(*(agent.answer("Hello") for agent in agents))

    with serving(streamed("anthropic", "Hi."), keeps=True) as server:
        write_settings(nexus_home, server.url)
        with make_nexus() as nexus:
            asyncio.run(run(nexus))

    assert len(server.bodies) == 8
    assert server.connections <= 4


def test_each_request_over_a_shared_connection_has_its_own_key_and_no_cookie(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIRST_KEY", "sk-first-0123456789abcdef")
    monkeypatch.setenv("SECOND_KEY", "sk-second-0123456789abcdef")
    cookie = Answer(GOOD["openai"].body, headers={"Set-Cookie": "who=first; Path=/"})

    with serving(cookie, keeps=True) as server:
        for variable in ("FIRST_KEY", "SECOND_KEY"):
            assert summarizer(server.url, key_env=variable)(request()) == SUMMARY

    keys = [headers["Authorization"] for headers in server.headers]
    assert keys == ["Bearer sk-first-0123456789abcdef", "Bearer sk-second-0123456789abcdef"]
    assert (server.connections, [headers["Cookie"] for headers in server.headers]) == (1, [None, None])


def test_another_proxy_or_certificate_is_another_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    url = "https://api.example.com/v1"
    monkeypatch.delenv("HTTPS_PROXY", raising=False)

    before = build_connection_key(url)
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    proxied = build_connection_key(url)
    monkeypatch.setenv("SSL_CERT_FILE", "elsewhere.pem")

    assert len({before, proxied, build_connection_key(url)}) == 3
    assert build_connection_key(f"{url}/chat") == build_connection_key(url)
    assert build_connection_key("http://127.0.0.1:1") != build_connection_key("http://127.0.0.1:2")


def test_a_connection_that_the_server_closes_when_it_is_used_again_costs_no_attempt() -> None:
    good = GOOD["openai"]

    with serving(good, Answer(raw=True), good, keeps=True) as server:
        ask = summarizer(server.url, max_retries=0)
        assert [ask(request()), ask(request())] == [SUMMARY, SUMMARY]

    assert (len(server.bodies), server.connections) == (3, 2)


def test_bytes_after_a_response_do_not_answer_the_next_request() -> None:
    body = json.dumps(GOOD["openai"].body).encode()
    other = body.replace(SUMMARY.encode(), b"Something else.")
    first, surplus = (b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(each), each) for each in (body, other))

    with serving(Answer(first + surplus, raw=True, holds=True), GOOD["openai"], keeps=True) as server:
        ask = summarizer(server.url, max_retries=0)
        assert [ask(request()), ask(request())] == [SUMMARY, SUMMARY]

    assert other != body
    assert (len(server.bodies), server.connections) == (2, 2)


def test_a_new_connection_that_the_server_closes_is_an_attempt() -> None:
    with serving(Answer(raw=True), keeps=True) as server, pytest.raises(EndpointError, match="could not be reached"):
        summarizer(server.url, max_retries=0)(request())

    assert len(server.bodies) == 1


def test_cancelling_ends_a_connection_that_was_used_before() -> None:
    with serving(streamed("openai", "Hi."), Answer(raw=True, pause=1), streamed("openai", "Hi."), keeps=True) as server:
        client = EndpointClient("fast", ModelEndpoint(api="openai", base_url=server.url))
        list(client.stream({}, "m", CancelSignal()))
        cancel = CancelSignal()
        server.heard.clear()

        def cancel_when_heard() -> None:
            server.heard.wait(60)
            cancel.cancel()

        threading.Thread(target=cancel_when_heard).start()

        assert list(client.stream({}, "m", cancel)) == []
        assert server.connections == 1
        assert list(client.stream({}, "m", CancelSignal()))

    assert server.connections == 2


def test_a_stream_without_an_end_after_its_last_event_is_a_reply() -> None:
    said = stream("openai", "Hi.")

    with serving(chunked(said, end=False), streamed("openai", "Hi."), keeps=True) as server:
        client = EndpointClient("fast", ModelEndpoint(api="openai", base_url=server.url))
        events = [list(client.stream({}, "m", CancelSignal())) for _ in range(2)]

    assert events[0] == events[1]
    assert server.connections == 2


def test_a_forked_process_does_not_use_the_connections_of_its_parent() -> None:
    with serving(GOOD["openai"], keeps=True) as server:
        summarizer(server.url)(request())
        CONNECTIONS.forget_all()
        summarizer(server.url)(request())

    assert server.connections == 2


def test_closing_a_nexus_closes_its_providers_and_reports_one_that_fails(
    make_nexus: MakeNexus, nexus_problems: list[Problem]
) -> None:
    closed: list[str] = []

    def fail() -> None:
        raise OSError("no")

    class Providers:
        @hookimpl
        def nexus_providers(self) -> list[Provider]:
            return [
                Provider(name="bad", stream=lambda _context, _cancel: (), close=fail),
                Provider(name="good", stream=lambda _context, _cancel: (), close=lambda: closed.append("good")),
            ]

    nexus = make_nexus(plugins=[Providers()])
    nexus.host.providers(nexus.load())

    nexus.close()
    nexus.close()

    assert closed == ["good"]
    assert [each.message for each in nexus_problems] == ["Provider.close failed: OSError: no"]
