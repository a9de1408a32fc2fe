"""Servers that are connected to, when they do their worst."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from contextlib import closing, suppress
from pathlib import Path

import anyio
import httpx2
import pytest

from nexus_core import Nexus
from nexus_core.testing import write_files
from nexus_core.testing.fixtures import MakeNexus
from nexus_plugins.mcp._connections import ABORT_WAIT_SECONDS, SHUTDOWN_SECONDS, ServerPool, ServerTimeouts
from nexus_plugins.mcp._errors import ServerError
from tests.conftest import ROOT
from tests.plugins.mcp.calm import run_calmly
from tests.plugins.mcp.http_world import HEADER_VALUE, HOSTILE, HOSTILE_STREAMS, Handler, serving
from tests.plugins.mcp.world import FOREVER, define, script, servers_of

HASTE, LEISURE = 1.0, 5.0
"""Seconds for servers that have to be waited for, and for those that have not."""
WAITED_FOR = frozenset(name for name, (*_, said) in HOSTILE.items() if "within" in said or "attempts" in said)


def outcomes(nexus: Nexus, name: str, times: int = 1, limit: float = LEISURE) -> list[object]:
    """What a tool brings, or why it brings nothing, each time; no limit is waited for twice.

    The pool may then wait for the server to end, and once more after it has cancelled it.
    """
    server = servers_of(nexus)[name]
    request = nexus.request()
    found: list[object] = []

    async def main() -> None:
        async with ServerPool(nexus.load(request), request, ServerTimeouts(limit, limit)) as links:
            for _ in range(times):
                try:
                    found.append((await links.call(server, "echo", {})).content)
                except ServerError as error:
                    found.append(error)

    began = time.monotonic()
    assert run_calmly(main).took < (times + 1) * limit + SHUTDOWN_SECONDS + ABORT_WAIT_SECONDS
    assert time.monotonic() - began < FOREVER / 2  # nor was it waited for until it had hung enough
    return found


@pytest.mark.acceptance("R18", "T10", "T23")
@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.slow if kind in WAITED_FOR else ()) for kind in HOSTILE]
)
def test_a_server_that_does_its_worst_costs_its_limit_and_is_named(
    make_nexus: MakeNexus, nexus_home: Path, kind: str
) -> None:
    at, misdeed, said = HOSTILE[kind]
    with serving(at, misdeed) as world:
        define(nexus_home, bad={"url": world.url, "headers": {"X-Key": HEADER_VALUE}})

        (error,) = outcomes(make_nexus(), "bad", limit=HASTE if kind in WAITED_FOR else LEISURE)

    assert isinstance(error, ServerError)
    assert str(error).startswith("server 'bad' ")
    assert said in str(error)
    assert HEADER_VALUE not in str(error)


@pytest.mark.acceptance("R18")
@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=pytest.mark.slow if "within" in said else ())
        for kind, (_, said) in HOSTILE_STREAMS.items()
    ],
)
def test_a_stream_that_does_its_worst_costs_its_limit_and_is_named(
    make_nexus: MakeNexus, nexus_home: Path, kind: str
) -> None:
    misdeed, said = HOSTILE_STREAMS[kind]
    with serving("GET", misdeed) as world:
        define(nexus_home, bad={"url": world.url, "type": "sse", "headers": {"X-Key": HEADER_VALUE}})

        (error,) = outcomes(make_nexus(), "bad", limit=HASTE if "within" in said else LEISURE)

    assert isinstance(error, ServerError)
    assert str(error).startswith("server 'bad' ")
    assert said in str(error)
    assert HEADER_VALUE not in str(error)


def test_who_asks_for_a_token_is_told_how_to_give_one(make_nexus: MakeNexus, nexus_home: Path) -> None:
    at, misdeed, _ = HOSTILE["wants to know who asks"]
    with serving(at, misdeed) as world:
        define(
            nexus_home,
            without={"url": world.url},
            wrong={"url": world.url, "headers": {"authorization": f"Bearer {HEADER_VALUE}"}},
        )
        nexus = make_nexus()

        without, wrong = (str(outcomes(nexus, name)[0]) for name in ("without", "wrong"))

    assert '"Authorization": "Bearer ${NAME}"' in without
    assert "OAuth" in without
    assert "is not accepted" in wrong
    assert HEADER_VALUE not in wrong


@pytest.mark.parametrize(
    ("code", "challenge", "headers", "said"),
    [
        (
            401,
            'Bearer resource_metadata="https://x.example/.well-known"',
            {},
            "requires signing in (OAuth, HTTP 401)",
        ),
        (401, "Bearer", {}, "denies access (HTTP 401)"),
        (403, 'Bearer error="insufficient_scope"', {"Authorization": "Bearer x"}, "its token lacks a scope"),
        (401, 'Bearer error="invalid_token"', {"Authorization": "Bearer x"}, "get a new one, and set its variable"),
    ],
)
def test_a_server_that_wants_a_token_says_which_one(
    make_nexus: MakeNexus, nexus_home: Path, *, code: int, challenge: str, headers: dict[str, str], said: str
) -> None:
    with serving("anything", lambda handler, _: handler.reply(code, b"", {"www-authenticate": challenge})) as world:
        define(nexus_home, web={"url": world.url, "headers": headers})

        error = outcomes(make_nexus(), "web")[0]

    assert isinstance(error, ServerError)
    assert said in str(error)


def test_a_session_that_was_lost_is_begun_anew_by_the_next_call(make_nexus: MakeNexus, nexus_home: Path) -> None:
    with serving("tools/call", lambda handler, _: forget(handler)) as world:

        def forget(handler: Handler) -> None:
            world.at = ""
            handler.reply(404)

        define(nexus_home, web={"url": world.url})

        lost, found = outcomes(make_nexus(), "web", times=2)

    assert "the next call starts a new one" in str(lost)
    assert not isinstance(found, ServerError)
    assert world.heard.count("initialize") == 2


@pytest.mark.parametrize(("code", "path"), [(405, ""), (404, "/sse")])
def test_an_address_that_may_speak_the_older_protocol_is_told_with_what_to_write(
    make_nexus: MakeNexus, nexus_home: Path, code: int, path: str
) -> None:
    with serving("initialize", lambda handler, _: handler.reply(code)) as world:
        define(nexus_home, old={"url": world.url + path})

        (error,) = outcomes(make_nexus(), "old")

    assert f"responds with HTTP {code}" in str(error)
    assert 'write "type": "sse"' in str(error)


@pytest.mark.parametrize("at", ["GET", pytest.param("DELETE", marks=pytest.mark.slow)])
def test_a_server_that_hangs_where_nobody_waits_for_it_is_left(
    make_nexus: MakeNexus, nexus_home: Path, at: str
) -> None:
    with serving(at, lambda handler, _: handler.hang()) as world:
        define(nexus_home, slow={"url": world.url})

        (found,) = outcomes(make_nexus(), "slow")

    assert not isinstance(found, ServerError)


def test_nobody_who_listens_is_told(make_nexus: MakeNexus, nexus_home: Path) -> None:
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        define(nexus_home, gone={"url": f"http://127.0.0.1:{free.getsockname()[1]}/mcp"})

        (error,) = outcomes(make_nexus(), "gone")

    assert "server 'gone' failed: All connection attempts failed" in str(error)


def test_a_server_that_does_not_speak_tls_is_told(make_nexus: MakeNexus, nexus_home: Path) -> None:
    with serving() as world:
        define(nexus_home, plain={"url": world.url.replace("http:", "https:")})

        (error,) = outcomes(make_nexus(), "plain")

    assert "server 'plain' failed: " in str(error)
    assert "SSL" in str(error)


@pytest.mark.slow
def test_a_server_that_floods_us_keeps_nobody_else_waiting(make_nexus: MakeNexus, nexus_home: Path) -> None:
    at, misdeed, _ = HOSTILE["sends events without end"]
    with serving(at, misdeed) as world, serving() as honest:
        define(nexus_home, bad={"url": world.url}, good={"url": honest.url}, here=script())
        nexus = make_nexus()
        request, servers = nexus.request(), servers_of(nexus)
        ended: list[str] = []

        async def one(links: ServerPool, name: str) -> None:
            with suppress(ServerError):
                await links.call(servers[name], "echo", {})
            ended.append(name)

        async def main() -> None:
            async with (
                ServerPool(nexus.load(request), request, ServerTimeouts(3, 3)) as links,
                anyio.create_task_group() as tasks,
            ):
                for name in servers:
                    tasks.start_soon(one, links, name)

        run_calmly(main)

    assert ended[-1] == "bad"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sends events without end", "answers with no JSON", "wants to know who asks"])
def test_the_command_prints_one_error_and_nothing_of_what_the_sdk_logs(work: Path, nexus_home: Path, kind: str) -> None:
    at, misdeed, said = HOSTILE[kind]
    settings = {"plugins": {"mcp": {"call_timeout": 4 if kind in WAITED_FOR else 60}}}
    write_files(nexus_home, {"config.json": json.dumps(settings)})
    environment = {**os.environ, "NEXUS_HOME": str(nexus_home), "PYTHONPATH": f"{ROOT}:{ROOT}/plugins", "NO_COLOR": "1"}
    with serving(at, misdeed) as world:
        define(nexus_home, bad={"url": world.url, "headers": {"X-Key": HEADER_VALUE}})

        line = [sys.executable, "-m", "nexus_core", "mcp", "call", "bad", "echo"]
        done = subprocess.run(line, cwd=work, env=environment, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (5, "")
    assert done.stderr.startswith("Error: server 'bad' ")
    assert said in done.stderr
    assert len(done.stderr.splitlines()) <= 2


# ---- whither a name leads ----------------------------------------------------------------------------------


def approved(nexus: Nexus, home: Path) -> None:
    from nexus_core.trust.store import TrustStore

    TrustStore(home).allow(nexus.load().active)


@pytest.mark.acceptance("T23")
def test_a_name_that_leads_elsewhere_after_it_was_looked_at_is_not_followed(
    make_nexus: MakeNexus, nexus_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nexus = make_nexus(files={".nexus3/mcp.json": '{"servers": [{"name": "a", "url": "https://a.example/mcp"}]}'})
    approved(nexus, nexus_home)
    asked: list[str] = []

    def lookup(host: str, *_: object, **__: object) -> list[tuple[object, ...]]:
        asked.append(host)
        address = "93.184.216.34" if len(asked) == 1 else "169.254.169.254"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 0))]

    monkeypatch.setattr(socket, "getaddrinfo", lookup)

    (error,) = outcomes(nexus, "a")

    assert "leads to this machine or to a link-local address" in str(error)


def test_a_server_of_a_project_is_connected_to_on_this_machine_by_its_usual_name(
    make_nexus: MakeNexus, nexus_home: Path
) -> None:
    with serving() as world:
        entry = {"name": "a", "url": world.url.replace("127.0.0.1", "localhost")}
        nexus = make_nexus(files={".nexus3/mcp.json": json.dumps({"servers": [entry]})})
        approved(nexus, nexus_home)

        (found,) = outcomes(nexus, "a")

    assert not isinstance(found, ServerError)


def test_an_address_is_asked_by_its_number_and_under_its_name(
    make_nexus: MakeNexus, nexus_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nexus = make_nexus(files={".nexus3/mcp.json": '{"servers": [{"name": "a", "url": "https://a.example/mcp"}]}'})
    approved(nexus, nexus_home)
    there = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("93.184.216.34", 0))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: there)
    asked: list[tuple[str, str, object]] = []

    async def send(_: object, request: httpx2.Request) -> httpx2.Response:
        asked.append((request.url.host, request.headers["host"], request.extensions["sni_hostname"]))
        return httpx2.Response(307, headers={"location": "https://a.example/mcp/"}, request=request)

    monkeypatch.setattr(httpx2.AsyncHTTPTransport, "handle_async_request", send)

    (error,) = outcomes(nexus, "a")

    assert set(asked) == {("93.184.216.34", "a.example", "a.example")}
    assert len(asked) > 2  # redirections on the same machine are followed, up to a number
    assert "redirects elsewhere" in str(error)


@pytest.mark.slow
def test_a_name_that_takes_long_to_look_up_costs_the_limit(
    make_nexus: MakeNexus, nexus_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nexus = make_nexus(files={".nexus3/mcp.json": '{"servers": [{"name": "a", "url": "https://a.example/mcp"}]}'})
    approved(nexus, nexus_home)
    found = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found.wait(FOREVER) and [])

    (error,) = outcomes(nexus, "a", limit=HASTE)
    found.set()

    assert "did not start within 1 s" in str(error)
