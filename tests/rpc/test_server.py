"""The HTTP server: JSON-RPC 2.0 as it is specified, who is refused, limits, and an end that loses nothing."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from nexus_core import AssembledContext, Nexus, ProviderError, UsageError
from nexus_core.plugin import Provider, ProviderReply, TextDelta
from nexus_core.plugin.dialects import Reply
from nexus_core.rpc import AgentPool, protocol, server
from nexus_core.rpc.server import open_listener
from nexus_core.testing.fixtures import MakeNexus
from tests.agents.fakes import FakeModel, replied
from tests.rpc.models import Gate, ScriptedModel, echo
from tests.rpc.servers import RunningServer, running_server

MODEL = {"model": "gpt-5"}
LIST = {"jsonrpc": "2.0", "method": "list_agents", "id": 1}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server for all tests here, with an agent `a`, whose model repeats what it is told."""
    directory = tmp_path_factory.mktemp("server")
    with (
        Nexus(directory, home=directory / "home", defaults=False, installed=False) as nexus,
        running_server(nexus, ScriptedModel(echo).provider) as running,
    ):
        running.result("create_agent", agent_id="a", **MODEL)
        yield running


def get_code(response: Any) -> Any:
    assert set(response) == {"jsonrpc", "error", "id"}
    assert response["jsonrpc"] == "2.0"
    assert isinstance(response["error"]["message"], str)
    return response["error"]["code"]


def write_request(served: RunningServer, body: bytes, *more: str, version: str = "1.1") -> bytes:
    """Return the bytes of a request; without its length if `more` has the encoding."""
    lines = [f"POST / HTTP/{version}", f"Host: 127.0.0.1:{served.port}", f"Authorization: Bearer {served.token}"]
    lines += ["Content-Type: application/json", *more]
    if not any(each.startswith("Transfer-Encoding") for each in more):
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body


def exchange(served: RunningServer, sent: bytes) -> bytes:
    """Send bytes, and return all that is received until the server closes the connection."""
    with socket.create_connection(("127.0.0.1", served.port), timeout=60) as connection:
        connection.sendall(sent)
        with connection.makefile("rb") as answer:
            return answer.read()


def get_statuses(received: bytes) -> list[int]:
    return [int(each) for each in re.findall(rb"HTTP/1\.1 (\d+) ", received)]


# ---- requests -------------------------------------------------------------------------------------------------------


@pytest.mark.acceptance("P-08")
def test_agent_of_the_server_reads_that_a_server_runs_it(served: RunningServer) -> None:
    prompt = served.result("get_context", agent_id="a")["system_prompt"]

    assert "Mode: HTTP JSON-RPC Server" in prompt


def test_events_of_a_turn_are_streamed_before_its_response(served: RunningServer) -> None:
    *events, response = served.send("a", "Hello.")

    assert {(each["method"], each["params"]["id"]) for each in events} == {("event", "s")}
    assert [each["params"]["event"]["type"] for each in events] == ["text", "step", "usage", "done"]
    assert (response["id"], response["result"]["text"]) == ("s", "a: Hello.")


def test_send_without_a_stream_answers_when_the_turn_has_ended(served: RunningServer) -> None:
    response = served.call("send", {"agent_id": "a", "message": "Hello."})

    assert response["result"]["text"] == "a: Hello."


def test_every_method_can_be_called(served: RunningServer) -> None:
    served.result("create_agent", agent_id="every", **MODEL)
    served.send("every", "The deployment is on Friday.")

    assert "every" in [each["agent_id"] for each in served.result("list_agents")]
    assert served.result("get_tokens", agent_id="every")["usage"]["input_tokens"] == 10
    assert served.result("get_messages", agent_id="every", limit=1, offset=-1)["messages"][0]["role"] == "assistant"
    assert served.result("cancel", agent_id="every") == {"cancelled": False}
    assert served.result("compact", agent_id="every") == {"compacted": False}
    assert "Friday" in json.dumps(served.result("memory_search", text="when is the deployment?"))
    assert "Friday" not in json.dumps(served.result("memory_search", text="deployment", agent_id="every", limit=1))
    assert served.result("fork", agent_id="every", name="copy")["agent_id"] == "copy"
    assert served.result("destroy_agent", agent_id="copy") == {"destroyed": ["copy"]}


