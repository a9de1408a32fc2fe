"""`nexus chat` at a real terminal: keys, streamed Markdown, commands, permission questions and the status line."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from nexus_core import Nexus
from nexus_core.cli.commands.chat_prompt import fit_status
from nexus_core.testing import write_files
from tests.agents.wire import KEY, VARIABLE, streamed, write_settings
from tests.plugins.mcp.world import define, script, survivors
from tests.plugins.providers.endpoints import Answer, Server, serving
from tests.terminal import TerminalProgram

pytestmark = pytest.mark.slow

CTRL_C, CTRL_D, TAB = "\x03", "\x04", "\t"
ENTER = "\r"


@pytest.fixture
def server(nexus_home: Path) -> Iterator[Server]:
    """A local server that the user's settings name. It says hello."""
    with serving(streamed("openai", "# Hello\n\nIt is *nice*.")) as running:
        write_settings(nexus_home, running.url, "openai")
        yield running


@contextmanager
def open_chat(work: Path, *arguments: str, columns: int = 80, **variables: str) -> Iterator[TerminalProgram]:
    given = {VARIABLE: KEY, **variables}
    with TerminalProgram(["chat", "--session", "s", *arguments], work, columns=columns, variables=given) as program:
        program.wait_for("/help lists the commands.")
        program.wait_for("cost")
        yield program


def send(program: TerminalProgram, text: str) -> None:
    program.type(text + ENTER)


def sent(server: Server) -> Any:
    return server.bodies[-1]["messages"][-1]["content"]


@pytest.mark.parametrize("columns", [80, 200])
@pytest.mark.usefixtures("server")
def test_a_message_is_answered_in_formatted_markdown(work: Path, columns: int) -> None:
    with open_chat(work, columns=columns) as program:
        send(program, "Hi")
        program.wait_for("It is nice.")
        program.wait_for("from the cache")
        status = next(line for line in program.lines if "tokens ·" in line)
        send(program, "/quit")
        code = program.wait()

    assert code == 0
    assert "# Hello" not in program.text
    assert status.startswith(" 0.")
    assert status.rstrip().endswith("% of 128,000 tokens · cost <$0.0001 · 0% from the cache · gpt-4o · s")


def test_a_status_that_does_not_fit_leaves_out_its_last_parts() -> None:
    parts = ("1% of 128,000 tokens", "cost $0.01", "gpt-4o", "会話")

    assert fit_status(parts, 80) == " 1% of 128,000 tokens · cost $0.01 · gpt-4o · 会話"
    assert fit_status(parts, 50) == " 1% of 128,000 tokens · cost $0.01 · gpt-4o"
    assert fit_status(parts, 5) == " 1% of 128,000 tokens"
    assert fit_status((), 80) == ""


@pytest.mark.usefixtures("server")
def test_a_chat_in_a_directory_with_a_long_path_greets(work: Path) -> None:
    deep = work / ("a-long-name-" * 3) / ("another-name-" * 2)
    deep.mkdir(parents=True)

    with open_chat(deep) as program:
        program.type(CTRL_D)

        assert program.wait() == 0


@pytest.mark.usefixtures("server")
def test_the_end_of_input_leaves(work: Path) -> None:
    with open_chat(work) as program:
        program.type(CTRL_D)

        assert program.wait() == 0


def test_ctrl_c_ends_the_turn_and_the_chat_goes_on(work: Path, server: Server, nexus: Nexus) -> None:
    slow = streamed("openai", "So far. " + "More. " * 500, pause=0.002)
    server.answers[:] = [slow, streamed("openai", "Second reply.")]

    with open_chat(work) as program:
        send(program, "Go.")
        program.wait_for("So far.")
        program.type(CTRL_C)
        program.wait_for("(stopped; what was said is stored)")
        send(program, "And now?")
        program.wait_for("Second reply.")
        program.type(CTRL_D)
        program.wait()

    stored = [message.content for message in nexus.session("s").messages]
    assert any(each.startswith("So far.") for each in stored)
    assert not nexus.session("s").is_open


@pytest.mark.usefixtures("server")
def test_ctrl_c_twice_at_the_prompt_leaves(work: Path) -> None:
    with open_chat(work) as program:
        program.type(CTRL_C)
        program.wait_for("Ctrl-C again")
        program.type(CTRL_C)

        assert program.wait() == 130


