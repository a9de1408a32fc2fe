"""`nexus acp`: an editor of the official package talks to agents of Nexus."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import acp
import pytest
from acp.schema import AllowedOutcome, DeniedOutcome, EnvVariable, McpServerStdio

from nexus_core import Nexus
from nexus_core.testing import write_files
from nexus_plugins.mcp._tools import ToolDefinition, store_catalog
from tests.agents.wire import KEY, VARIABLE, streamed, write_settings
from tests.conftest import Cli
from tests.plugins.mcp.world import define, script, servers_of, survivors
from tests.plugins.providers.endpoints import Answer, Server, serving
from tests.terminal import run_in_terminal

pytestmark = pytest.mark.slow

PIXEL = base64.b64encode(bytes.fromhex("89504e470d0a1a0a")).decode()


class AskedEditor:
    """The editor's side, with the official package. It answers questions with an option."""

    def __init__(self, answer: str = "allow") -> None:
        self.answer = answer
        self.updates: list[Any] = []
        self.asked: list[Any] = []
        self._updated = asyncio.Event()

    def on_connect(self, conn: Any) -> None:
        pass

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:  # noqa: ARG002 - the protocol's
        self.updates.append(update)
        self._updated.set()

    async def request_permission(self, session_id: str, tool_call: Any, options: list[Any], **_: Any) -> Any:  # noqa: ARG002 - as above
        self.asked.append((tool_call, options))
        cancelled = DeniedOutcome(outcome="cancelled")
        selected = AllowedOutcome(outcome="selected", option_id=self.answer)
        return acp.RequestPermissionResponse(outcome=selected if self.answer else cancelled)

    def said(self, kind: str) -> str:
        return "".join(each.content.text for each in self.updates if each.session_update == kind)

    async def hear(self, text: str) -> None:
        """Wait until the agent has said a text."""
        while text not in self.said("agent_message_chunk"):
            self._updated.clear()
            await self._updated.wait()


@pytest.fixture
def server(nexus_home: Path) -> Iterator[Server]:
    """A local server that the user's settings name. It says hello."""
    with serving(streamed("openai", "Hello there.")) as running:
        write_settings(nexus_home, running.url, "openai")
        yield running


def edit(
    work: Path, use: Callable[[Any], Awaitable[Any]], editor: AskedEditor | None = None, *options: str
) -> AskedEditor:
    """Start `nexus acp` as an editor does, and use it."""
    own = editor or AskedEditor()

    async def main() -> None:
        async with acp.spawn_agent_process(
            own,  # type: ignore[arg-type]  # it has what the agent calls
            sys.executable,
            *("-m", "nexus_core", "acp", *options),
            cwd=work,
            env={**os.environ, VARIABLE: KEY},
            use_unstable_protocol=True,
        ) as (agent, process):
            await agent.initialize(protocol_version=acp.PROTOCOL_VERSION)
            await use(agent)
            assert process.stdin is not None
            process.stdin.close()
            assert await process.wait() == 0

    asyncio.run(main())
    return own


async def fails(request: Awaitable[Any]) -> tuple[int, str]:
    """The code and the text of the error with which a request fails."""
    with pytest.raises(acp.RequestError) as caught:
        await request
    return caught.value.code, str(caught.value)


async def ask(agent: Any, session: str, text: str) -> Any:
    return await agent.prompt(prompt=[acp.text_block(text)], session_id=session)


def test_a_prompt_is_answered_in_pieces_and_stored(work: Path, server: Server, nexus: Nexus) -> None:
    names: list[str] = []

    async def use(agent: Any) -> None:
        names.append((await agent.new_session(cwd=str(work), mcp_servers=[])).session_id)
        response = await ask(agent, names[0], "Hi")
        assert (response.stop_reason, response.usage.input_tokens) == ("end_turn", 11)

    editor = edit(work, use)

    assert editor.said("agent_message_chunk") == "Hello there."
    assert len([each for each in editor.updates if each.session_update == "agent_message_chunk"]) > 1
    assert editor.said("agent_thought_chunk") == "Hm."
    assert nexus.session(names[0]).messages[-1].content == "Hello there."
    assert len(server.bodies) == 1


def test_images_and_files_of_a_prompt_reach_the_model(work: Path, server: Server) -> None:
    async def use(agent: Any) -> None:
        session = (await agent.new_session(cwd=str(work), mcp_servers=[])).session_id
        resource = acp.embedded_text_resource("file:///a.py", "x = 1")
        blocks = [acp.text_block("Look:"), acp.image_block(PIXEL, "image/png"), acp.resource_block(resource)]
        await agent.prompt(prompt=blocks, session_id=session)

    edit(work, use)

    sent = json.dumps(server.body["messages"][-1])
    assert PIXEL in sent
    assert "file:///a.py\\nx = 1" in sent


