"""Real parts: servers made with the official SDK, a published one, and Nexus served to the SDK's own client."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from nexus_core import Nexus
from nexus_core.testing import write_files
from nexus_core.testing.fixtures import MakeNexus
from nexus_core.types.assembled import AgentResult
from nexus_core.types.ledger import NewStep
from nexus_core.types.messages import Message, ToolCall, ToolResult
from nexus_plugins.mcp._connections import ServerPool, ServerTimeouts
from nexus_plugins.mcp._server import MAX_READ_CHARACTERS, build_server, read_resource_text, run_tool
from tests.conftest import ROOT
from tests.effort import some
from tests.plugins.mcp.world import define, servers_of, survivors
from tests.session.wire import asks, says
from tests.tables import count
from tests.text.secret_samples import SAMPLES

SDK_SERVER = """
import sys
from mcp.server.mcpserver import Image, MCPServer

server = MCPServer("real")

@server.tool()
def add(a: int, b: int) -> int:
    "Add two numbers."
    return a + b

@server.tool()
def picture() -> Image:
    "A small picture."
    return Image(data=b"PNG", format="png")

@server.tool()
def fail() -> str:
    "Always fails."
    raise ValueError("as it should")

if sys.argv[1:]:
    import socket, uvicorn
    app = server.sse_app() if sys.argv[1] == "sse" else server.streamable_http_app()
    uvicorn.Server(uvicorn.Config(app)).run(sockets=[socket.socket(fileno=int(sys.argv[2]))])
else:
    server.run()