def test_ctrl_c_discards_what_is_typed_before_it_leaves(work: Path, server: Server) -> None:
    with open_chat(work) as program:
        program.type(CTRL_C)
        program.wait_for("Ctrl-C again")
        program.type("half a thought" + CTRL_C)
        program.wait_for("Ctrl-C again", times=2)
        send(program, "Hi")
        program.wait_for("It is nice.")
        program.type(CTRL_D)

        assert program.wait() == 0
    assert sent(server).endswith("Hi")


def test_several_lines_are_typed_and_pasted_as_one_message(work: Path, server: Server) -> None:
    with open_chat(work) as program:
        program.type(f"one\x1b{ENTER}two\\{ENTER}\x1b[200~three\nfour\x1b[201~")
        program.wait_for("four")
        send(program, "")
        program.wait_for("It is nice.")
        program.type(CTRL_D)
        program.wait()

    assert sent(server).endswith("one\ntwo\nthree\nfour")


def test_an_editor_writes_the_message(work: Path, server: Server, tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nprintf " from the editor" >> "$1"\n')
    editor.chmod(0o755)

    with open_chat(work, EDITOR=str(editor), VISUAL=str(editor)) as program:
        program.type("Text\x18\x05")
        program.wait_for("Text from the editor")
        send(program, "")
        program.wait_for("It is nice.")
        program.type(CTRL_D)
        program.wait()

    assert sent(server).endswith("Text from the editor")


def test_the_history_is_kept_for_the_next_chat_and_is_private(work: Path, server: Server, nexus_home: Path) -> None:
    with open_chat(work) as program:
        send(program, "A long question")
        program.wait_for("It is nice.")
        program.type(CTRL_D)
        program.wait()

    with open_chat(work) as program:
        program.type("\x1b[A")
        program.wait_for("> A long question")
        send(program, "?")
        program.wait_for("It is nice.")
        program.type(CTRL_D)
        program.wait()

    assert sent(server).endswith("A long question?")
    assert stat.S_IMODE(os.stat(nexus_home / "chat_history").st_mode) == 0o600  # noqa: PTH116 - as in the program


@pytest.mark.usefixtures("server")
def test_commands_and_names_are_completed(work: Path) -> None:
    with open_chat(work) as program:
        program.type(f"/expl{TAB}")
        program.wait_for("> /explain")
        program.type(f"\x15/agent man{TAB}")
        program.wait_for("> /agent manager")
        program.type("\x15" + CTRL_D)

        assert program.wait() == 0


@pytest.mark.usefixtures("server")
def test_every_command_can_be_used(work: Path) -> None:
    with open_chat(work, NEXUS_PAGER="cat") as program:
        send(program, "Hi")
        program.wait_for("It is nice.")
        for command, expected in {
            "/help": "Summarize earlier turns",
            "/context": "4 sections of the system prompt",
            "/tokens": "at published prices",
            "/memory": "Nothing found.",
            "/mcp list": "no servers",
            "/model gpt-4.1": "model gpt-4.1",
            "/agent manager": "agent role manager",
            "/session": "TURNS",
            "/fork copy": "session copy, a copy",
            "/session s": "session s",
            "/explain provider.model": "gpt-4o",
            "/compact": "There is nothing to summarize in s.",
            "/undo": "there is nothing to undo",
            "/init": "Next: fill in these files",
            "/show": "It is nice",
        }.items():
            send(program, command)
            program.wait_for(expected)
        send(program, "/quit")  # Ctrl-D would be lost while a command is running

        assert program.wait() == 0


@pytest.mark.usefixtures("server")
def test_mistakes_have_an_error_and_the_chat_goes_on(work: Path) -> None:
    with open_chat(work) as program:
        for command, expected in {
            "/hlp": "/help",
            "/compact": "this session has no message yet",
            "/fork": "a copy needs a name",
            "/tokens 'x": "close the quotes",
            "/explain": "nothing to explain",
            "/explain don't": "don't",
            "/mcp connect": "the name of one server",
            "/mcp connect nothing": "nothing",
            "/session nothing": "no session",
            "/resume": "the last turn was finished",
        }.items():
            send(program, command)
            program.wait_for(expected)
        send(program, "//etc is a directory")
        program.wait_for("It is nice.")
        program.type(CTRL_D)

        assert program.wait() == 0


def test_a_chat_without_a_key_begins_no_session(work: Path, nexus: Nexus) -> None:
    given = {"ANTHROPIC_API_KEY": ""}
    with TerminalProgram(["chat", "--session", "s", "-m", "claude-sonnet-5"], work, variables=given) as program:
        code = program.wait()

    assert code != 0
    assert "ANTHROPIC_API_KEY" in program.text
    assert nexus.ledger.session("s") is None


@pytest.mark.usefixtures("server")
def test_sessions_are_listed_in_one_line_each(work: Path, nexus: Nexus) -> None:
    for label in ("chat-2026-11-18-131956", "b"):
        nexus.session(label, model="claude-sonnet-4-5-20250929").ask("Why?")
    with open_chat(work) as program:
        send(program, "/session")
        program.wait_for("tokens, costs and directories")
        program.type(CTRL_D)
        program.wait()

    listed = [line.split() for line in program.lines if line.endswith("claude-sonnet-4-5-20250929")]
    assert sorted(line[:2] for line in listed) == [["b", "1*"], ["chat-2026-11-18-131956", "1*"]]


def test_an_error_of_the_provider_leaves_a_turn_that_can_be_resumed(work: Path, server: Server) -> None:
    failure = Answer({"error": {"message": "no such model"}}, status=404)
    server.answers[:] = [failure, streamed("openai", "Now it works.")]

    with open_chat(work) as program:
        send(program, "Hi")
        program.wait_for("no such model")
        program.wait_for("/resume sends the call again")
        send(program, "/resume")
        program.wait_for("Now it works.")
        program.type(CTRL_D)

        assert program.wait() == 0


@pytest.mark.parametrize(("key", "result"), [("y", '["echo", {"a": "1"}]'), ("n", "the user did not allow it")])
def test_a_tool_of_a_server_runs_if_the_user_agrees(
    work: Path, server: Server, nexus_home: Path, key: str, result: str
) -> None:
    define(nexus_home, good=script())
    called = streamed("openai", "Let me look.", ("mcp__good__echo", {"a": "1"}))
    server.answers[:] = [called, streamed("openai", "I see.", reply="r2")]

    with open_chat(work) as program:
        send(program, "/mcp connect good")
        program.wait_for("good has 1 tool for the model: mcp__good__echo")
        send(program, "Go.")
        program.wait_for("[a]lways in this chat:")
        asked = program.text
        send(program, key)
        program.wait_for("I see.")
        send(program, "/mcp disconnect good")
        program.wait_for("good is stopped")
        program.type(CTRL_D)
        code = program.wait()

    assert code == 0
    assert '▸ mcp__good__echo(a="1")' in asked
    assert 'mcp__good__echo {"a":"1"}' in asked
    assert server.bodies[-1]["messages"][-1]["content"].endswith(result)
    assert survivors(nexus_home) == []


def test_a_server_that_is_connected_after_a_turn_has_its_tools_in_the_next(
    work: Path, server: Server, nexus_home: Path
) -> None:
    define(nexus_home, good=script())
    server.answers[:] = [streamed("openai", "First."), streamed("openai", "Second.", reply="r2")]

    with open_chat(work) as program:
        send(program, "Hi")
        program.wait_for("First.")
        send(program, "/mcp connect good")
        program.wait_for("good has 1 tool for the model")
        send(program, "Again.")
        program.wait_for("Second.")
        program.type(CTRL_D)
        program.wait()

    assert [len(each.get("tools", ())) for each in server.bodies] == [0, 1]


@pytest.mark.usefixtures("server")
def test_styles_are_left_out_if_no_color_is_wanted(work: Path) -> None:
    with open_chat(work, NO_COLOR="1") as program:
        send(program, "Hi")
        program.wait_for("It is nice.")
        program.type(CTRL_D)
        program.wait()

    assert b"\x1b[31m" not in program.written
    assert b"\x1b[38;" not in program.written


def test_a_project_that_is_not_trusted_starts_nothing(work: Path, server: Server) -> None:
    write_files(work, {".nexus3/mcp.json": '{"servers": [{"name": "evil", "command": ["touch", "evil"]}]}'})

    with open_chat(work) as program:
        send(program, "/mcp connect evil")
        program.wait_for("not approved")
        program.type(CTRL_D)
        program.wait()

    assert not (work / "evil").exists()
    assert not server.bodies