def test_sessions_are_listed_loaded_forked_and_resumed(work: Path, server: Server) -> None:
    async def use(agent: Any) -> None:
        first = (await agent.new_session(cwd=str(work), mcp_servers=[])).session_id
        await ask(agent, first, "My name is Ada.")
        copy = (await agent.fork_session(session_id=first, cwd=str(work))).session_id
        await ask(agent, copy, "In the copy.")
        await agent.resume_session(session_id=first, cwd=str(work))
        await ask(agent, first, "Who am I?")
        listed = (await agent.list_sessions(cwd=str(work))).sessions
        assert {each.session_id for each in listed} == {first, copy}
        assert not (await agent.list_sessions(cwd="/tmp")).sessions  # noqa: S108 - only named
        await agent.close_session(session_id=first)
        await agent.load_session(session_id=first, cwd=str(work), mcp_servers=[])

    editor = edit(work, use)

    resumed = json.dumps(server.bodies[2]["messages"])
    assert "My name is Ada." in resumed
    assert "In the copy." not in resumed
    assert editor.said("user_message_chunk") == "My name is Ada.Who am I?"


def test_fork_that_cannot_be_opened_leaves_no_copy(work: Path, server: Server) -> None:
    async def use(agent: Any) -> None:
        first = (await agent.new_session(cwd=str(work), mcp_servers=[])).session_id
        await ask(agent, first, "My name is Ada.")
        nameless = acp.schema.McpServerStdio(name="", command="x", args=[], env=[])
        await fails(agent.fork_session(session_id=first, cwd=str(work), mcp_servers=[nameless]))
        assert [each.session_id for each in (await agent.list_sessions()).sessions] == [first]

    edit(work, use)

    assert len(server.bodies) == 1


def test_sessions_that_begin_at_the_same_time_are_different(work: Path, server: Server, nexus: Nexus) -> None:
    async def use(agent: Any) -> None:
        servers = [editor_server(nexus.home)]
        begun = await asyncio.gather(*(agent.new_session(cwd=str(work), mcp_servers=servers) for _ in range(3)))
        names = [each.session_id for each in begun]
        assert len(set(names)) == 3
        await ask(agent, names[0], "In the first.")
        await ask(agent, names[1], "In the second.")
        for name in names:
            await agent.close_session(session_id=name)
        assert await asyncio.to_thread(survivors, nexus.home) == []

    edit(work, use)

    assert "In the first." not in json.dumps(server.bodies[1])


def test_a_copy_never_takes_the_name_of_a_new_session(work: Path, server: Server) -> None:
    async def use(agent: Any) -> None:
        first = (await agent.new_session(cwd=str(work), mcp_servers=[])).session_id
        await ask(agent, first, "Hi")
        begun = [agent.new_session(cwd=str(work), mcp_servers=[]) for _ in range(3)]
        copied = [agent.fork_session(session_id=first, cwd=str(work)) for _ in range(3)]
        assert len({each.session_id for each in await asyncio.gather(*begun, *copied)}) == 6

    edit(work, use)

    assert len(server.bodies) == 1


@pytest.mark.parametrize(
    ("answer", "result"),
    [("allow", '["echo", {"a": "1"}]'), ("reject", "did not allow it"), ("", "did not allow it")],
)
def test_the_editor_is_asked_for_permission(
    work: Path, server: Server, nexus: Nexus, *, answer: str, result: str
) -> None:
    define(nexus.home, good=script())
    store_catalog(nexus.home, servers_of(nexus)["good"], [ToolDefinition("echo", "Says it again.", {"type": "object"})])
    called = streamed("openai", "Let me look.", ("mcp__good__echo", {"a": "1"}))
    server.answers[:] = [called, streamed("openai", "I see.", reply="r2")]

    async def use(agent: Any) -> None:
        session = (await agent.new_session(cwd=str(work), mcp_servers=[])).session_id
        await ask(agent, session, "Go.")

    editor = edit(work, use, AskedEditor(answer))

    ((call, options),) = editor.asked
    assert call.raw_input == {"a": "1"}
    assert [each.kind for each in options] == ["allow_once", "allow_always", "reject_once"]
    updates = [each for each in editor.updates if each.session_update in {"tool_call", "tool_call_update"}]
    assert {each.tool_call_id for each in updates} == {call.tool_call_id}
    assert updates[-1].status == ("completed" if answer == "allow" else "failed")
    assert server.bodies[-1]["messages"][-1]["content"].endswith(result)
    assert survivors(nexus.home) == []