"""


def call(nexus: Nexus, name: str, tool: str, **arguments: object) -> Any:
    request = nexus.request()
    loaded = nexus.load(request)
    server = servers_of(nexus)[name]

    async def main() -> Any:
        async with ServerPool(loaded, request, ServerTimeouts(start=30, call=30)) as links:
            return await links.call(server, tool, dict(arguments))

    return anyio.run(main)


@contextmanager
def listening(folder: Path, transport: str) -> Iterator[str]:
    """A server made with the SDK that listens on this machine."""
    script = write_files(folder, {"server.py": SDK_SERVER}) / "server.py"
    quiet = subprocess.DEVNULL
    # It inherits what it listens at: nobody else can take the port, and whoever connects too early is kept waiting.
    with socket.create_server(("127.0.0.1", 0)) as listener:
        line = [sys.executable, str(script), transport, str(listener.fileno())]
        with subprocess.Popen(line, stdout=quiet, stderr=quiet, pass_fds=[listener.fileno()]) as process:
            try:
                yield f"http://127.0.0.1:{listener.getsockname()[1]}"
            finally:
                process.kill()


@pytest.mark.slow
def test_a_server_of_the_official_sdk_is_used_over_its_standard_input(
    make_nexus: MakeNexus, nexus_home: Path, tmp_path: Path
) -> None:
    script = write_files(tmp_path, {"server.py": SDK_SERVER}) / "server.py"
    define(nexus_home, real=[sys.executable, str(script)])
    nexus = make_nexus()

    assert call(nexus, "real", "add", a=2, b=3).content[0].text == "5"
    assert call(nexus, "real", "picture").content[0].mime_type == "image/png"
    assert call(nexus, "real", "fail").is_error
    assert survivors(nexus_home) == []


@pytest.mark.slow
@pytest.mark.parametrize(("transport", "path"), [("streamable-http", "/mcp"), ("sse", "/sse")])
def test_a_server_of_the_official_sdk_is_used_over_http(
    make_nexus: MakeNexus, nexus_home: Path, tmp_path: Path, transport: str, path: str
) -> None:
    with listening(tmp_path, transport) as address:
        kind = "sse" if transport == "sse" else "http"
        define(nexus_home, web={"type": kind, "url": address + path, "headers": {"X-Key": "${NEXUS_TEST_KEY:-none}"}})
        nexus = make_nexus()

        assert call(nexus, "web", "add", a=2, b=3).content[0].text == "5"
        assert call(nexus, "web", "fail").is_error


@pytest.mark.slow
def test_a_published_server_is_used(make_nexus: MakeNexus, nexus_home: Path) -> None:
    define(nexus_home, time=[sys.executable, "-m", "mcp_server_time", "--local-timezone", "UTC"])

    told = json.loads(call(make_nexus(), "time", "get_current_time", timezone="Europe/Vienna").content[0].text)

    assert told["timezone"] == "Europe/Vienna"
    assert survivors(nexus_home) == []


# ---- Nexus as a server ------------------------------------------------------------------------------------


@pytest.fixture
def nexus(make_nexus: MakeNexus) -> Nexus:
    nexus = make_nexus(
        files={"NEXUS.md": "Measure twice.\n", ".nexus3/config.json": '{"provider": {"model": "gpt-4o"}}'}
    )
    session = nexus.session("bug")
    session.ask("Why does login fail? The key is sk-ant-api03-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")
    session.record(says("openai", 1, "Because of the clock."))
    return nexus


def asked(nexus: Nexus, tool: str, **arguments: object) -> Any:
    text, failed = run_tool(nexus, tool, arguments)
    assert not failed, text
    return json.loads(text)


def test_the_request_of_a_session_is_told(nexus: Nexus) -> None:
    told = asked(nexus, "assemble_context", session="bug", message="And now?", api="anthropic")

    assert "Measure twice." in json.dumps(told["request"]["system"])
    assert told["request"]["messages"][-1]["role"] == "user"
    assert told["tokens"] > 0


def test_the_source_of_a_sentence_is_told(nexus: Nexus, tmp_path: Path) -> None:
    (found,) = asked(nexus, "explain_source", query="Measure twice")["explanations"]

    assert found["place"] == f"{tmp_path}/work/NEXUS.md:1"


def test_history_is_searched_and_told_without_secrets(nexus: Nexus) -> None:
    told = asked(nexus, "search_history", session="bug", text="login")

    assert any("Why does login fail?" in json.dumps(step) for step in told["steps"])
    assert "sk-ant-api03-AAAA" not in json.dumps(told)


def test_history_is_searched_without_what_was_forgotten(nexus: Nexus, nexus_home: Path) -> None:
    write_files(nexus_home, {"memory/backup.md": "The nightly backup runs on heron-23.\n"})
    write_files(nexus_home, {"config.json": '{"memory": {"enabled": true}}'})
    session = nexus.session("hosts")
    session.ask("The login host is osprey-17.")
    session.record(says("openai", 1, "Good."))
    session.ask("Which host runs the nightly backup?")
    memories = [each.id for each in nexus.recall("Which host runs the nightly backup?").memories]
    before = [asked(nexus, "search_history", session="hosts", text=text)["steps"] for text in ("osprey-17", "heron-23")]
    session.forget_memories(memories, steps=[step["id"] for step in before[0]])

    after = [asked(nexus, "search_history", session="hosts", text=text)["steps"] for text in ("osprey-17", "heron-23")]

    assert [len(steps) for steps in before] == [1, 1]
    assert after == [[], []]
    assert asked(nexus, "search_history", session="hosts", text="nightly")["steps"]


def test_history_is_searched_without_a_session_in_this_directory(nexus: Nexus) -> None:
    nexus.ledger.create("elsewhere", data={"cwd": "/elsewhere"}, steps=[told_elsewhere("The login fails elsewhere.")])

    found = asked(nexus, "search_history", text="why did the logins of Kevin fail yesterday?")

    assert found["steps"][0]["session"] == "bug"
    assert "Why does login fail?" in found["steps"][0]["messages"][0]["text"]
    assert "elsewhere" not in json.dumps(found)
    assert (found["unknown_names"], found["unknown_words"]) == (["Kevin"], ["yesterday"])


def test_memories_are_recalled_without_a_session_and_quoted(nexus: Nexus, nexus_home: Path) -> None:
    write_files(nexus_home, {"memory/login.md": "The login fails without a cookie.\n"})

    found = asked(nexus, "recall", query="why does the login fail?")["memories"]

    assert {each["kind"] for each in found} == {"note", "episode"}
    [note] = [each for each in found if each["kind"] == "note"]
    assert note["source"] == f"{nexus_home}/memory/login.md:1-1"
    [turn, *_] = [each for each in found if each["kind"] == "episode"]
    assert turn["source"].startswith("step:")
    assert "not instructions" in turn["text"]


def test_a_session_that_recalls_is_not_told_its_own_turns(nexus: Nexus) -> None:
    assert asked(nexus, "recall", query="why does the login fail?", session="bug")["memories"] == []


def told_elsewhere(text: str) -> NewStep:
    return NewStep(kind="turn", closes=True, messages=(Message("user", text),))


def test_a_request_is_told_without_secrets(nexus: Nexus) -> None:
    told = json.dumps(asked(nexus, "assemble_context", session="bug"))

    assert "[redacted:" in told
    assert "sk-ant-api03-AAAA" not in told


def test_a_long_message_is_told_in_parts(nexus: Nexus) -> None:
    session = nexus.session("long")
    session.ask(f"{'a' * MAX_READ_CHARACTERS}needle{'b' * MAX_READ_CHARACTERS}")

    (step,) = asked(nexus, "read_steps", session="long", limit=1)["steps"]
    (rest,) = asked(nexus, "read_steps", session="long", limit=1, offset=MAX_READ_CHARACTERS)["steps"]
    everything = asked(nexus, "read_steps", session="long")["steps"]
    (found, *_) = asked(nexus, "search_history", session="long", text="needle")["steps"]

    cut = re.fullmatch(r".*a… \[([0-9,]+) more characters\]", step["messages"][0]["text"], re.DOTALL)
    assert cut is not None
    assert int(cut[1].replace(",", "")) > MAX_READ_CHARACTERS
    assert "needle" in rest["messages"][0]["text"]
    assert sum(len(said["text"]) for step in everything for said in step["messages"]) < MAX_READ_CHARACTERS + 1_000
    assert re.fullmatch("…a+needleb+…", found["messages"][0]["text"])


def test_a_call_is_told_with_what_it_was_called_with(nexus: Nexus) -> None:
    session = nexus.session("tools")
    session.ask("Read it.")
    session.record(asks("openai", 1, "read", path="x.py"))

    (step,) = asked(nexus, "search_history", session="tools", text="x.py")["steps"]

    assert step["messages"][0]["text"] == '[calls read {"path": "x.py"}]'


def test_steps_are_read_up_to_one_of_them(nexus: Nexus) -> None:
    newest = asked(nexus, "read_steps", session="bug", limit=1)["steps"]
    before = asked(nexus, "read_steps", session="bug")["steps"]

    until = asked(nexus, "read_steps", session="bug", until=before[0]["id"])["steps"]
    short = asked(nexus, "read_steps", session="bug", until=before[0]["id"][-6:])["steps"]  # as summaries show it

    assert newest == before[-1:]
    assert until == short == before[:1]


def test_sessions_are_listed_page_by_page_those_changed_last_first(nexus: Nexus) -> None:
    for number in range(5):
        nexus.session(f"s{number}", model="gpt-4o").ask("?")

    pages = [asked(nexus, "list_sessions", limit=4)]
    while after := pages[-1]["next"]:
        pages.append(asked(nexus, "list_sessions", limit=4, after=after))
    everything = asked(nexus, "list_sessions")

    assert [len(page["sessions"]) for page in pages] == [4, 2]
    assert [each for page in pages for each in page["sessions"]] == everything["sessions"]
    assert {page["total"] for page in [*pages, everything]} == {6}
    changed = {each.label: each.updated for each in nexus.ledger.sessions()}
    order = [changed[each["session"]] for each in everything["sessions"]]
    assert order == sorted(order, reverse=True)


def test_a_listed_session_says_what_it_is(nexus: Nexus, tmp_path: Path) -> None:
    session = nexus.session("boss", model="gpt-4o")
    session.ask("Have it done.")
    (call,) = session.record(asks("openai", 1, "delegate")).tool_calls
    session.spawn("Do it.", call=call, name="hand")
    nexus.session("bug").fork("branch")

    found = {each["session"]: each for each in asked(nexus, "list_sessions")["sessions"]}

    boss = found["boss"]
    assert (boss["directory"], boss["model"], boss["open"]) == (str(tmp_path / "work"), "gpt-4o", True)
    assert datetime.fromisoformat(boss["begun"]) <= datetime.fromisoformat(boss["changed"])
    assert (found["hand"]["worker_of"], found["branch"]["forked_from"], found["bug"]["open"]) == ("boss", "bug", False)


def test_sessions_of_other_directories_and_archived_ones_are_not_listed(nexus: Nexus, tmp_path: Path) -> None:
    for name in ("work-beside", "work/below"):
        (tmp_path / name).mkdir()
        with Nexus(tmp_path / name) as other:
            other.session(name, model="gpt-4o").ask("?")
    nexus.session("old", model="gpt-4o").ask("?")
    nexus.ledger.update("old", status="archived")

    found = asked(nexus, "list_sessions")

    assert {each["session"] for each in found["sessions"]} == {"bug", "work/below"}
    assert found["total"] == 2


def test_a_list_of_sessions_is_told_without_secrets(nexus: Nexus) -> None:
    nexus.session("sk-ant-api03-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", model="gpt-4o").ask("?")

    told = json.dumps([asked(nexus, "list_sessions"), asked(nexus, "list_sessions", limit=1)])

    assert "[redacted:" in told
    assert "sk-ant-api03-AAAA" not in told


@pytest.mark.acceptance("T10")
@pytest.mark.parametrize("tool", ["assemble_context", "read_steps", "search_history", "recall"])
def test_no_shape_of_secret_is_told_to_a_client(nexus: Nexus, tool: str) -> None:
    samples = some([*SAMPLES.values()])
    count(len(samples))
    session = nexus.session("shapes", model="gpt-4o")
    for number, sample in enumerate(samples):
        call = ToolCall(f"c{number}", "run", {"command": sample.text, "input": json.dumps({"text": sample.text})})
        result = Message("tool", (ToolResult(call.id, f"Look: {sample.text}"),))
        said = [
            Message("user", f"Look: {sample.text}"),
            Message("assistant", (call,)),
            result,
            Message("assistant", "ok"),
        ]
        session.record(AgentResult(messages=said))
    arguments: dict[str, dict[str, Any]] = {
        "search_history": {"text": "Look", "limit": 50},
        "recall": {"query": "Look", "limit": 50},
        "read_steps": {"limit": 50},
    }

    given = arguments.get(tool, {}) if tool == "recall" else {"session": "shapes", **arguments.get(tool, {})}
    told = json.dumps(asked(nexus, tool, **given))

    assert "[redacted:" in told
    assert [name for name, sample in SAMPLES.items() if any(each in told for each in sample.secrets)] == []


@pytest.mark.acceptance("T10")
def test_neither_a_sentence_nor_an_error_tells_a_client_a_secret(nexus: Nexus, tmp_path: Path) -> None:
    secret = SAMPLES["github-classic"].text
    write_files(tmp_path / "work", {"NEXUS.md": f"Measure twice. {secret}\n"})

    explained, _ = run_tool(nexus, "explain_source", {"query": "Measure twice"})
    failed, is_error = run_tool(nexus, "read_steps", {"session": secret})

    assert is_error
    assert not [text for text in (explained, failed) for part in SAMPLES["github-classic"].secrets if part in text]


def test_tokens_are_counted(nexus: Nexus) -> None:
    told = asked(nexus, "count_tokens", text="Measure twice.")

    assert (told["model"], told["exact"], told["tokens"] > 1) == ("gpt-4o", True, True)


def test_messages_are_checked(nexus: Nexus) -> None:
    messages = [{"role": "user", "content": "Why?"}, {"role": "tool", "tool_call_id": "x", "content": "?"}]

    found = asked(nexus, "check_messages", messages=messages, api="openai")["findings"]

    assert [(each["index"], each["code"]) for each in found] == [(1, "orphan-result")]


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("explain", {}, "did you mean 'explain_source'?"),
        ("explain_source", {}, "'query' is a required property"),
        ("search_history", {"session": "bog", "text": "x"}, "did you mean 'bug'?"),
        ("search_history", {"session": "bug", "text": ""}, "nothing to look for"),
        ("recall", {"query": " "}, "nothing to look for"),
        ("list_sessions", {"after": "bug"}, "'bug' is not a place to continue from"),
        ("list_sessions", {"limit": 51}, "greater than the maximum"),
        ("read_steps", {"session": "bug", "limit": 10_000}, "greater than the maximum"),
        ("read_steps", {"session": "bug", "until": "none"}, "there is no step 'none'"),
        ("assemble_context", {"api": "cobol"}, "unknown dialect 'cobol'"),
        ("check_messages", {"messages": [7]}, "is not of type 'object'"),
    ],
)
def test_what_is_not_acceptable_is_refused_in_words(
    nexus: Nexus, tool: str, arguments: dict[str, object], message: str
) -> None:
    text, failed = run_tool(nexus, tool, arguments)

    assert failed
    assert message in text


def test_the_prompt_and_each_layer_are_resources(nexus: Nexus) -> None:
    assert read_resource_text(nexus, "nexus://prompt") == nexus.system_prompt()
    assert "Measure twice." in read_resource_text(nexus, "nexus://layers/local")


def test_the_official_client_finds_and_uses_everything(nexus: Nexus) -> None:
    async def main() -> tuple[list[str], list[str], str, str]:
        async with Client(build_server(nexus)) as client:
            tools = [tool.name for tool in (await client.list_tools()).tools]
            resources = [str(each.uri) for each in (await client.list_resources()).resources]
            result = await client.call_tool("count_tokens", {"text": "x"})
            prompt = await client.read_resource("nexus://prompt")
            return tools, resources, getattr(result.content[0], "text", ""), getattr(prompt.contents[0], "text", "")

    tools, resources, counted, prompt = anyio.run(main)

    assert tools == [
        "assemble_context",
        "explain_source",
        "list_sessions",
        "search_history",
        "recall",
        "read_steps",
        "count_tokens",
        "check_messages",
    ]
    assert resources == ["nexus://prompt", "nexus://layers/global", "nexus://layers/local"]
    assert json.loads(counted)["tokens"] == 1
    assert "Measure twice." in prompt


@pytest.mark.slow
def test_the_command_serves_over_its_standard_output(tmp_path: Path, nexus_home: Path) -> None:
    work = write_files(tmp_path / "served", {"NEXUS.md": "Measure twice.\n"})
    with Nexus(work) as nexus:
        nexus.session("bug", model="gpt-4o").ask("Why does login fail?")
    environment = {**os.environ, "NEXUS_HOME": str(nexus_home), "PYTHONPATH": f"{ROOT}:{ROOT}/plugins"}
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "nexus_core", "mcp", "serve"], env=environment, cwd=str(work)
    )

    arguments: dict[str, dict[str, Any]] = {
        "assemble_context": {"message": "Why?", "api": "anthropic"},
        "explain_source": {"query": "Measure twice"},
        "list_sessions": {},
        "search_history": {"session": "bug", "text": "login"},
        "recall": {"query": "login"},
        "read_steps": {"session": "bug"},
        "count_tokens": {"text": "Measure twice."},
        "check_messages": {"messages": [{"role": "user", "content": "?"}], "api": "openai"},
    }

    async def main() -> tuple[dict[str, Any], str]:
        async with Client(stdio_client(command)) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == list(arguments)
            results = {name: await client.call_tool(name, given) for name, given in arguments.items()}
            prompt = await client.read_resource("nexus://prompt")
            return results, str(getattr(prompt.contents[0], "text", ""))

    results, prompt = anyio.run(main)

    assert "Measure twice." in prompt
    assert {name for name, result in results.items() if result.is_error} == set()
    assert "Why does login fail?" in results["search_history"].content[0].text
    assert json.loads(results["list_sessions"].content[0].text)["sessions"][0]["session"] == "bug"
