"""`nexus session import` without a file, and `--watch`."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nexus_core.cli.commands.session.import_menu import watch_files
from nexus_core.errors import FileError
from nexus_core.host.manager import get_installed_host
from nexus_core.transcripts.read import load_formats
from tests.conftest import Cli
from tests.terminal import run_in_terminal
from tests.transcripts.support import AGENTS, SAMPLES, write_opencode_tree


@pytest.fixture(autouse=True)
def user_home(tmp_path: Path, nexus_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The sessions of a made-up user: two of Copilot CLI, one of Claude Code with a subagent."""
    del nexus_home  # it sets variables of its own
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "PI_CODING_AGENT_DIR", "GEMINI_CLI_HOME", "HERMES_HOME"):
        monkeypatch.delenv(name, raising=False)
    home = tmp_path / "user"
    monkeypatch.setenv("HOME", str(home))
    for name in ("one", "two"):
        folder = home / ".copilot/session-state" / name
        folder.mkdir(parents=True)
        text = (AGENTS / "copilot.jsonl").read_text(encoding="utf-8")
        (folder / "events.jsonl").write_text(text.replace("b1f2c3d4", f"{name}00000"[:8]), encoding="utf-8")
    claude = home / ".claude/projects/-srv-bakery"
    (claude / "s/subagents").mkdir(parents=True)
    shutil.copy(SAMPLES / "claude.jsonl", claude / "s.jsonl")
    shutil.copy(SAMPLES / "claude.jsonl", claude / "s/subagents/agent-1.jsonl")
    return home


def test_without_a_file_sessions_are_listed_by_agent_and_directory(cli: Cli) -> None:
    outcome = cli("session", "import")

    assert outcome.code == 0
    rows = [row.split() for row in outcome.out.splitlines()]
    assert sorted((*row[1:4], row[-1]) for row in rows[1:]) == [
        ("Claude", "Code", "2", "/srv/bakery"),
        ("Copilot", "CLI", "2", "/srv/bakery"),
    ]
    assert "--from AGENT" in outcome.err


def test_the_list_has_its_files_for_programs(cli: Cli, user_home: Path) -> None:
    found = json.loads(cli("session", "import", "--json").out)

    groups = {group["program"]: group for group in found["groups"]}
    assert sorted(groups) == ["claude", "copilot"]
    assert groups["copilot"]["directory"] == "/srv/bakery"
    assert [Path(each).name for each in groups["claude"]["files"]] == ["s.jsonl", "agent-1.jsonl"]
    assert sorted(groups["copilot"]["files"]) == [
        str(user_home / f".copilot/session-state/{name}/events.jsonl") for name in ("one", "two")
    ]


def test_where_there_is_nothing_the_command_says_so(cli: Cli, user_home: Path) -> None:
    shutil.rmtree(user_home)

    outcome = cli("session", "import")

    assert (outcome.code, outcome.out) == (0, "")
    assert "No sessions of other agents were found" in outcome.err


def test_sessions_of_a_plugins_program_are_found_by_their_directory(cli: Cli, work: Path, user_home: Path) -> None:
    file = user_home / ".copilot/session-state/one/events.jsonl"
    file.write_text(file.read_text(encoding="utf-8").replace("/srv/bakery", str(work)), encoding="utf-8")

    found = json.loads(cli("session", "import", "--from", "copilot", "--list", "--json").out)
    imported = json.loads(cli("session", "import", "--from", "copilot", "--json").out)

    assert [each["file"] for each in found["files"]] == [str(file)]
    assert [each["format"] for each in imported["files"]] == ["copilot"]


@pytest.mark.slow
def test_what_is_chosen_at_a_terminal_is_imported(work: Path) -> None:
    screen = run_in_terminal(["session", "import", "--ledger", "new.db"], work, keys={"Which ones?": "9\na\n"})

    assert screen.text.count("Which ones?") == 2
    assert "copilot-one00000" in screen.text