def test_parameters_may_be_given_by_position(served: RunningServer) -> None:
    assert served.call("get_messages", ["a", 0, 1])["result"]["offset"] == 0
    assert get_code(served.call("get_tokens", ["a", "b"])) == -32602


@pytest.mark.parametrize("identity", ["text", 7, 1.5, None, "", "\ud800"])
def test_id_is_repeated_as_it_is(served: RunningServer, identity: object) -> None:
    assert served.call("list_agents", id=identity)["id"] == identity


def test_notifications_have_no_response(served: RunningServer) -> None:
    good = served.post({"jsonrpc": "2.0", "method": "create_agent", "params": {"agent_id": "n", **MODEL}})
    bad = served.post({"jsonrpc": "2.0", "method": "nothing"})

    assert [(each.status, each.body) for each in (good, bad)] == [(204, b""), (204, b"")]
    assert served.result("get_tokens", agent_id="n")


def test_batch_is_answered_in_order_without_its_notifications(served: RunningServer) -> None:
    batch = [
        {"jsonrpc": "2.0", "method": "create_agent", "params": {"agent_id": "b", **MODEL}, "id": "1"},
        {"jsonrpc": "2.0", "method": "send", "params": {"agent_id": "b", "message": "Hi."}, "id": "2"},
        {"jsonrpc": "2.0", "method": "list_agents"},
        {"foo": "boo"},
        {"jsonrpc": "2.0", "method": "nothing", "id": "5"},
    ]
    responses = served.post(batch).json

    assert [each["id"] for each in responses] == ["1", "2", None, "5"]
    assert responses[1]["result"]["text"] == "b: Hi."
    assert [get_code(each) for each in responses[2:]] == [-32600, -32601]
    assert served.post([{"jsonrpc": "2.0", "method": "list_agents"}]).status == 204


# The examples of the specification, and more of their kind.
@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b'{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]', -32700),
        (b'[{"jsonrpc": "2.0", "method": "sum", "id": "1"},{"jsonrpc": "2.0", "method"]', -32700),
        (b"", -32700),
        (b"\xff\xfe", -32700),
        (b'{"jsonrpc": "2.0", "method": "list_agents", "id": NaN}', -32700),
        (b'{"jsonrpc": "2.0", "method": "list_agents", "id": 1e999}', -32700),
        (b'{"jsonrpc": "2.0", "method": "list_agents", "id": ' + b"9" * 5000 + b"}", -32700),
        (b'{"jsonrpc": "2.0", "method": 1, "params": "bar"}', -32600),
        (b"[]", -32600),
        (b"1", -32600),
        (b"null", -32600),
        (b'{"jsonrpc": "1.0", "method": "list_agents", "id": 1}', -32600),
        (b'{"jsonrpc": "2.0", "method": "list_agents", "id": {}}', -32600),
        (b'{"jsonrpc": "2.0", "method": "list_agents", "id": true}', -32600),
        (b'{"jsonrpc": "2.0", "method": "list_agents", "params": null, "id": 1}', -32600),
        (b"[" * 65 + b"]" * 65, -32600),
        (b"[" * 100_000 + b"]" * 100_000, -32600),
        (b"[" + b"1," * 64 + b"1]", -32600),
        (b'{"jsonrpc": "2.0", "method": "foobar", "id": "1"}', -32601),
        (b'{"jsonrpc": "2.0", "method": "__init__", "id": "1"}', -32601),
        (b'{"jsonrpc": "2.0", "method": "get_tokens", "id": "1"}', -32602),
        (b'{"jsonrpc": "2.0", "method": "get_tokens", "params": {"agent_id": 1}, "id": 1}', -32602),
        (b'{"jsonrpc": "2.0", "method": "send", "params": {"agent_id": "a", "message": 7}, "id": 1}', -32602),
        (b'{"jsonrpc": "2.0", "method": "get_messages", "params": {"agent_id": "a", "limit": 0}, "id": 1}', -32602),
        (b'{"jsonrpc": "2.0", "method": "create_agent", "params": {"agent_id": "x", "level": "?"}, "id": 1}', -32001),
        (b'{"jsonrpc": "2.0", "method": "get_tokens", "params": {"agent_id": "x"}, "id": 1}', -32001),
        (b'{"jsonrpc": "2.0", "method": "create_agent", "params": {"agent_id": "a"}, "id": 1}', -32002),
        (b'{"jsonrpc": "2.0", "method": "resume", "params": {"agent_id": "a"}, "id": 1}', -32003),
    ],
)
def test_malformed_and_impossible_requests_have_their_code(served: RunningServer, body: bytes, code: int) -> None:
    answer = served.post(body)

    assert (answer.status, get_code(answer.json)) == (200, code)
    assert served.result("list_agents")[0]["agent_id"] == "a"


