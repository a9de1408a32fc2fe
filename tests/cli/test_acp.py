"""`nexus acp -- COMMAND`: every byte is passed on, and the conversation is in the ledger."""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from threading import Thread
from typing import Any

import acp
import pytest

from nexus_core import Nexus
from nexus_core.cli.commands.acp import AcpRecorder, pass_bytes
from nexus_core.cli.context import CliContext
from nexus_core.text.console import Console
from nexus_core.transcripts.acp import AcpSession, AcpTraffic, read_usage
from nexus_core.types.messages import Usage
from tests.conftest import Cli
from tests.effort import rounds
from tests.tables import count

AGENT = Path(__file__).with_name("acp_agent.py")
SESSION = "acp-4f9a8b7c"


class SampleEditor:
    """The editor's side, with the official package."""

    def __init__(self) -> None:
        self.updates: list[Any] = []

    def on_connect(self, conn: Any) -> None:
        pass

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:  # noqa: ARG002 - the protocol's
        self.updates.append(update)


async def talk(work: Path, *prompts: str) -> tuple[list[Any], list[str]]:
    editor = SampleEditor()
    arguments = ["-m", "nexus_core", "acp", "--", sys.executable, str(AGENT)]
    environment = dict(os.environ)
    async with acp.spawn_agent_process(
        editor,  # type: ignore[arg-type]  # it has what the agent calls
        sys.executable,
        *arguments,
        cwd=work,
        env=environment,
    ) as (agent, process):
        await agent.initialize(protocol_version=acp.PROTOCOL_VERSION)
        session = await agent.new_session(cwd=str(work), mcp_servers=[])
        stops: list[str] = [
            (await agent.prompt(prompt=[acp.text_block(text)], session_id=session.session_id)).stop_reason
            for text in prompts
        ]
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()
    return editor.updates, stops


@pytest.mark.slow
def test_a_conversation_of_the_official_package_is_recorded(work: Path, nexus: Nexus, cli: Cli) -> None:
    updates, stops = asyncio.run(talk(work, "Why?", "And now?"))

    assert stops == ["end_turn", "end_turn"]
    assert len(updates) == 12
    messages = nexus.session(SESSION).messages
    assert [message.role for message in messages] == ["user", "assistant", "tool", "assistant"] * 2
    assert [messages[0].content, messages[3].content, messages[7].content] == [
        "Why?",
        "You asked: Why?",
        "You asked: And now?",
    ]
    assert messages[1].content == "Let me look."
    assert messages[1].tool_calls[0].arguments == {"path": "a.txt"}
    assert messages[2].tool_results[0].text == "It has one line."
    assert nexus.session(SESSION).usage == Usage(input_tokens=240, output_tokens=20, cached_input_tokens=200)
    assert str(work) in cli("session", "list").out
    assert "You asked: Why?" in cli("session", "show", SESSION).out
    assert "tokens" in cli("context", "--session", SESSION).out


def pass_through(data: bytes, cwd: Path, cli: CliContext, rng: random.Random) -> bytes:
    """What comes back if an agent repeats everything that the editor writes."""
    source, theirs = os.pipe()
    output, end = os.pipe()
    process = subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=cwd)
    recorder = AcpRecorder(cli, "memory:")
    received: list[bytes] = []

    def write() -> None:
        at = 0
        while at < len(data):
            size = rng.choice((1, 7, 100, 70_000))
            os.write(theirs, data[at : at + size])
            at += size
        os.close(theirs)

    def read() -> None:
        while piece := os.read(output, 100_000):
            received.append(piece)

    threads = [Thread(target=write), Thread(target=read)]
    for thread in threads:
        thread.start()
    assert pass_bytes(process, recorder, source, end) == 0
    os.close(end)
    for thread in threads:
        thread.join()
    for descriptor in (source, output):
        os.close(descriptor)
    assert process.stdout is not None
    process.stdout.close()
    return b"".join(received)


def make_stream(rng: random.Random) -> bytes:
    """Lines that are messages, nearly messages, or anything."""
    update: dict[str, object] = {
        "sessionUpdate": rng.choice(["agent_message_chunk", "tool_call", "tool_call_update", "x", None])
    }
    update |= {
        "content": rng.choice([{"type": "text", "text": "é\u2028"}, [], 7, None]),
        "toolCallId": rng.choice("ab"),
    }
    bodies: list[object] = [
        {
            "jsonrpc": "2.0",
            "id": rng.randrange(3),
            "method": "session/prompt",
            "params": {"sessionId": "s", "prompt": 1},
        },
        {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}},
        {"jsonrpc": "2.0", "id": rng.randrange(3), "result": rng.choice([None, {}, {"usage": {"inputTokens": -1}}])},
        [{}],
        rng.random(),
    ]
    lines = []
    for _ in range(rng.randrange(12)):
        line = json.dumps(rng.choice(bodies)).encode()
        if rng.random() < 0.4:
            at = rng.randrange(len(line) + 1)
            line = line[:at] + rng.randbytes(rng.randrange(20)) + line[at:]
        lines.append(line)
    return rng.choice([b"\n", b"\r\n", b"\n\n"]).join(lines) + rng.choice([b"", b"\n"])