def editor_server(home: Path, name: str = "mine", evil: str = "") -> McpServerStdio:
    """An MCP server as an editor passes it."""
    command, *arguments = script(evil)
    return McpServerStdio(
        name=name, command=command, args=arguments, env=[EnvVariable(name="TEST_HOME", value=str(home))]
    )


def list_tools(body: Any) -> list[str]:
    return [each["function"]["name"] for each in body.get("tools", [])]


def test_server_of_the_editor_is_started_and_its_tools_are_offered(work: Path, server: Server, nexus: Nexus) -> None:
    called = streamed("openai", "Let me look.", ("mcp__mine__echo", {"a": "1"}))
    server.answers[:] = [called, streamed("openai", "I see.", reply="r2"), streamed("openai", "None.", reply="r3")]

    async def use(agent: Any) -> None:
        session = (await agent.new_session(cwd=str(work), mcp_servers=[editor_server(nexus.home)])).session_id
        await ask(agent, session, "Go.")
        await agent.close_session(session_id=session)
        assert await asyncio.to_thread(survivors, nexus.home) == []
        other = (await agent.new_session(cwd=str(work), mcp_servers=[])).session_id
        await ask(agent, other, "And now?")

    editor = edit(work, use)

    assert "mcp__mine__echo" in list_tools(server.bodies[0])
    assert "mcp__mine__echo" not in list_tools(server.bodies[2])
    assert len(editor.asked) == 1
    (result,) = [each for each in editor.updates if each.session_update == "tool_call_update"]
    assert (result.status, result.content[0].content.text) == ("completed", '["echo", {"a": "1"}]')


def test_server_of_the_editor_starts_no_other_of_its_name(work: Path, server: Server, nexus: Nexus) -> None:
    write_files(work, {".nexus3/mcp.json": '{"servers": [{"name": "mine", "command": ["touch", "evil"]}]}'})
    define(nexus.home, own=["touch", str(work / "evil")])

    async def use(agent: Any) -> None:
        servers = [editor_server(nexus.home), editor_server(nexus.home, "broken", "sys.exit(3)")]
        session = (await agent.new_session(cwd=str(work), mcp_servers=servers)).session_id
        assert (await ask(agent, session, "Go.")).stop_reason == "end_turn"

    edit(work, use)

    assert list_tools(server.body) == ["update_plan"]
    assert not (work / "evil").exists()
    assert survivors(nexus.home) == []


def test_server_of_the_editor_is_not_started_if_the_user_does_not_want_it(
    work: Path, server: Server, nexus: Nexus
) -> None:
    async def use(agent: Any) -> None:
        session = (await agent.new_session(cwd=str(work), mcp_servers=[editor_server(nexus.home)])).session_id
        await ask(agent, session, "Go.")
        assert await asyncio.to_thread(survivors, nexus.home) == []

    edit(work, use, None, "--no-editor-servers")

    assert list_tools(server.body) == ["update_plan"]


def test_plan_of_the_model_is_shown_by_the_editor(work: Path, server: Server) -> None:
    steps = [
        {"content": "Read", "priority": "high", "status": "completed"},
        {"content": "Write", "priority": "low", "status": "in_progress"},
    ]
    called = streamed("openai", "", ("update_plan", {"steps": steps}))
    server.answers[:] = [called, streamed("openai", "Done.", reply="r2")]

    async def use(agent: Any) -> None:
        session = (await agent.new_session(cwd=str(work), mcp_servers=[])).session_id
        await ask(agent, session, "Go.")

    editor = edit(work, use)

    (plan,) = [each for each in editor.updates if each.session_update == "plan"]
    assert [each.model_dump(exclude_none=True) for each in plan.entries] == steps
    assert not [each for each in editor.updates if each.session_update.startswith("tool_call")]
    assert editor.asked == []


def test_a_turn_is_cancelled_and_what_was_said_is_stored(work: Path, server: Server, nexus: Nexus) -> None:
    server.answers[:] = [streamed("openai", "So far. " + "More. " * 500, pause=0.002)]
    names: list[str] = []
    editor = AskedEditor()

    async def use(agent: Any) -> None:
        names.append((await agent.new_session(cwd=str(work), mcp_servers=[])).session_id)
        turn = asyncio.ensure_future(ask(agent, names[0], "Go."))
        await editor.hear("So far")
        await agent.cancel(session_id=names[0])
        assert (await turn).stop_reason == "cancelled"

    edit(work, use, editor)

    assert nexus.session(names[0]).messages[-1].content.startswith("So far")
    assert not nexus.session(names[0]).is_open


