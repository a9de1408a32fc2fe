"""`nexus serve` and `nexus rpc` as processes: the file, a second server, signals, kill -9, and output."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from nexus_core import Nexus, UsageError
from nexus_core.cli.commands.rpc import EXAMPLES, list_method_names, read_params
from nexus_core.rpc import Client
from nexus_core.rpc.dispatcher import METHODS, STREAMS
from nexus_core.rpc.server import open_listener
from nexus_core.testing import write_files
from tests.agents.wire import KEY, VARIABLE, streamed, write_settings
from tests.conftest import ROOT, Cli
from tests.plugins.providers.endpoints import Server, serving

pytestmark = pytest.mark.slow


@pytest.fixture
def model(nexus_home: Path) -> Iterator[Server]:
    """A local model server that the user's settings name. It says hello."""
    with serving(streamed("openai", "# Hello\n\nIt is *nice*.")) as running:
        write_settings(nexus_home, running.url, "openai")
        yield running


@contextmanager
def serve(work: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Start `nexus serve` with a free port, and end it if the block has not."""
    command = [sys.executable, "-m", "nexus_core", "serve", "--port", "0", "--json", *arguments]
    environment = {**os.environ, VARIABLE: KEY}
    with subprocess.Popen(
        command, cwd=work, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def read_address(process: subprocess.Popen[str]) -> Any:
    assert process.stdout is not None
    lines: list[str] = []
    while not lines or lines[-1] != "}\n":
        lines.append(process.stdout.readline())
        assert lines[-1], process.stderr and process.stderr.read()
    return json.loads("".join(lines))


def test_server_is_found_and_used_by_the_command(work: Path, model: Server, nexus_home: Path, cli: Cli) -> None:
    with serve(work) as process:
        address = read_address(process)
        path = nexus_home / "server.json"
        assert Path(address["file"]) == path
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert json.loads(path.read_text())["token"] == address["token"]

        created = cli("rpc", "create_agent", "a")
        sent = cli("rpc", "send", "a", "Hi=there")
        events = cli("rpc", "send", "a", "Again.", "--json")
        tokens = cli("rpc", "get_tokens", "agent_id=a", "--json")
        listed = cli("rpc", "list_agents")
        context = cli("rpc", "get_context", '{"agent_id": "a"}')
        wrong = cli("rpc", "get_tokens", "b")
        unknown = cli("rpc", "get_token", "{}")
        second = cli("serve", "--port", "0")
        ended = cli("rpc", "shutdown")
        assert process.wait(60) == 0
        gone = cli("rpc", "list_agents")

    assert "agent_id: a" in created.out
    assert (sent.out, sent.code) == ("# Hello\n\nIt is *nice*.\n", 0)
    assert model.bodies[0]["messages"][-1]["content"].endswith("Hi=there")
    kinds = [json.loads(line)["type"] for line in events.out.splitlines()]
    assert (kinds[0], kinds[-1]) == ("reasoning", "done")
    assert json.loads(tokens.out)["result"]["usage"]["input_tokens"] == 22
    assert "AGENT_ID" in listed.out
    assert "Mode: HTTP JSON-RPC Server" in context.out
    assert (wrong.code, "unknown agent 'b'" in wrong.err) == (2, True)
    assert (unknown.code, "did you mean 'get_tokens'?" in unknown.err) == (2, True)
    assert (second.code, address["url"] in second.err, "nexus rpc shutdown" in second.err) == (2, True, True)
    assert ended.code == 0
    assert (gone.code, "`nexus serve` starts one" in gone.err) == (3, True)
    assert not path.exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_the_turn_and_what_was_said_is_stored(
    work: Path, model: Server, nexus: Nexus, number: signal.Signals
) -> None:
    model.answers[:] = [streamed("openai", "So far. " + "More. " * 2000, pause=0.002)]
    events: list[Any] = []
    with serve(work) as process:
        address = read_address(process)
        with Client(address["url"], address["token"]) as client:
            client.create_agent("a")
            for event in client.send("a", "Go."):
                if event["type"] == "text" and not any(each["type"] == "text" for each in events):
                    process.send_signal(number)
                events.append(event)
        code = process.wait(60)
        errors = process.stderr.read() if process.stderr else ""

    assert (code, errors) == (0, "")
    assert events[-1]["cancelled"]
    assert not nexus.session("a").is_open
    assert any("So f" in each.content for each in nexus.session("a").messages)


def test_killed_server_leaves_a_turn_that_the_next_one_resumes(work: Path, model: Server, nexus_home: Path) -> None:
    model.answers[:] = [streamed("openai", "So far. " + "More. " * 2000, pause=0.002)]
    with serve(work) as process:
        address = read_address(process)
        heard = threading.Event()

        def read_events() -> None:
            with Client(address["url"], address["token"]) as client:
                client.create_agent("a")
                try:
                    for event in client.send("a", "Go."):
                        if event["type"] == "text":
                            heard.set()
                except Exception as error:  # noqa: BLE001 - compared below
                    failures.append(type(error).__name__)

        failures: list[str] = []
        thread = threading.Thread(target=read_events)
        thread.start()
        assert heard.wait(60)
        process.kill()
        process.wait(60)
        thread.join(60)
    assert failures == ["RpcConnectionError"]
    assert (nexus_home / "server.json").exists()

    model.answers[:] = [streamed("openai", "Done.", reply="r2")]
    with serve(work) as process:
        address = read_address(process)
        with Client(address["url"], address["token"]) as client:
            client.create_agent("a")
            *_, done = client.resume("a")
            client.shutdown()
        assert process.wait(60) == 0

    assert done["text"] == "Done."
    assert model.bodies[-1]["messages"][-1]["content"].endswith("Go.")


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl here")
def test_programs_of_the_page_run(
    work: Path, model: Server, cli: Cli, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / "docs/how-to/serve-agents.md").read_text(encoding="utf-8")
    program, _ = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    commands, curl = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    with serve(work) as process:
        address = read_address(process)
        for line in commands.splitlines():
            assert cli(*shlex.split(line)[1:]).code == 0, line
        capsys.readouterr()
        exec(program.replace("claude-sonnet-5", "gpt-4o"), {})  # noqa: S102 - our own page
        printed = capsys.readouterr().out
        monkeypatch.setenv("TOKEN", address["token"])
        given = curl.replace("http://127.0.0.1:8765", address["url"])
        answer = subprocess.run(["/bin/sh", "-c", given], capture_output=True, text=True, check=True).stdout
        cli("rpc", "shutdown")
        assert process.wait(60) == 0

    assert printed == "# Hello\n\nIt is *nice*."
    assert json.loads(answer)["result"]["model"] == "gpt-4o"
    assert len(model.bodies) == 2


def test_the_page_s_example_of_a_permission_question_asks(
    work: Path, model: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / "docs/how-to/serve-agents.md").read_text(encoding="utf-8")
    _, program = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    call = ("nexus_create", {"agent_id": "counter", "task": "Count the files."})
    model.answers[:] = [
        streamed("openai", "", call),
        streamed("openai", "Three files.", reply="r2"),
        streamed("openai", "There are three.", reply="r3"),
    ]
    questions: list[str] = []

    def allow(question: str) -> str:
        questions.append(question)
        return "y"

    monkeypatch.setattr("builtins.input", allow)
    with serve(work) as process:
        read_address(process)
        exec(program, {})  # noqa: S102 - our own page
        with Client() as client:
            client.shutdown()
        assert process.wait(60) == 0

    (question,) = questions
    assert question.startswith("nexus_create {'agent_id': 'counter'")
    assert capsys.readouterr().out == "There are three."


def test_port_in_use_is_a_clear_error(cli: Cli, work: Path) -> None:
    work.mkdir(exist_ok=True)
    with open_listener(0) as listener:
        outcome = cli("serve", "--port", str(listener.getsockname()[1]))

    assert outcome.code == 2
    assert "address already in use" in outcome.err
    assert "--port 0" in outcome.err


def test_help_of_the_command_lists_every_method() -> None:
    listed = EXAMPLES.partition("Methods:")[2].partition("\b")[0]

    assert sorted(re.findall(r"\w+", listed)) == list_method_names()


@pytest.mark.parametrize("command", [["serve"], ["rpc", "list_agents"]])
def test_missing_extra_names_the_install_command(
    cli: Cli, nexus_home: Path, command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(nexus_home, {"server.json": '{"url": "http://127.0.0.1:1", "token": "x"}'})
    for module in ("nexus_core.rpc.client", "nexus_core.cli.commands.serve"):
        monkeypatch.setattr(f"{module}.find_spec", lambda _name: None)
    outcome = cli(*command)

    assert outcome.code == 4
    assert "pip install 'nexusctx[serve]'" in outcome.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["get_tokens", "a", "b"], "get_tokens has no 2 parameters"),
        (["get_messages", "a", "x"], "offset must be a whole number"),
        (["get_messages", '{"limit": NaN}'], "NaN is not JSON"),
        (["get_messages", '{"a": ' + "[" * 30_000], "nested too deeply"),
        (["get_tokens", "{"], "the parameters are not JSON"),
        (["nothing", "a"], "are not known here"),
    ],
)
def test_wrong_parameters_are_refused_before_asking(cli: Cli, arguments: list[str], message: str) -> None:
    outcome = cli("rpc", *arguments)

    assert (outcome.code, message in outcome.err) == (2, True)


def test_rpc_reads_arguments_that_are_not_utf8_and_truth_values() -> None:
    spec = METHODS["answer_permission"]

    assert read_params("send", ["a", "half \udcff"], STREAMS["send"]) == {"agent_id": "a", "message": "half �"}
    assert read_params("answer_permission", ["a", "q.0", "TRUE"], spec)["allow"] is True
    assert read_params("answer_permission", ["a", "q.0", "allow=no"], spec)["allow"] is False
    with pytest.raises(UsageError, match="true or false"):
        read_params("answer_permission", ["a", "q.0", "1"], spec)