def test_error_says_what_to_do(served: RunningServer) -> None:
    error = served.call("get_token", {"agent_id": "a"})["error"]

    assert error["data"] == {"type": "UnknownMethodError", "hint": "did you mean 'get_tokens'?"}


def test_failure_of_the_model_has_its_code_and_the_turn_can_be_resumed(make_nexus: MakeNexus) -> None:
    model = FakeModel(ProviderError("the model is away"), replied("Back."))
    with running_server(make_nexus(), model.provider) as served:
        served.result("create_agent", agent_id="a", **MODEL)

        assert get_code(served.send("a", "Hi.")[-1]) == -32005
        assert served.call("resume", {"agent_id": "a"})["result"]["text"] == "Back."


def test_unexpected_error_is_named_without_its_text(
    served: RunningServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a secret of the program")

    monkeypatch.setattr(AgentPool, "list", fail)
    answer = served.post(LIST)

    assert get_code(answer.json) == -32603
    assert b"secret" not in answer.body
    assert "list_agents failed" in caplog.text


# ---- who is refused -------------------------------------------------------------------------------------------------


@pytest.mark.acceptance("T8")
@pytest.mark.parametrize("given", [None, "", "Bearer", "Bearer x", "bearer {token}", "Basic {token}", "{token}"])
@pytest.mark.parametrize(
    "changed", [{}, {"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Content-Type": "text/plain"}]
)
def test_without_the_token_there_is_401_and_nothing_else(
    served: RunningServer, given: str | None, changed: dict[str, str]
) -> None:
    token = None if given is None else given.format(token=served.token)
    answers = [
        served.post(LIST, Authorization=token, **changed),
        served.post(b"{", Authorization=token, **changed),
        served.post(b"", method="GET", path="/other", Authorization=token, **changed),
    ]

    assert {(each.status, each.body) for each in answers} == {(401, b"")}
    names = {tuple(sorted({*each.headers} - {"date"})) for each in answers}
    assert names == {("connection", "content-length", "www-authenticate")}


@pytest.mark.acceptance("T8")
@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({}, 200),
        ({"Host": "LOCALHOST:{port}"}, 200),
        ({"Content-Type": "application/json; charset=utf-8"}, 200),
        ({"Host": "evil.example"}, 421),
        ({"Host": "evil.example:{port}"}, 421),
        ({"Host": "127.0.0.1"}, 421),
        ({"Host": "127.0.0.1.evil.example:{port}"}, 421),
        ({"Host": "127.0.0.1:1"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1:{port}"}, 403),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": None}, 415),
        ({"method": "GET"}, 405),
        ({"method": "OPTIONS"}, 405),
        ({"method": "PUT"}, 405),
        ({"path": "/rpc"}, 404),
    ],
)
def test_browsers_and_other_requests_reach_no_method(
    served: RunningServer, changed: dict[str, str | None], status: int
) -> None:
    given: dict[str, Any] = {name: value and value.format(port=served.port) for name, value in changed.items()}
    answer = served.post(LIST, **given)

    assert answer.status == status
    assert (status == 200) == bool(answer.body)
    assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.acceptance("T8")
def test_two_tokens_are_refused(served: RunningServer) -> None:
    with socket.create_connection(("127.0.0.1", served.port)) as connection:
        token = f"Authorization: Bearer {served.token}\r\n"
        connection.sendall(f"POST / HTTP/1.1\r\nHost: x\r\n{token}{token}Content-Length: 0\r\n\r\n".encode())

        assert connection.recv(100).startswith(b"HTTP/1.1 401 ")


# ---- limits ---------------------------------------------------------------------------------------------------------


