"""The server with random requests: each gets a response of JSON-RPC 2.0, and the server goes on."""

from __future__ import annotations

import http.client
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nexus_core import Nexus
from nexus_core.rpc.dispatcher import METHODS, STREAMS
from tests.effort import examples
from tests.rpc.models import ScriptedModel, echo
from tests.rpc.servers import RunningServer, running_server

CODES = {-32700, -32600, -32601, -32602, *range(-32011, -31999)}
"""Those of the specification but for -32603, which is an error of the server, and our own."""
SPECS = {**METHODS, **STREAMS}
NAMES = [name for name in SPECS if name != "shutdown"]
ODD: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    1.5,
    10**30,
    "",
    "a",
    "b",
    "\ud800",
    "\x00",
    "x" * 300,
    [],
    {},
    [[]],
    {"a": {}},
    "é",
]


def draw_value(source: random.Random, depth: int = 0) -> Any:
    """Any JSON value."""
    chosen = source.random()
    if depth > 4 or chosen < 0.7:
        return source.choice(ODD)
    if chosen < 0.85:
        return [draw_value(source, depth + 1) for _ in range(source.randrange(4))]
    return {str(source.choice(ODD)): draw_value(source, depth + 1) for _ in range(source.randrange(4))}


def draw_request(source: random.Random) -> Any:
    """A request that is nearly right."""
    method = source.choice(NAMES)
    spec = SPECS[method]
    params: Any = {name: source.choice(["a", "Hi.", 1, draw_value(source)]) for name in spec.required}
    params |= {name: draw_value(source) for name in spec.optional if source.random() < 0.2}
    if source.random() < 0.3:
        params = list(params.values())
    if method in {"create_agent", "fork"} and source.random() < 0.9:
        method = "get_tokens"  # agents are not free
    request: Any = {"jsonrpc": "2.0", "method": method, "params": params, "id": source.choice(ODD)}
    for _ in range(source.choice([0, 0, 1, 2])):
        field = source.choice([*request, "more"])
        if source.random() < 0.5:
            request.pop(field, None)
        else:
            request[field] = draw_value(source)
    return request if request.get("method") != "shutdown" else {}


def draw_body(source: random.Random) -> bytes:
    """The body of a request: good, nearly good, or noise."""
    chosen = source.random()
    if chosen < 0.05:
        return source.randbytes(source.randrange(60))
    value = draw_request(source) if chosen < 0.7 else draw_value(source)
    if 0.6 < chosen < 0.75:
        value = [draw_request(source) for _ in range(source.randrange(5))]
    body = bytearray(json.dumps(value).encode())
    if source.random() < 0.2:
        for _ in range(source.randrange(1, 4)):
            position = source.randrange(len(body) + 1)
            body[position : position + source.randrange(3)] = source.randbytes(source.randrange(3))
    return bytes(body)


def check_answer(status: int, body: bytes) -> None:
    """Fail unless it is a response of JSON-RPC 2.0 that no error of the server caused."""
    if status == 204:
        assert body == b""
        return
    assert status == 200
    value = json.loads(body)
    for each in value if isinstance(value, list) else [value]:
        assert each["jsonrpc"] == "2.0"
        assert ("result" in each) != ("error" in each)
        assert "id" in each
        if "error" in each:
            assert each["error"]["code"] in CODES, each
            assert isinstance(each["error"]["message"], str)


class FuzzConnection:
    """One connection, on which requests are sent one after the other."""

    def __init__(self, server: RunningServer) -> None:
        self.server = server
        self.http: http.client.HTTPConnection = server.connect()
        self.headers = {"Authorization": f"Bearer {server.token}", "Content-Type": "application/json"}

    def send(self, body: bytes) -> None:
        self.http.request("POST", "/", body, self.headers)
        response = self.http.getresponse()
        check_answer(response.status, response.read())


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FuzzConnection]:
    directory = tmp_path_factory.mktemp("fuzz")
    with (
        Nexus(directory, home=directory / "home", defaults=False, installed=False, ledger="memory:") as nexus,
        running_server(nexus, ScriptedModel(echo).provider) as running,
    ):
        running.result("create_agent", agent_id="a", model="gpt-5")
        opened = FuzzConnection(running)
        yield opened
        assert isinstance(running.result("list_agents"), list)
        opened.http.close()


@settings(max_examples=examples(200), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**64))
def test_random_requests_get_a_response(connection: FuzzConnection, seed: int) -> None:
    connection.send(draw_body(random.Random(seed)))  # noqa: S311 - no secret
