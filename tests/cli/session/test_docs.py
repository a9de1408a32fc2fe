"""The pages about session commands are true."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nexus_core import Nexus
from nexus_core.cli.commands.session.group import SessionGroup
from nexus_core.testing import write_files
from tests.cli.session.conftest import Talk, TypeIn
from tests.conftest import ROOT, Cli, Outcome
from tests.dialects.support import Loopback, listening
from tests.session.support import TOOLS, calls, says

HOW_TO = (ROOT / "docs/how-to/keep-a-session.md").read_text(encoding="utf-8")
MOVING = (ROOT / "docs/how-to/move-to-postgresql.md").read_text(encoding="utf-8")
PLACES = {"home": "~/.nexus3", "server": "postgresql://nexus@db.example.org/nexus"}
REFERENCE = (ROOT / "docs/reference/session-commands.md").read_text(encoding="utf-8")


@pytest.fixture
def loopback() -> Iterator[Loopback]:
    with listening() as heard:
        yield heard


@pytest.mark.slow
@pytest.mark.skipif(not (shutil.which("curl") and shutil.which("jq")), reason="curl and jq are not installed")
def test_the_script_of_the_page_runs_a_whole_loop_and_goes_on_after_a_crash(
    loopback: Loopback, work: Path, nexus_home: Path
) -> None:
    (script,) = re.findall(r"```sh\n(.*?)```", HOW_TO, re.DOTALL)
    (work / "ask.sh").write_text(script)
    (work / "tools.json").write_text(json.dumps(TOOLS))
    (work / "a.py").write_text("print('it expires')\n")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    variables = {"ANTHROPIC_BASE_URL": loopback.url, "ANTHROPIC_API_KEY": "none", "PATH": path}

    def ask(answer: object, *given: str) -> subprocess.CompletedProcess[str]:
        loopback.answer = answer
        command = ["sh", "ask.sh", "auth-bug", *given]
        return subprocess.run(
            command, cwd=work, env={**os.environ, **variables}, capture_output=True, text=True, check=False
        )

    ask({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "Something else?")
    question = ("Why does login fail?", "--discard-open-turn")
    refused = ask({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, *question)
    with Nexus(work, home=nexus_home) as nexus:
        nexus.session("auth-bug").record(calls("a.py", "b.py"))  # as if it had been killed right after this
    done = ask(says("It expires.", name="msg_2"))
    nothing_left = ask(says("Never asked.", name="msg_3"))

    assert refused.returncode == 3
    assert "this is an error of the API: Overloaded" in refused.stderr
    assert (done.returncode, done.stdout) == (0, "It expires.\n"), done.stderr
    assert (nothing_left.returncode, nothing_left.stdout) == (0, "")
    assert nothing_left.stderr.endswith("No turn of auth-bug is open.\n")
    with Nexus(work, home=nexus_home) as nexus:
        steps = nexus.ledger.thread(str(nexus.ledger.session("auth-bug").tip))  # type: ignore[union-attr]
        found = [
            (result.text, result.is_error) for step in steps for each in step.messages for result in each.tool_results
        ]
    given_up = ["input", "sealed", "interrupted"]
    assert [step.kind for step in steps] == [
        "input",
        *given_up,
        "input",
        "sealed",
        "reply",
        "result",
        "result",
        "reply",
    ]
    assert found[0] == ("print('it expires')", False)
    assert "No such file or directory" in found[1][0]
    assert found[1][1]


def follow(commands: list[str], cli: Cli, **places: str) -> list[Outcome]:
    """Do what a page says, with other places than it names; what `nexus` answered."""
    answers = []
    for command in commands:
        for named, place in places.items():
            command = command.replace(PLACES[named], place)  # noqa: PLW2901 - one after the other
        if command.startswith("nexus "):
            answers.append(cli(*shlex.split(command)[1:]))
        else:
            subprocess.run(["/bin/sh", "-c", command], check=True)
    assert [answer.err for answer in answers if answer.code] == []
    return answers


def test_the_commands_of_the_page_get_rid_of_a_secret(
    cli: Cli, talk: Talk, nexus: Nexus, nexus_home: Path, work: Path
) -> None:
    talk("bread", "How much flour?")
    talk("cake", "How much sugar?").fork("cheap-cake")
    talk("auth-bug", "The key of the door is 4711-0815.")
    nexus.ledger.update("cake", status="archived")
    nexus.close()
    section = HOW_TO.partition("## Get rid of a secret")[2]

    answers = follow(re.findall(r"^\$ (.*)$", section, re.MULTILINE), cli, home=str(nexus_home))

    assert "auth-bug" in answers[0].out
    assert {line.split()[0] for line in answers[-1].out.splitlines()[1:]} == {"bread", "cake", "cheap-cake"}
    left = [path for place in (nexus_home, work) for path in place.rglob("*") if path.is_file()]
    assert nexus_home / "ledger.db" in left
    assert not [path for path in left if b"4711-0815" in path.read_bytes()]


def test_the_commands_of_the_page_move_everything_into_another_ledger_and_back(
    cli: Cli, talk: Talk, nexus: Nexus, work: Path
) -> None:
    moves_everything(cli, talk, nexus, f"sqlite:///{work}/server.db")


@pytest.mark.slow
def test_the_commands_of_the_page_move_everything_to_a_server_and_back(
    cli: Cli, talk: Talk, nexus: Nexus, database: str
) -> None:
    moves_everything(cli, talk, nexus, database)


def moves_everything(cli: Cli, talk: Talk, nexus: Nexus, server: str) -> None:
    talk("main", "one", "two").fork("other")
    nexus.close()
    exported = cli("session", "export", "main", "--with-forks").out

    answers = follow("".join(re.findall(r"```sh\n(.*?)```", MOVING, re.DOTALL)).splitlines(), cli, server=server)

    assert {line.split()[0] for line in answers[5].out.splitlines()[1:]} == {"main", "other"}
    assert cli("session", "export", "main", "--with-forks").out == exported
    assert cli("session", "export", "main", "--with-forks", "--ledger", "backup.db").out == exported


def test_every_command_and_every_option_of_record_is_on_the_page() -> None:
    documented = set(re.findall(r"^\| `(\w+)[ `]", REFERENCE, re.MULTILINE))

    assert {*SessionGroup.core, "ledger"} == documented
    for option in (
        "--role",
        "--call",
        "--error",
        "--model",
        "--tools",
        "--mode",
        "--discard-open-turn",
        "--partial",
        "--api",
    ):
        assert f"`{option}" in REFERENCE


def test_the_answer_of_record_has_the_fields_of_the_page(cli: Cli, talk: Talk, type_in: TypeIn) -> None:
    (written,) = re.findall(r"```json\n(.*?)```", REFERENCE, re.DOTALL)
    example = json.loads(written)
    talk("s").ask("Why?")
    type_in(json.dumps(calls("toolu_1", text="I look at it.")))

    answer = json.loads(cli("session", "record", "s", "-", "--json", "--api", "anthropic").out)

    assert shape(answer) == shape(example)


def shape(value: object) -> object:
    """The fields of something, and of what is in it; arguments are anybody's."""
    if isinstance(value, dict):
        return {name: shape(each) for name, each in value.items() if name != "arguments"}
    return [shape(each) for each in value] if isinstance(value, list) else type(value).__name__