@pytest.mark.slow
def test_numbers_have_commas_or_spaces_between_and_a_refused_answer_has_a_reason(work: Path) -> None:
    screen = run_in_terminal(["session", "import", "--ledger", "new.db"], work, keys={"Which ones?": "1,20\n1, 2\n"})

    assert "'20' is not a number from 1 to 2." in screen.text
    assert screen.text.count("Which ones?") == 2
    assert "copilot-one00000" in screen.text


Grow = Callable[[], None]


def watch(names: Sequence[str], cwd: Path, import_names: Callable[[Sequence[str]], None], *steps: Grow) -> list[str]:
    """Watch files; each step happens while it waits, and Ctrl-C after the last."""
    printed: list[str] = []
    left = list(steps)

    def wait() -> None:
        if not left:
            raise KeyboardInterrupt
        left.pop(0)()

    cli: Any = SimpleNamespace(cwd=cwd, console=SimpleNamespace(message=printed.append, error=printed.append))
    watch_files(cli, lambda: names, import_names, load_formats(get_installed_host()), wait)
    return printed


def test_a_watched_file_is_imported_again_when_it_grows(tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    file.write_text("one\n", encoding="utf-8")
    imported: list[str] = []

    def grow() -> None:
        with file.open("a", encoding="utf-8") as log:
            log.write("two\n")

    printed = watch(
        ["log.jsonl", "missing.jsonl"],
        tmp_path,
        lambda names: imported.append(f"{names[0]}: {file.read_text(encoding='utf-8')}"),
        lambda: None,
        grow,
        lambda: None,
    )

    assert imported == ["log.jsonl: one\n", "log.jsonl: one\ntwo\n"]
    assert printed == ["Stopped watching."]


def test_a_watched_file_that_cannot_be_read_is_reported_and_tried_again(tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    file.write_text("", encoding="utf-8")

    def refuse(_names: Sequence[str]) -> None:
        raise FileError("the transcript is empty", where="log.jsonl")

    def grow() -> None:
        file.write_text("more", encoding="utf-8")

    printed = watch(["log.jsonl"], tmp_path, refuse, grow)

    assert ["empty" in each for each in printed] == [True, True, False]


def test_a_watched_session_of_opencode_is_imported_again_when_a_part_of_a_message_grows(tmp_path: Path) -> None:
    session = write_opencode_tree(tmp_path)
    part = next((tmp_path / "storage/part").glob("*/000.json"))
    imported: list[str] = []

    def add_part() -> None:
        part.with_name("zzz.json").write_text('{"id": "zzz", "type": "text", "text": "more"}', encoding="utf-8")

    def change_part() -> None:
        part.write_text('{"id": "a", "type": "text", "text": "another text, which is longer"}', encoding="utf-8")

    watch([str(session)], tmp_path, imported.extend, lambda: None, add_part, lambda: None, change_part, part.unlink)

    assert imported == [str(session)] * 4


def test_a_watched_session_of_opencode_whose_files_are_not_named_by_their_ids_is_followed(tmp_path: Path) -> None:
    session = write_opencode_tree(tmp_path)
    part = next((tmp_path / "storage/part").glob("*/000.json"))
    message = tmp_path / f"storage/message/ses_1/{part.parent.name}.json"
    message.rename(message.with_name("renamed.json"))
    session = session.rename(session.with_name("named-otherwise.json"))
    imported: list[str] = []

    watch([str(session)], tmp_path, imported.extend, lambda: None, part.unlink, lambda: None)

    assert imported == [str(session)] * 2


def test_a_watched_conversation_of_openhands_is_imported_again_when_an_event_is_added(tmp_path: Path) -> None:
    state = tmp_path / "base_state.json"
    state.write_text('{"id": "one"}', encoding="utf-8")
    (tmp_path / "events").mkdir()
    imported: list[str] = []

    def add_event() -> None:
        (tmp_path / "events/event-00000.json").write_text("{}", encoding="utf-8")

    watch([str(state)], tmp_path, imported.extend, lambda: None, add_event, lambda: None)

    assert imported == [str(state)] * 2
