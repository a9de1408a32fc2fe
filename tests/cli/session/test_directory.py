"""A session works in one directory, and every command that is about it reads what lies there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nexus_core import Nexus
from nexus_core.testing import write_files
from tests.cli.session.conftest import Talk, TypeIn
from tests.conftest import Cli


@pytest.fixture
def elsewhere(
    work: Path,
    tmp_path: Path,
    talk: Talk,
    cli: Cli,  # noqa: ARG001 - it changes the directory first
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    """Another directory, in which commands run; the session `auth-bug` works in the first one."""
    there = tmp_path / "elsewhere"
    write_files(there, {"NEXUS.md": "Rules of elsewhere."})
    write_files(work, {"NEXUS.md": "Rules of work."})
    talk("auth-bug", "Why?")
    write_files(work, {"NEXUS.md": "Rules of work, changed."})
    monkeypatch.chdir(there)
    return there


@pytest.mark.acceptance("S-01")
def test_what_a_session_would_send_is_put_together_in_its_own_directory(cli: Cli, work: Path, elsewhere: Path) -> None:
    outcome = cli("assemble", "And now?", "--session", "auth-bug")

    assert "Rules of work, changed." in outcome.out
    assert "Rules of elsewhere." not in outcome.out
    assert f"(session 'auth-bug' works in {work}: that is read)" in outcome.err
    assert str(elsewhere) not in outcome.out


@pytest.mark.parametrize(
    "command",
    [
        ("context", "--session", "auth-bug"),
        ("explain", "Rules", "--session", "auth-bug"),
        ("diff", "session:auth-bug", "session:auth-bug"),
        ("session", "compact", "auth-bug", "--dry-run"),
        ("session", "record", "auth-bug"),
    ],
)
@pytest.mark.usefixtures("elsewhere")
def test_every_command_about_a_session_says_that_it_reads_the_session_s_own_directory(
    cli: Cli, work: Path, command: tuple[str, ...]
) -> None:
    outcome = cli(*command)

    assert f"(session 'auth-bug' works in {work}: that is read)" in outcome.err


def test_in_the_session_s_own_directory_there_is_nothing_to_say(cli: Cli, talk: Talk) -> None:
    talk("auth-bug", "Why?")

    assert "works in" not in cli("assemble", "--session", "auth-bug").err


@pytest.mark.usefixtures("elsewhere")
def test_a_message_that_is_recorded_from_elsewhere_leaves_the_session_where_it_works(
    cli: Cli, work: Path, type_in: TypeIn
) -> None:
    type_in("And now?")

    cli("session", "record", "auth-bug", "-", "--role", "user")

    [listed] = json.loads(cli("session", "list", "--json").out)["sessions"]
    assert listed["directory"] == str(work)
    assert "+Rules of work, changed." in cli("session", "show", "auth-bug", "--full", "--json").out.replace("\\n", "\n")


def test_files_that_are_named_are_those_of_the_current_directory(cli: Cli, elsewhere: Path) -> None:
    write_files(elsewhere, {"tools.json": '[{"name": "dig", "description": "Dig.", "input_schema": {}}]'})

    outcome = cli("assemble", "Dig!", "--session", "auth-bug", "--tools", "tools.json")

    assert "dig(): Dig." in outcome.out


def test_a_directory_that_is_named_goes_before_the_session_s_own(cli: Cli, elsewhere: Path) -> None:
    outcome = cli("-C", str(elsewhere), "assemble", "And now?", "--session", "auth-bug")

    assert "Rules of elsewhere." in outcome.out
    assert "that is read" not in outcome.err


def test_a_session_goes_on_in_the_directory_that_is_named(cli: Cli, elsewhere: Path, type_in: TypeIn) -> None:
    type_in("And now?")

    cli("-C", str(elsewhere), "session", "record", "auth-bug", "-", "--role", "user")

    [listed] = json.loads(cli("session", "list", "--json").out)["sessions"]
    assert listed["directory"] == str(elsewhere)


@pytest.mark.parametrize(("options", "is_told"), [((), True), (("--any-directory",), False)])
def test_session_that_is_taken_elsewhere_is_announced_unless_that_is_allowed(
    cli: Cli, work: Path, elsewhere: Path, type_in: TypeIn, *, options: tuple[str, ...], is_told: bool
) -> None:
    type_in("And now?")

    outcome = cli("-C", str(elsewhere), "session", "record", "auth-bug", "-", "--role", "user", *options)

    what = f"Warning: session 'auth-bug' was last used in {work}, and what was said there goes along to {elsewhere};"
    assert outcome.code == 0
    assert (what in outcome.err) is is_told


def test_where_its_directory_is_gone_the_current_one_is_read_with_a_warning(
    cli: Cli, work: Path, elsewhere: Path
) -> None:
    work.rename(work.with_name("moved"))

    outcome = cli("assemble", "And now?", "--session", "auth-bug")

    assert "Rules of elsewhere." in outcome.out
    assert f"works in {work}, which is not there; {elsewhere} is read instead" in outcome.err


@pytest.mark.slow
@pytest.mark.usefixtures("elsewhere")
def test_a_session_that_is_checked_from_elsewhere_is_made_again_where_it_works(cli: Cli) -> None:
    outcome = cli("diff", "--check", "auth-bug")

    assert outcome.code == 0, outcome.out
    assert "They are the same." in outcome.out


def test_a_program_in_another_directory_takes_the_session_there(elsewhere: Path, nexus_home: Path, cli: Cli) -> None:
    with Nexus(elsewhere, home=nexus_home) as nexus:
        nexus.session("auth-bug", any_directory=True).ask("And now?")

    [listed] = json.loads(cli("session", "list", "--json").out)["sessions"]
    assert listed["directory"] == str(elsewhere)


@pytest.mark.usefixtures("elsewhere")
def test_what_reads_no_file_does_not_move_a_session(cli: Cli, work: Path) -> None:
    cli("session", "record", "auth-bug", "--discard-open-turn")
    cli("session", "archive", "auth-bug")

    [listed] = json.loads(cli("session", "list", "--include-archived", "--json").out)["sessions"]
    assert listed["directory"] == str(work)
