"""What is said about a session counts until something else is said, and there is a way back to what is usual."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nexus_core.errors import UsageError
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