@pytest.mark.slow
def test_every_byte_is_passed_on_unchanged(tmp_path: Path) -> None:
    rng = random.Random(24)  # noqa: S311 - not for secrets
    cli = CliContext(Console())

    for number in range(rounds(300)):
        data = rng.randbytes(300_000) if number % 50 == 0 else make_stream(rng)
        assert pass_through(data, tmp_path, cli, rng) == data
    count(rounds(300))


def test_no_stream_stops_the_reader() -> None:
    rng = random.Random(25)  # noqa: S311 - as above
    turns: list[AcpSession] = []

    for _ in range(rounds(10_000)):
        traffic = AcpTraffic(turns.append)
        for line in make_stream(rng).split(b"\n"):
            traffic.read_line(rng.choice(("editor", "agent")), line)
        traffic.end()
        for session in traffic.sessions.values():
            session.to_transcript()
    count(rounds(10_000))

    assert turns


def test_a_turn_without_an_end_is_recorded_when_the_agent_dies() -> None:
    stored: list[AcpSession] = []
    traffic = AcpTraffic(stored.append)
    prompt = {"sessionId": "s", "prompt": [{"type": "text", "text": "Hi"}]}
    update = {"sessionId": "s", "update": {"sessionUpdate": "tool_call", "toolCallId": "c", "title": "run"}}

    traffic.read_line("editor", json.dumps({"id": 1, "method": "session/prompt", "params": prompt}).encode())
    traffic.read_line("agent", json.dumps({"method": "session/update", "params": update}).encode())
    traffic.end()

    (session,) = stored
    user, reply, result = session.to_transcript().messages
    assert (user.content, reply.tool_calls[0].name) == ("Hi", "run")
    assert result.tool_results[0].is_error


def test_prompts_keep_images_files_and_links() -> None:
    stored: list[AcpSession] = []
    traffic = AcpTraffic(stored.append)
    blocks = [
        {"type": "image", "mimeType": "image/png", "data": "iVBORw0="},
        {"type": "resource", "resource": {"uri": "file:///a.py", "text": "x = 1"}},
        {"type": "resource_link", "name": "b.py", "uri": "file:///b.py"},
    ]
    line = {"id": 1, "method": "session/prompt", "params": {"sessionId": "s", "prompt": blocks}}

    traffic.read_line("editor", json.dumps(line).encode())
    traffic.end()

    (message,) = stored[0].to_transcript().messages
    assert message.content == "file:///a.py\nx = 1\n[b.py](file:///b.py)"
    assert len(message.parts) == 3


@pytest.mark.parametrize(
    ("reported", "usage"),
    [
        (None, None),
        ({}, None),
        ({"inputTokens": "many"}, None),
        ({"totalTokens": 15, "inputTokens": 10, "outputTokens": 5}, Usage(input_tokens=10, output_tokens=5)),
        (
            {"totalTokens": 115, "inputTokens": 10, "outputTokens": 5, "cachedReadTokens": 100},
            Usage(input_tokens=110, output_tokens=5, cached_input_tokens=100),
        ),
        (
            {"totalTokens": 115, "inputTokens": 110, "outputTokens": 5, "cachedReadTokens": 100},
            Usage(input_tokens=110, output_tokens=5, cached_input_tokens=100),
        ),
    ],
)
def test_usage_is_read_with_or_without_the_cache_in_the_input(reported: object, usage: Usage | None) -> None:
    assert read_usage(reported) == usage


def test_an_agent_that_cannot_be_started_is_an_error(cli: Cli) -> None:
    result = cli("acp", "--", "/no/such/agent")

    assert result.code == 2
    assert "'/no/such/agent' cannot be started: No such file or directory" in result.err


def test_options_of_our_agents_are_not_for_others(cli: Cli) -> None:
    result = cli("acp", "-m", "gpt-4o", "--", "/bin/cat")

    assert result.code == 2
    assert "--model is for agents of Nexus" in result.err


@pytest.mark.slow
def test_the_exit_code_is_that_of_the_agent(work: Path) -> None:
    command = [sys.executable, "-m", "nexus_core", "acp", "--", "/bin/sh", "-c", "exit 7"]

    assert subprocess.run(command, cwd=work, input=b"", check=False).returncode == 7
