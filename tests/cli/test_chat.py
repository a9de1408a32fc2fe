"""`nexus chat` for one answer: what it prints, sends and stores."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from nexus_core import Nexus
from nexus_core.testing import write_files
from nexus_plugins.mcp._tools import ToolDefinition, store_catalog
from tests.agents.wire import streamed, write_settings
from tests.cli.conftest import Terminal
from tests.conftest import Cli
from tests.plugins.mcp.world import define, servers_of
from tests.plugins.providers.endpoints import Answer, Server, serving

Pipe = Callable[[str], None]


@pytest.fixture(autouse=True)
def pipe(monkeypatch: pytest.MonkeyPatch) -> Pipe:
    """Standard input is a pipe with this text; an empty one by default."""

    def write(text: str) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode()), encoding="utf-8"))

    write("")
    return write


@pytest.fixture
def server(nexus_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A local server that the user's settings name. It says hello."""
    monkeypatch.setenv("NEXUS_TEST_KEY", "sk-test-0123456789abcdef0123456789abcdef")
    with serving(streamed("openai", "Hello *there*.")) as running:
        write_settings(nexus_home, running.url, "openai")
        yield running


@pytest.mark.usefixtures("server")
def test_a_prompt_is_answered_once_and_only_the_answer_is_printed(cli: Cli) -> None:
    result = cli("chat", "-p", "Hi")

    assert (result.code, result.out, result.err) == (0, "Hello *there*.\n", "")


def test_piped_text_follows_the_prompt(cli: Cli, pipe: Pipe, server: Server) -> None:
    pipe("diff --git a b\n")

    cli("chat", "-p", "Write a commit message.")

    assert server.body["messages"][-1]["content"].endswith("Write a commit message.\n\ndiff --git a b\n")


def test_piped_text_alone_is_the_message(cli: Cli, pipe: Pipe, server: Server) -> None:
    pipe("What is this?")

    assert cli("chat").out == "Hello *there*.\n"
    assert server.body["messages"][-1]["content"].endswith("What is this?")


def test_a_named_session_goes_on_where_it_was(cli: Cli, server: Server) -> None:
    cli("chat", "-p", "My name is Ada.", "--session", "names")
    cli("chat", "-p", "Who am I?", "--session", "names")

    sent = [each["content"] for each in server.bodies[1]["messages"]]
    assert any("My name is Ada." in each for each in sent)
    assert "Hello *there*." in sent


def test_without_a_name_each_chat_is_a_session_of_its_own(cli: Cli, nexus: Nexus, server: Server) -> None:
    cli("chat", "-p", "One.")
    cli("chat", "-p", "Two.")

    assert not any("One." in str(each) for each in server.bodies[1]["messages"])
    assert len([each for each in nexus.ledger.sessions() if each.label.startswith("chat-")]) == 2


def test_control_characters_of_a_reply_cannot_reach_a_terminal(cli: Cli, server: Server) -> None:
    server.answers[:] = [streamed("openai", "a\x1b]0;evil\x07b\u202e")]

    assert cli("chat", "-p", "Hi").out == "a\\x1b]0;evil\\x07b\\u202e\n"


def test_a_provider_that_fails_is_an_error_and_the_next_message_works(cli: Cli, server: Server) -> None:
    server.answers[:] = [Answer({"error": {"message": "wrong key"}}, status=401), streamed("openai", "Back.")]

    failed = cli("chat", "-p", "Hi", "--session", "s")
    again = cli("chat", "-p", "Hi again", "--session", "s")

    assert (failed.code, failed.out) == (5, "")
    assert "wrong key" in failed.err
    assert "`nexus chat --session s` continues" in failed.err
    assert again.out == "Back.\n"


def test_a_model_that_gives_no_reply_does_not_become_that_of_the_session(cli: Cli, server: Server) -> None:
    unknown = Answer({"error": {"message": "no such model"}}, status=404)
    server.answers[:] = [streamed("openai", "One."), unknown, streamed("openai", "Two.", reply="r2")]

    cli("chat", "-p", "Hi", "--session", "s", "--model", "gpt-4.1")
    failed = cli("chat", "-p", "Hi", "--session", "s", "--model", "gpt-typo")
    again = cli("chat", "-p", "Hi again", "--session", "s")

    assert failed.code == 5
    assert again.out == "Two.\n"
    assert [each["model"] for each in server.bodies] == ["gpt-4.1", "gpt-typo", "gpt-4.1"]


def test_a_wrong_model_of_a_first_message_gives_way_to_that_of_the_settings(cli: Cli, server: Server) -> None:
    unknown = Answer({"error": {"message": "no such model"}}, status=404)
    server.answers[:] = [unknown, streamed("openai", "Hello.")]

    cli("chat", "-p", "Hi", "--session", "s", "--model", "gpt-typo")
    again = cli("chat", "-p", "Hi again", "--session", "s")

    assert again.out == "Hello.\n"
    assert [each["model"] for each in server.bodies] == ["gpt-typo", "gpt-4o"]