@pytest.mark.slow
def test_completion_offers_the_names_of_sessions(talk: Talk, nexus: Nexus, work: Path) -> None:
    talk("auth-bug", "Why?")
    nexus.close()

    def complete(line: str) -> list[str]:
        variables = {"_NEXUS_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
        command = [sys.executable, "-m", "nexus_core"]
        ran = subprocess.run(
            command, cwd=work, env={**os.environ, **variables}, capture_output=True, text=True, check=True
        )
        return ran.stdout.split()

    assert complete("nexus session show au") == ["auth-bug"]
    assert "list" in complete("nexus session li")


PAGE = (ROOT / "docs/how-to/find-out-what-a-model-read.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\| .+ \| `nexus (.+)` \|$", PAGE, re.MULTILINE)
PROGRAM, REPORT = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_page_says_something_and_makes_nothing(
    command: str, cli: Cli, talk: Talk, work: Path, nexus_home: Path
) -> None:
    write_files(work, {"NEXUS.md": "Be brief.\n", "AGENTS.md": "Be kind.\n", "CLAUDE.md": "Be quick.\n"})
    session = talk("auth-bug", "Why?")
    session.ask("And now?")
    step = session.record(says("re And now?", name="msg 2")).id
    before = {path.name for path in nexus_home.iterdir()}

    outcome = cli(*shlex.split(command.replace("STEP", step)))

    assert outcome.code == 0, outcome.err
    assert outcome.out
    assert {path.name for path in nexus_home.iterdir()} == before


def test_the_programs_of_the_page_run(cli: Cli, talk: Talk, nexus: Nexus, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli("session", "list").code == 0
    session = talk("auth-bug", "Why?")
    session.ask("And now?")
    names: dict[str, Any] = {"step": session.record(says("re And now?", name="msg 2"))}
    nexus.close()

    exec(PROGRAM, names)  # noqa: S102 - our own page
    exec(REPORT, names)  # noqa: S102 - as above

    *placed, total, cache = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in placed] == ["static"] * 5 + ["history"] * 5 + ["current"]
    assert re.fullmatch(r"\d+ of 184000", total)
    assert cache.startswith("miss 200 of ")