@pytest.mark.acceptance("T9")
def test_body_that_is_too_large_is_refused(served: RunningServer) -> None:
    answer = served.post(b'"' + b"x" * protocol.MAX_BODY_BYTES + b'"')

    assert (answer.status, get_code(answer.json)) == (413, -32600)
    assert served.post(LIST).status == 200


@pytest.mark.acceptance("T9")
def test_body_without_a_length_is_limited_too(served: RunningServer) -> None:
    with socket.create_connection(("127.0.0.1", served.port)) as connection:
        head = f"POST / HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\nAuthorization: Bearer {served.token}\r\n"
        connection.sendall(f"{head}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        piece = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
        for _ in range(protocol.MAX_BODY_BYTES // 0x10000 + 1):
            connection.sendall(piece)
        connection.sendall(b"0\r\n\r\n")

        assert connection.recv(100).startswith(b"HTTP/1.1 413 ")


@pytest.mark.acceptance("T9")
def test_headers_that_are_too_large_are_refused(served: RunningServer) -> None:
    assert served.post(LIST, X_Long="x" * server.MAX_HEADER_BYTES).status == 431
    assert served.post(LIST).status == 200


@pytest.mark.acceptance("T9")
@pytest.mark.parametrize(
    ("head", "piece"),
    [
        (b"POST / HTTP/1.1\r\n", b"X-Long: %s\r\n"),
        (b"POST / HTTP/1.1\r\nX-Long: ", b"%s"),
        (b"POST /", b"%s"),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"X-Trailer: %s\r\n"),
    ],
)
def test_headers_without_an_end_are_cut_off(served: RunningServer, head: bytes, piece: bytes) -> None:
    with socket.create_connection(("127.0.0.1", served.port), timeout=60) as connection:
        connection.sendall(head)
        sent = 0
        try:
            while sent < 64 * server.MAX_OVERHEAD_BYTES:
                connection.sendall(piece.replace(b"%s", b"x" * 4000))
                sent += 4000
        except ConnectionError:
            pass

    assert sent < 64 * server.MAX_OVERHEAD_BYTES
    assert served.post(LIST).status == 200


@pytest.mark.acceptance("T9")
def test_bodies_do_not_count_as_headers(served: RunningServer) -> None:
    connection = served.connect()
    headers = {"Authorization": f"Bearer {served.token}", "Content-Type": "application/json"}
    body = json.dumps(LIST | {"params": [], "id": "x" * server.MAX_OVERHEAD_BYTES})
    try:
        for _ in range(3):
            connection.request("POST", "/", body, headers)

            assert connection.getresponse().read()
    finally:
        connection.close()


def test_request_that_offers_another_protocol_is_answered(served: RunningServer) -> None:
    connection = served.connect()
    headers = {"Authorization": f"Bearer {served.token}", "Content-Type": "application/json"}
    offer = {"Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c", "HTTP2-Settings": "AAMAAABkAAQAAP__"}
    try:
        for more in (offer, {}, offer):
            connection.request("POST", "/", json.dumps(LIST), headers | more)

            assert "result" in json.load(connection.getresponse())
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("version", "connection"), [("1.1", "Upgrade, close"), ("1.1", "close, Upgrade"), ("1.0", "Upgrade")]
)
def test_request_that_offers_another_protocol_and_ends_the_connection_is_answered(
    served: RunningServer, version: str, connection: str
) -> None:
    offer = (f"Connection: {connection}", "Upgrade: h2c")
    received = exchange(served, write_request(served, json.dumps(LIST).encode(), *offer, version=version))

    assert get_statuses(received) == [200]
    assert b'"result"' in received


def test_offer_of_another_protocol_may_come_with_a_large_body(served: RunningServer) -> None:
    body = json.dumps(LIST).encode().ljust(200_000)
    received = exchange(served, write_request(served, body, "Connection: close, Upgrade", "Upgrade: h2c"))

    assert get_statuses(received) == [200]


def test_offers_of_another_protocol_in_one_write_are_all_answered(served: RunningServer) -> None:
    offer = write_request(served, json.dumps(LIST).encode(), "Connection: Upgrade", "Upgrade: h2c")
    last = write_request(served, json.dumps(LIST).encode(), "Connection: close")

    assert get_statuses(exchange(served, offer * 50 + last)) == [200] * 51