def test_a_turn_can_be_cancelled_after_its_session_is_loaded_again(work: Path, server: Server, nexus: Nexus) -> None:
    server.answers[:] = [streamed("openai", "So far. " + "More. " * 500, pause=0.002)]
    editor = AskedEditor()

    async def use(agent: Any) -> None:
        session = (await agent.new_session(cwd=str(work), mcp_servers=[])).session_id
        turn = asyncio.ensure_future(ask(agent, session, "Go."))
        await editor.hear("So far")
        await agent.load_session(session_id=session, cwd=str(work), mcp_servers=[])
        await agent.resume_session(session_id=session, cwd=str(work))
        other = [editor_server(nexus.home)]
        code, text = await fails(agent.load_session(session_id=session, cwd=str(work), mcp_servers=other))
        assert (code, "cancel it first" in text) == (-32602, True)
        await agent.cancel(session_id=session)
        assert (await turn).stop_reason == "cancelled"
        await agent.load_session(session_id=session, cwd=str(work), mcp_servers=other)

    edit(work, use, editor)

    assert editor.said("user_message_chunk").count("Go.") == 2  # both times that it was loaded


def test_mistakes_and_failures_are_errors_of_the_protocol(work: Path, server: Server) -> None:
    server.answers[:] = [Answer({"error": {"message": "wrong key"}}, status=401), streamed("openai", "Back.")]

    async def use(agent: Any) -> None:
        directory = str(work)
        session = (await agent.new_session(cwd=directory, mcp_servers=[])).session_id
        assert await fails(ask(agent, "nothing", "Hi")) == (-32602, "session 'nothing' is not open")
        assert (await fails(agent.load_session(session_id="nothing", cwd=directory, mcp_servers=[])))[0] == -32602
        assert (await fails(agent.new_session(cwd="relative", mcp_servers=[])))[0] == -32602
        assert (await fails(agent.new_session(cwd="/no/such/directory", mcp_servers=[])))[0] == -32602
        assert (await fails(agent.prompt(prompt=[], session_id=session)))[0] == -32602
        code, text = await fails(ask(agent, session, "Hi"))
        assert code == -32603
        assert "wrong key" in text
        assert (await ask(agent, session, "Hi again")).stop_reason == "end_turn"

    editor = edit(work, use)

    assert editor.said("agent_message_chunk") == "Back."


def test_unusable_servers_and_cursors_are_wrong_requests(work: Path, server: Server, nexus: Nexus) -> None:
    async def use(agent: Any) -> None:
        for names in (["same", "same"], [""]):
            servers = [editor_server(nexus.home, name) for name in names]
            assert (await fails(agent.new_session(cwd=str(work), mcp_servers=servers)))[0] == -32602
        for cursor in ("9" * 5000, "-1", ""):
            assert (await fails(agent.list_sessions(cursor=cursor)))[0] == -32602
        assert (await agent.list_sessions(cursor="100")).sessions == []

    edit(work, use)

    assert server.bodies == []


def test_lines_that_are_no_messages_are_left_out(work: Path) -> None:
    hello = b'{"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": {"protocolVersion": 1}}'
    wrong = [b"[]", b"5", b"null", b'"x"', b"not json", b"\xff", b"[" * 20_000, b"[" + hello + b"]", b'{"id": []}']

    with subprocess.Popen(
        [sys.executable, "-m", "nexus_core", "acp"],
        cwd=work,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"\n".join([*wrong, b"", hello, b""]))
        process.stdin.flush()
        response = json.loads(process.stdout.readline())
        output, problems = process.communicate(b"[]")  # without a line ending

    assert (response["id"], response["result"]["protocolVersion"]) == (7, 1)
    assert (process.returncode, output) == (0, b"")
    assert problems.count(b"is left out") == len(wrong) + 1
    assert b"Traceback" not in problems


def test_a_person_at_a_terminal_is_told_what_to_use(work: Path) -> None:
    screen = run_in_terminal(["acp"], work)

    assert screen.code == 2
    assert "nexus chat talks to you" in screen.text


def test_without_its_extra_it_says_what_to_install(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)

    result = cli("acp")

    assert result.code == 4
    assert "pip install 'nexusctx[acp]'" in result.err
