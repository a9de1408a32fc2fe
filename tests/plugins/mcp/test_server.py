"""Nexus as a server, and clients that do their worst."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nexus_core import Nexus
from nexus_core.testing import write_files
from nexus_core.testing.fixtures import MakeNexus
from nexus_plugins.mcp import _server_stdio
from nexus_plugins.mcp._server import MAX_ERROR_CHARACTERS, SERVED_TOOLS, run_tool, serve_client
from nexus_plugins.mcp._server_stdio import MAX_RESPONSE_SECONDS
from tests.conftest import ROOT
from tests.plugins.mcp.calm import CalmLoop

HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


@pytest.fixture
def nexus(make_nexus: MakeNexus) -> Nexus:
    return make_nexus(files={"NEXUS.md": "Measure twice.\n"})


def asks(number: object, method: str, **params: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n"


def calls(number: object, tool: str, **arguments: object) -> bytes:
    return asks(number, "tools/call", name=tool, arguments=arguments)


BEGIN = asks(0, "initialize", **HELLO) + b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n'


def told(nexus: Nexus, data: bytes) -> list[dict[str, Any]]:
    """What a client is told that says something and leaves."""
    with TemporaryFile() as answers:
        anyio.run(serve_client, nexus, saying(data), answers.fileno(), backend_options={"loop_factory": CalmLoop})
        answers.seek(0)
        return [json.loads(line) for line in answers]


def saying(data: bytes) -> int:
    """Where a client says hello and something else, and leaves."""
    source, sink = os.pipe()

    def write() -> None:
        with suppress(BrokenPipeError), os.fdopen(sink, "wb") as file:
            file.write(BEGIN + data)

    threading.Thread(target=write).start()
    return source


def by_number(answers: list[dict[str, Any]]) -> dict[object, dict[str, Any]]:
    return {answer["id"]: answer for answer in answers}


def text_of(answer: Mapping[str, Any]) -> str:
    return str(answer["result"]["content"][0]["text"])


def test_everything_that_was_asked_is_answered_although_the_client_has_left(nexus: Nexus) -> None:
    answers = told(nexus, b"".join(calls(number, "count_tokens", text="x") for number in range(1, 31)))

    assert sorted(answer["id"] for answer in answers) == list(range(31))


@pytest.mark.slow
def test_ten_thousand_requests_at_once_are_answered(nexus: Nexus) -> None:
    answers = told(nexus, b"".join(calls(number, "nothing") for number in range(1, 10_001)))

    assert sorted(answer["id"] for answer in answers) == list(range(10_001))


def test_what_takes_long_is_waited_for_as_long_as_answers_come(nexus: Nexus, monkeypatch: pytest.MonkeyPatch) -> None:
    loops: list[CalmLoop] = []

    def start() -> CalmLoop:
        loops.append(CalmLoop())
        return loops[0]

    def take_long(*_: object) -> object:
        loops[0].skip(MAX_RESPONSE_SECONDS * 0.6)
        return {}

    monkeypatch.setitem(SERVED_TOOLS, "count_tokens", SERVED_TOOLS["count_tokens"]._replace(run=take_long))
    asked = b"".join(calls(number, "count_tokens", text="x") for number in range(1, 6))

    with TemporaryFile() as answers:
        anyio.run(serve_client, nexus, saying(asked), answers.fileno(), backend_options={"loop_factory": start})
        answers.seek(0)
        assert {json.loads(line)["id"] for line in answers} == set(range(6))


def test_no_more_is_read_than_is_answered(nexus: Nexus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_server_stdio, "MAX_PENDING_REQUESTS", 2)
    source, sink = os.pipe()
    os.set_blocking(sink, False)
    os.write(sink, BEGIN)
    unread, full = full_pipe()

    async def main() -> int:
        pushed = 0
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve_client, nexus, source, full)
            for _ in range(100):
                with suppress(BlockingIOError):
                    pushed += os.write(sink, calls(1, "count_tokens", text="x" * 2_000))
                await anyio.sleep(0.002)
            tasks.cancel_scope.cancel()
        return pushed

    pushed = anyio.run(main)
    for each in (sink, unread):
        os.close(each)

    assert pushed < 100 * 2_000


def full_pipe() -> tuple[int, int]:
    """A pipe that nobody reads and that nothing more goes into."""
    unread, full = os.pipe()
    os.set_blocking(full, False)
    with suppress(BlockingIOError):
        while True:
            os.write(full, b"x" * 4_096)
    os.set_blocking(full, True)
    return unread, full


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks how full a pipe is")
def test_the_command_ends_when_it_is_told_to_although_nobody_reads_what_it_says(work: Path, nexus_home: Path) -> None:
    write_files(work, {"NEXUS.md": "Measure twice.\n" * 10_000})
    environment = {**os.environ, "NEXUS_HOME": str(nexus_home), "PYTHONPATH": f"{ROOT}:{ROOT}/plugins"}
    line = [sys.executable, "-m", "nexus_core", "mcp", "serve"]
    unread, sink = os.pipe()
    with subprocess.Popen(line, cwd=work, env=environment, stdin=subprocess.PIPE, stdout=sink) as command:
        assert command.stdin is not None
        command.stdin.write(BEGIN + asks(1, "resources/read", uri="nexus://prompt"))
        command.stdin.flush()
        while not is_filling(unread):
            time.sleep(0.01)
        command.terminate()

        assert command.wait(60) == 128 + signal.SIGTERM
    for each in (unread, sink):
        os.close(each)


def is_filling(pipe: int) -> bool:
    """Whether somebody is in the middle of writing what does not fit, because nobody reads it."""
    import fcntl
    import termios

    unread = int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)
    return unread > fcntl.fcntl(pipe, fcntl.F_GETPIPE_SZ) / 2


def test_a_line_that_is_no_message_is_answered_as_such_and_the_next_as_ever(nexus: Nexus) -> None:
    garbage = b'garbage\n\x00\xff\xfe\n{"a": 1}\n[]\n\n' + b"[" * 10_000 + b'\n{"jsonrpc": "2.0", "id": 7\n'

    answers = told(nexus, garbage + asks(1, "tools/list") + b'{"jsonrpc": "2.0", "id": 8, "met')

    assert [answer["error"]["code"] for answer in answers if answer["id"] is None] == [-32700] * 7
    assert len(by_number(answers)[1]["result"]["tools"]) == len(SERVED_TOOLS)


def test_a_line_that_is_too_long_is_refused_and_not_kept(nexus: Nexus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_server_stdio, "MAX_MESSAGE_BYTES", 100_000)

    answers = told(nexus, calls(1, "count_tokens", text="x" * 1_000_000) + calls(2, "count_tokens", text="x"))

    assert [answer["id"] for answer in answers] == [0, None, 2]


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (asks(1, "tools/call", name="count_tokens", arguments=[1]), -32602),
        (asks(1, "tools/call", name=7), -32602),
        (asks(1, "tools/call"), -32602),
        (asks(1, "resources/read", uri="nexus://nothing"), -32602),
        (asks(1, "resources/read", uri=7), -32602),
        (asks(1, "no/such/thing"), -32601),
    ],
    ids=["arguments", "name", "nothing", "address", "no address", "method"],
)
def test_a_request_that_makes_no_sense_is_refused(nexus: Nexus, said: bytes, code: int) -> None:
    answers = by_number(told(nexus, said))

    assert answers[1]["error"]["code"] == code


def test_every_tool_says_that_it_changes_nothing(nexus: Nexus) -> None:
    tools = by_number(told(nexus, asks(1, "tools/list")))[1]["result"]["tools"]

    assert {(tool["annotations"]["readOnlyHint"], tool["annotations"]["openWorldHint"]) for tool in tools} == {
        (True, False)
    }


def test_who_asks_for_templates_of_resources_is_told_that_there_are_none(nexus: Nexus) -> None:
    answers = by_number(told(nexus, asks(1, "resources/templates/list")))

    assert answers[1]["result"]["resourceTemplates"] == []


def test_what_is_wrong_with_an_argument_is_told_without_all_of_it(nexus: Nexus) -> None:
    answer = by_number(told(nexus, calls(1, "count_tokens", text=["y" * 1_000_000])))[1]

    assert answer["result"]["isError"]
    assert len(text_of(answer)) <= MAX_ERROR_CHARACTERS + 1


def test_a_client_that_no_longer_listens_ends_it(nexus: Nexus) -> None:
    unread, broken = os.pipe()
    os.close(unread)
    source, sink = os.pipe()  # which stays open: the client has not left
    os.write(sink, BEGIN)

    anyio.run(serve_client, nexus, source, broken)

    for each in (sink, broken):
        os.close(each)


def test_half_a_character_is_told_as_it_was_said(nexus: Nexus, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = SERVED_TOOLS["count_tokens"]._replace(run=lambda *_: {"said": "half \ud800"})
    monkeypatch.setitem(SERVED_TOOLS, "count_tokens", broken)

    answer = by_number(told(nexus, calls(1, "count_tokens", text="x")))[1]

    assert json.loads(text_of(answer)) == {"said": "half \ud800"}


def test_a_plugin_that_fails_is_told_in_words(
    nexus: Nexus, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fails(*_: object) -> object:
        raise ZeroDivisionError("by nothing")

    monkeypatch.setitem(SERVED_TOOLS, "count_tokens", SERVED_TOOLS["count_tokens"]._replace(run=fails))

    answers = by_number(told(nexus, calls(1, "count_tokens", text="x") + asks(2, "tools/list")))

    assert text_of(answers[1]) == "count_tokens failed with ZeroDivisionError: by nothing"
    assert "result" in answers[2]
    assert capfd.readouterr().err == ""


def test_a_broken_setting_is_told_in_words(nexus: Nexus, tmp_path: Path) -> None:
    (tmp_path / "work/.nexus3").mkdir()
    (tmp_path / "work/.nexus3/config.json").write_text("{broken")

    answers = by_number(told(nexus, asks(1, "resources/read", uri="nexus://prompt") + calls(2, "assemble_context")))

    assert "config.json" in answers[1]["error"]["message"]
    assert answers[2]["result"]["isError"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=10,
)
MESSAGES = st.lists(
    st.dictionaries(
        st.sampled_from(["role", "content", "tool_calls", "tool_call_id", "parts", "type", "call_id"]), JSON, max_size=4
    ),
    max_size=3,
)
VALUES = JSON | MESSAGES | st.sampled_from(["openai", "anthropic", "gemini", "responses", "neutral", "bug"])


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(data=st.data(), tool=st.sampled_from(sorted(SERVED_TOOLS)))
def test_no_argument_brings_a_tool_down(nexus: Nexus, tool: str, data: st.DataObject) -> None:
    names = sorted(SERVED_TOOLS[tool].properties)
    fields: dict[str, Any] = {name: data.draw(VALUES) for name in data.draw(st.sets(st.sampled_from(names)))}

    text, failed = run_tool(nexus, tool, fields)

    assert failed or json.loads(text)
    assert "failed with" not in text
