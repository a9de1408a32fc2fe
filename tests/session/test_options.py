"""What is said about a session counts until something else is said, and there is a way back to what is usual."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from nexus_core.errors import FileError, UnknownNameError, UsageError
from nexus_core.testing import write_files
from nexus_core.values.assembled import AssembledContext
from tests.session.conftest import OpenNexus, OpenSession
from tests.session.support import says

GUIDES = {
    f".nexus3/skills/{name}/SKILL.md": f"---\nname: {name}\ndescription: A guide.\n---\nRead.\n"
    for name in ("logs", "shop")
}


def told_skills(context: AssembledContext) -> set[str]:
    return {name for name in ("logs", "shop") if name in context.system_prompt}


def test_skills_stay_until_others_are_named_and_all_come_back_by_name(open_nexus: OpenNexus, tmp_path: Path) -> None:
    write_files(tmp_path / "work", GUIDES)
    nexus = open_nexus()
    given: list[Any] = [None, ["logs"], None, [], None, "all", None]
    told = []

    for number, skills in enumerate(given):
        session = nexus.session("s", model="gpt-4o", role="worker", task="Read.", skills=skills)
        told.append(told_skills(session.ask("Why?")))
        session.record(says("So.", name=f"msg_{number}"))

    both, logs, none = {"logs", "shop"}, {"logs"}, set[str]()
    assert told == [both, logs, logs, none, none, both, both]


def test_a_worker_may_be_told_of_all_skills_by_that_name(open_session: OpenSession, tmp_path: Path) -> None:
    write_files(tmp_path / "work", GUIDES)

    assert told_skills(open_session().spawn("Read.", skills="all").ask("Begin.")) == {"logs", "shop"}


def test_a_request_without_a_session_may_ask_for_all_skills(open_nexus: OpenNexus, tmp_path: Path) -> None:
    write_files(tmp_path / "work", GUIDES)
    nexus = open_nexus()
    said: dict[str, Any] = {"role": "worker", "task": "Read.", "message": "Why?"}

    assert told_skills(nexus.assemble(nexus.request(**said, skills="all"))) == {"logs", "shop"}
    assert told_skills(nexus.assemble(nexus.request(**said, skills=["shop"]))) == {"shop"}
    with pytest.raises(UsageError, match="remembers which skills") as caught:
        nexus.request(**said, session="s", skills="all")
    assert caught.value.hint == "nexus.session('s', skills=\"all\") takes it back to all"


@pytest.mark.parametrize("said", ["", "logs"])
def test_one_word_in_place_of_skills_is_refused(open_nexus: OpenNexus, said: str) -> None:
    with pytest.raises(UsageError, match="skills must be a list") as caught:
        open_nexus().session("s", skills=said)

    assert caught.value.hint == f'skills=[{said!r}], or skills="all"'


@pytest.mark.parametrize(("tools", "offered"), [(None, ["look"]), ([], []), ((), [])])
def test_a_request_says_nothing_of_tools_or_that_there_are_none(
    open_session: OpenSession, open_nexus: OpenNexus, tools: Any, offered: list[str]
) -> None:
    session = open_session()
    session.ask("Why?")
    session.record(says("So."))
    nexus = open_nexus()

    context = nexus.assemble(nexus.request(session="s", message="And?", tools=tools))

    assert [tool.name for tool in context.tools] == offered
    assert [tool.name for tool in nexus.session("s", tools=tools).preview("And?").tools] == offered


@pytest.mark.parametrize(("permissions", "granted"), [(None, ("write",)), ([], ())])
def test_a_request_says_nothing_of_permissions_or_that_there_are_none(
    open_session: OpenSession, open_nexus: OpenNexus, permissions: Any, granted: tuple[str, ...]
) -> None:
    session = open_session(permissions=["write"])
    session.ask("Why?")
    session.record(says("So."))
    nexus = open_nexus()

    context = nexus.assemble(nexus.request(session="s", message="And?", permissions=permissions))

    assert context.permissions_granted[1:] == granted


def told_mode(context: AssembledContext) -> str:
    return context.system_prompt.rpartition("Mode: ")[2].splitlines()[0]


REPL, SERVER = "Interactive REPL", "HTTP JSON-RPC Server"


@pytest.mark.acceptance("P-08")
def test_a_mode_stays_until_another_is_named_and_an_empty_word_takes_it_back(open_nexus: OpenNexus) -> None:
    given: list[Any] = [None, "server", None, "repl", "server", ""]
    told = []

    for number, mode in enumerate(given):
        session = open_nexus().session("s", model="gpt-4o", mode=mode)
        told.append(told_mode(session.ask("Why?")))
        session.record(says("So.", name=f"msg_{number}"))

    assert told == [REPL, SERVER, SERVER, REPL, SERVER, REPL]


def test_another_mode_begins_a_new_epoch_and_the_usual_one_by_its_name_does_not(open_session: OpenSession) -> None:
    usual = open_session().ask("Why?").epoch

    assert open_session(mode="repl").next().epoch == usual
    assert open_session(mode="server").next().epoch != usual


def test_the_awaited_session_and_a_request_take_a_mode_too(open_nexus: OpenNexus) -> None:
    nexus = open_nexus()
    session = nexus.async_session("s", model="gpt-4o", mode="server")

    assert told_mode(asyncio.run(session.ask("Why?"))) == SERVER
    assert told_mode(nexus.assemble(nexus.request(mode="server", message="Why?"))) == SERVER
    assert told_mode(nexus.assemble(nexus.request(session="s"))) == SERVER


def test_a_worker_and_a_fork_are_driven_as_their_maker_is(open_session: OpenSession) -> None:
    session = open_session(mode="server")
    session.ask("Why?")
    step = session.record(says("So."))

    assert told_mode(session.spawn("Look.").ask("Begin.")) == SERVER
    assert told_mode(session.fork("second").ask("And?")) == SERVER
    assert told_mode(session.replay(step.id)) == SERVER


def test_a_session_of_a_server_goes_on_when_a_file_cannot_be_read(open_session: OpenSession, tmp_path: Path) -> None:
    write_files(tmp_path / "work", {"NEXUS.md": "Be kind.\n"})
    open_session(mode="server").ask("Why?")
    (tmp_path / "work" / "NEXUS.md").unlink()
    (tmp_path / "work" / "NEXUS.md").mkdir()

    assert told_mode(open_session().next()) == SERVER
    with pytest.raises(FileError):
        open_session(mode="repl").next()


def test_an_unknown_mode_is_refused_at_once_with_the_nearest(open_nexus: OpenNexus) -> None:
    with pytest.raises(UnknownNameError, match="unknown mode 'sever'") as caught:
        open_nexus().session("s", mode="sever")  # type: ignore[arg-type] # what is tested

    assert "server" in str(caught.value.hint)
