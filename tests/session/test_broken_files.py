"""A conversation goes on when files around it cannot be read any more, with all that counted before."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from nexus_core.errors import ConfigError, FileError
from nexus_core.ledger.ledger import StoreLedger
from nexus_core.testing import write_files
from tests.session.conftest import OpenNexus, OpenSession
from tests.session.support import TOOLS, calls, kinds_of, says
from tests.session.test_replay import neutral

pytestmark = pytest.mark.usefixtures("no_session_start")

Break = Callable[[Path], None]


def become_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def become_circle(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


def become_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


BREAKS = [
    pytest.param("NEXUS.md", become_directory, id="a directory"),
    pytest.param("NEXUS.md", become_pipe, id="a pipe"),
    pytest.param("AGENTS.md", become_circle, id="a circle of links"),
    pytest.param("AGENTS.md", lambda path: path.write_bytes(b"\xff\xfe\xe9"), id="no UTF-8"),
    pytest.param("NEXUS.md", lambda path: os.truncate(path, 1 << 30), id="a file of a gigabyte"),
    pytest.param(".nexus3/config.json", lambda path: path.write_bytes(b'{"provider": '), id="broken settings"),
]


@pytest.fixture
def place(tmp_path: Path, open_nexus: OpenNexus) -> Path:  # noqa: ARG001 - it makes the directory
    """A project with instructions, rules and settings."""
    settings = (
        '{"permissions": {"level": "sandboxed", "tools": {"deny": ["bash"]}}, "budget": {"reserve_response": 700}}'
    )
    files = {"NEXUS.md": "Be brief.\n", "AGENTS.md": "Rules.\n", ".nexus3/config.json": settings}
    write_files(tmp_path / "work", files)
    return tmp_path / "work"


@pytest.mark.parametrize(("name", "break_"), BREAKS)
def test_an_open_turn_goes_on_with_the_same_bytes(
    open_session: OpenSession, ledger: StoreLedger, place: Path, name: str, break_: Break
) -> None:
    session = open_session()
    sent = session.ask("Why?")
    break_(place / name)

    again = session.next()

    assert neutral(again) == neutral(sent)
    assert again.to("anthropic") == sent.to("anthropic")
    assert [finding.code for finding in again.findings] == ["unread-files"]
    assert kinds_of(ledger, "s") == ["input", "input", "sealed"]


@pytest.mark.parametrize(("name", "break_"), BREAKS)
def test_the_next_turn_has_the_prompt_and_the_permissions_from_before(
    open_session: OpenSession, place: Path, name: str, break_: Break
) -> None:
    session = open_session(tools=[*TOOLS, {"name": "bash", "input_schema": {"type": "object"}}])
    before = session.ask("Why?")
    session.record(says("Because."))
    break_(place / name)

    context = session.ask("And?")

    assert (context.system_prompt, context.tools) == (before.system_prompt, before.tools)
    assert context.permissions_granted == ("sandboxed",)
    assert [tool.name for tool in context.tools] == ["look"]
    assert "Changed Instructions" not in str(context.current_message)
    assert [finding.code for finding in context.findings] == ["unread-files"]


@pytest.mark.parametrize(("name", "break_"), BREAKS[:5])
def test_another_program_goes_on_with_what_is_kept(
    open_session: OpenSession, ledger: StoreLedger, place: Path, name: str, break_: Break
) -> None:
    session = open_session(renderer="tagged" if name == "NEXUS.md" else "labelled", permissions=["read"])
    session.ask("Why?")
    step = session.record(calls("t1"))
    write_files(place, {"CLAUDE.md": "New.\n"})  # told to nobody yet
    session.record(step.tool_calls[0].result("found"))
    sent = session.next()
    break_(place / name)

    other = open_session(tools=None, model=None)
    again = other.next()
    other.record(says("Because.", name="msg_2"))
    context = other.ask("And?")

    assert neutral(again) == neutral(sent)
    assert again.to("anthropic") == sent.to("anthropic")
    assert (context.system_prompt, context.tools) == (sent.system_prompt, sent.tools)
    assert context.permissions_granted == sent.permissions_granted == ("sandboxed", "read")
    assert context.token_budget.reserve_response == 700
    assert [finding.code for finding in context.findings] == ["unread-files"]
    assert kinds_of(ledger, "s")[-2:] == ["input", "sealed"]


def test_what_was_forbidden_last_stays_forbidden(open_session: OpenSession, place: Path) -> None:
    session = open_session()
    session.ask("Why?")
    session.record(says("Because."))
    write_files(place, {".nexus3/config.json": '{"permissions": {"tools": {"deny": ["look"]}}}'})
    session.preview("And?")  # it is seen, and nothing is written
    become_directory(place / "NEXUS.md")

    assert session.ask("And?").tools == ()


def test_the_file_counts_again_when_it_is_mended(open_session: OpenSession, place: Path) -> None:
    session = open_session()
    session.ask("Why?")
    session.record(says("Because."))
    become_directory(place / "NEXUS.md")
    session.ask("And?")
    session.record(says("So.", name="msg_2"))
    (place / "NEXUS.md").rmdir()
    write_files(place, {"NEXUS.md": "Be verbose.\n"})

    context = session.ask("Well?")

    assert context.findings == ()
    assert "+Be verbose." in str(context.current_message.content if context.current_message else "")


def test_a_new_session_does_not_begin_without_its_files(open_session: OpenSession, place: Path) -> None:
    open_session().ask("Why?")
    become_directory(place / "NEXUS.md")

    with pytest.raises(FileError, match="not a regular file"):
        open_session("another").ask("Why?")


def test_reloading_needs_files_that_can_be_read(open_session: OpenSession, place: Path) -> None:
    session = open_session()
    session.ask("Why?")
    session.record(says("Because."))
    (place / ".nexus3/config.json").write_text("{", encoding="utf-8")
    session.reload()

    with pytest.raises(ConfigError):
        session.ask("And?")


@pytest.mark.parametrize("wanted", [{"role": "manager"}, {"permissions": ["write"]}, {"tools": []}, {"skills": ["x"]}])
def test_another_program_that_wants_something_else_needs_the_files(
    open_session: OpenSession, place: Path, wanted: dict[str, object]
) -> None:
    session = open_session(permissions=["read"])
    session.ask("Why?")
    session.record(says("Because."))
    become_directory(place / "NEXUS.md")

    with pytest.raises(FileError, match="not a regular file"):
        open_session(**wanted).ask("And?")