def test_only_the_final_reply_is_the_answer_where_tools_are_called(
    cli: Cli, nexus_home: Path, nexus: Nexus, server: Server
) -> None:
    define(nexus_home, good=["/no/such/program"])
    definition = ToolDefinition("echo", "Says it again.", {"type": "object"})
    store_catalog(nexus_home, servers_of(nexus)["good"], [definition])
    called = streamed("openai", "Let me look.", ("mcp__good__echo", {}))
    server.answers[:] = [called, streamed("openai", "I may not.", reply="r2")]

    result = cli("chat", "-p", "Go.")

    assert (result.code, result.out) == (0, "I may not.\n")
    assert "was not run: the permission level is 'trusted'" in json.dumps(server.bodies[1]["messages"])


def test_a_reply_that_was_cut_off_has_a_warning(cli: Cli, server: Server) -> None:
    text = streamed("openai", "Hello").body
    assert isinstance(text, bytes)
    cut = text.replace(b'"finish_reason": "stop"', b'"finish_reason": "length"')
    server.answers[:] = [Answer(cut, headers={"Content-Type": "text/event-stream"})]

    result = cli("chat", "-p", "Hi")

    assert (result.code, result.out) == (0, "Hello\n")
    assert "cut off at the output limit" in result.err


@pytest.mark.parametrize(("prompt", "what"), [([], "standard input is empty"), (["-p", " "], "there is nothing")])
def test_nothing_to_answer_is_an_error(cli: Cli, prompt: list[str], what: str) -> None:
    result = cli("chat", *prompt)

    assert result.code == 2
    assert what in result.err


def test_a_chat_needs_a_terminal(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(""))

    result = cli("chat")

    assert result.code == 2
    assert "no terminal to chat on" in result.err
    assert "nexus chat -p" in result.err


def test_a_prompt_without_a_key_begins_no_session(cli: Cli, nexus: Nexus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)

    result = cli("chat", "-p", "Hi", "-m", "claude-sonnet-4-5")

    assert (result.code, result.out) == (5, "")
    assert "the environment variable ANTHROPIC_API_KEY is not set" in result.err
    assert list(nexus.ledger.sessions()) == []


def test_without_a_model_it_says_how_to_set_one(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nexus_core.cli.commands.chat_setup.LOCAL_PORTS", {1: "Nothing"})

    result = cli("chat", "-p", "Hi")

    assert result.code == 2
    assert "no model is configured, and no local server answers" in result.err
    assert "nexus config set --global provider.model" in result.err


def test_without_a_model_it_says_which_extra_is_missing_too(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nexus_core.cli.commands.chat_setup.LOCAL_PORTS", {1: "Nothing"})
    monkeypatch.setattr("nexus_core.cli.commands.chat_setup.find_spec", lambda _name: None)

    result = cli("chat", "-p", "Hi")

    assert "pip install 'nexusctx[chat]'" in result.err


def test_without_a_model_local_servers_that_answer_are_listed(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["llama3.1", "qwen\x1b[31m"]
    with listing(json.dumps({"data": [{"id": name} for name in names]}).encode()) as port:
        monkeypatch.setattr("nexus_core.cli.commands.chat_setup.LOCAL_PORTS", {1: "Nothing", port: "Ollama"})

        result = cli("chat", "-p", "Hi")

    assert f"http://127.0.0.1:{port}/v1 (Ollama): llama3.1, qwen\\x1b[31m" in result.err
    assert "provider.model llama3.1" in result.err


@pytest.mark.parametrize("body", [b"", b"[]", b'{"data": 1}', b'{"data": [{"id": 1}, 2]}', b"[" * 100_000])
def test_a_local_server_that_lists_no_models_is_not_listed(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, body: bytes
) -> None:
    with listing(body) as port:
        monkeypatch.setattr("nexus_core.cli.commands.chat_setup.LOCAL_PORTS", {port: "Ollama"})

        result = cli("chat", "-p", "Hi")

    assert result.code == 2
    assert "no local server answers" in result.err


def test_with_a_model_no_local_server_is_asked(cli: Cli, monkeypatch: pytest.MonkeyPatch, server: Server) -> None:
    def refuse() -> None:
        raise AssertionError("it asked")

    monkeypatch.setattr("nexus_core.cli.commands.chat_setup.find_local_servers", refuse)

    assert cli("chat", "-p", "Hi").code == 0
    assert len(server.bodies) == 1


def test_a_project_cannot_choose_the_model_of_a_chat(cli: Cli, work: Path, nexus_home: Path) -> None:
    write_files(nexus_home, {"config.json": "{}"})
    write_files(work, {".nexus3/config.json": '{"provider": {"model": "gpt-4o"}}'})

    result = cli("chat", "-p", "Hi")

    assert result.code == 2
    assert "would decide where this conversation is sent" in result.err


def test_without_its_extra_the_prompt_says_what_to_install(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, server: Server
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(""))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)

    result = cli("chat")

    assert result.code == 4
    assert "pip install 'nexusctx[chat]'" in result.err
    assert not server.bodies


class listing:  # noqa: N801 - reads as a statement
    """A server at a port of this machine that answers every request with this body."""

    def __init__(self, body: bytes) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})

    def __enter__(self) -> int:
        self._thread.start()
        return self._server.server_port

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