@pytest.mark.acceptance("T9")
def test_body_in_small_chunks_is_read(served: RunningServer) -> None:
    body = json.dumps(LIST).encode().ljust(1_000_000)
    chunks = b"".join(b"50\r\n%s\r\n" % body[start : start + 80] for start in range(0, len(body), 80))
    request = write_request(served, chunks + b"0\r\n\r\n", "Transfer-Encoding: chunked", "Connection: close")

    assert get_statuses(exchange(served, request)) == [200]


@pytest.mark.parametrize(
    "error",
    [
        b"\0\0x\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n1",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
        b"CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
    ids=["garbage", "two lengths", "no chunk", "proxy"],
)
def test_requests_before_an_error_are_answered_before_the_400(served: RunningServer, error: bytes) -> None:
    turn = {"jsonrpc": "2.0", "method": "send", "params": {"agent_id": "a", "message": "Hello."}, "id": 2}
    before = [
        write_request(served, json.dumps(LIST).encode()),
        write_request(served, json.dumps(turn).encode(), "Accept: text/event-stream"),
        write_request(served, json.dumps(LIST).encode()),
    ]
    for number in range(len(before) + 1):
        received = exchange(served, b"".join([*before[:number], error]))

        assert get_statuses(received) == [200] * number + [400]
        assert received.count(b'"result"') == number


def test_request_before_an_error_in_another_write_is_answered(make_nexus: MakeNexus) -> None:
    gate = Gate()

    def wait(_: AssembledContext) -> Reply:
        gate.wait()
        return replied("Done.")

    with running_server(make_nexus(), ScriptedModel(wait).provider) as served:
        served.result("create_agent", agent_id="a", **MODEL)
        turn = {"jsonrpc": "2.0", "method": "send", "params": {"agent_id": "a", "message": "Hello."}, "id": 2}
        with socket.create_connection(("127.0.0.1", served.port), timeout=60) as connection:
            connection.sendall(write_request(served, json.dumps(turn).encode()))
            assert gate.reached.wait(60)
            connection.sendall(b"\0\0x\r\n\r\n")
            served.result("list_agents")
            gate.opened.set()
            with connection.makefile("rb") as answer:
                received = answer.read()

    assert get_statuses(received) == [200, 400]
    assert b"Done." in received


@pytest.mark.parametrize(
    "sent", [b"CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n", b"GET http://[ HTTP/1.1\r\n\r\n", b"\0\n\n"]
)
def test_request_that_is_not_http_gets_400(served: RunningServer, sent: bytes) -> None:
    with socket.create_connection(("127.0.0.1", served.port), timeout=60) as connection:
        connection.sendall(sent)

        assert connection.recv(100).startswith(b"HTTP/1.1 400 ")


@pytest.mark.acceptance("T9")
@pytest.mark.parametrize("sent", [b"", b"POST / HTTP/1.1\r\nHost: x\r\n"])
def test_connection_that_sends_no_request_is_closed(
    served: RunningServer, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(server, "READ_SECONDS", 0.05)

    with socket.create_connection(("127.0.0.1", served.port), timeout=60) as connection:
        connection.sendall(sent)

        assert connection.recv(100) == b""


@pytest.mark.acceptance("T9")
def test_body_that_does_not_come_is_not_waited_for(served: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "READ_SECONDS", 0.05)

    with socket.create_connection(("127.0.0.1", served.port), timeout=60) as connection:
        head = f"POST / HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\nAuthorization: Bearer {served.token}\r\n"
        connection.sendall(f"{head}Content-Type: application/json\r\nContent-Length: 9\r\n\r\n[".encode())

        assert connection.recv(100).startswith(b"HTTP/1.1 408 ")


@pytest.mark.acceptance("T9")
def test_refused_request_holds_no_connection(served: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "READ_SECONDS", 0.05)

    with socket.create_connection(("127.0.0.1", served.port), timeout=60) as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nx")
        with connection.makefile("rb") as answer:
            received = answer.read()  # to the end of the connection

    assert received.startswith(b"HTTP/1.1 401 ")


@pytest.mark.acceptance("T9")
def test_more_connections_than_allowed_get_503(served: RunningServer) -> None:
    held = [served.connect() for _ in range(server.MAX_CONNECTIONS + 1)]
    try:
        for each in held:
            each.connect()
        # The server accepts them one after the other; the last of them must be there.
        statuses = set()
        end = time.monotonic() + 60
        while 503 not in statuses and time.monotonic() < end:
            statuses.add(served.post(LIST).status)
        assert 503 in statuses
    finally:
        for each in held:
            each.close()
    while served.post(LIST).status == 503:
        pass


# ---- many at once, and the end --------------------------------------------------------------------------------------


def test_twenty_turns_at_once_do_not_mix(served: RunningServer) -> None:
    names = [f"agent-{number}" for number in range(20)]
    for name in names:
        served.result("create_agent", agent_id=name, **MODEL)

    def talk(name: str) -> list[str]:
        return [served.send(name, f"{name} {turn}")[-1]["result"]["text"] for turn in range(3)]

    with ThreadPoolExecutor(20) as threads:
        said = list(threads.map(talk, names))

    assert said == [[f"{name}: {name} {turn}" for turn in range(3)] for name in names]


def test_client_that_leaves_does_not_end_the_turn(make_nexus: MakeNexus) -> None:
    gate = Gate()

    def says(context: Any) -> Any:
        gate.wait()
        return echo(context)

    with running_server(make_nexus(), ScriptedModel(says).provider) as served:
        served.result("create_agent", agent_id="a", **MODEL)
        connection = served.connect()
        body = {"jsonrpc": "2.0", "method": "send", "params": {"agent_id": "a", "message": "Hi."}, "id": 1}
        headers = {"Authorization": f"Bearer {served.token}", "Content-Type": "application/json"}
        connection.request("POST", "/", json.dumps(body), headers | {"Accept": "text/event-stream"})
        assert gate.reached.wait(60)
        connection.close()
        gate.opened.set()
        while served.result("list_agents")[0]["running"]:
            pass

        assert served.result("get_messages", agent_id="a")["messages"][-1]["role"] == "assistant"


@pytest.mark.parametrize("way", ["shutdown", "stop"])
def test_end_of_the_server_stores_what_was_said(make_nexus: MakeNexus, way: str) -> None:
    nexus = make_nexus()
    never = threading.Event()
    with running_server(nexus, FakeModel(never).provider) as served, ThreadPoolExecutor(1) as threads:
        served.result("create_agent", agent_id="a", **MODEL)
        turn = threads.submit(served.send, "a", "Go.")
        while served.result("get_messages", agent_id="a")["total"] == 0:
            pass
        if way == "shutdown":
            assert served.call("shutdown")["result"] == {"running": ["a"]}
        else:
            served.stop()
        *_, response = turn.result(60)
        never.set()

    session = nexus.session("a")
    assert response["result"]["cancelled"]
    assert not session.is_open
    assert any("Go." in each.content for each in session.messages)


def test_client_that_stops_reading_does_not_keep_the_server_alive(
    make_nexus: MakeNexus, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(server, "SHUTDOWN_SECONDS", 0.05)
    piece = "x" * 64 * 1024

    def stream(_context: Any, _cancel: Any) -> Iterator[Any]:
        yield from (TextDelta(piece) for _ in range(256))  # more than the buffers of both sides hold
        yield ProviderReply(replied("Done."))

    with running_server(make_nexus(), Provider(name="long", stream=stream)) as served:
        served.result("create_agent", agent_id="a", **MODEL)
        connection = served.connect()
        body = {"jsonrpc": "2.0", "method": "send", "params": {"agent_id": "a", "message": "Hi."}, "id": 1}
        headers = {"Authorization": f"Bearer {served.token}", "Content-Type": "application/json"}
        connection.request("POST", "/", json.dumps(body), headers | {"Accept": "text/event-stream"})
        try:
            assert connection.sock.recv(1)
            while served.result("list_agents")[0]["running"]:
                pass
            served.stop()
            served.thread.join(60)

            assert not served.thread.is_alive()
        finally:
            connection.close()

    assert [each.message for each in caplog.records if each.levelname == "ERROR"] == []


def test_listener_of_a_port_in_use_says_what_to_do() -> None:
    with open_listener(0) as first:
        port = first.getsockname()[1]

        with pytest.raises(UsageError, match=f"cannot listen on port {port}") as raised:
            open_listener(port)

    assert "--port 0" in (raised.value.hint or "")
