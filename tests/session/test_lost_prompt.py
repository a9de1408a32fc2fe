"""A session whose system prompt is gone from the ledger goes on with a new one, and says so."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from nexus_core import Nexus
from tests.conftest import Cli

TOOLS = [{"type": "function", "function": {"name": "add", "description": "Adds.", "parameters": {"type": "object"}}}]


def reply(text: str) -> dict[str, object]:
    message = {"role": "assistant", "content": text}
    return {"object": "chat.completion", "choices": [{"index": 0, "finish_reason": "stop", "message": message}]}


@pytest.fixture
def lost(cli: Cli, nexus_home: Path, work: Path) -> str:  # noqa: ARG001 - the directory of the command
    """A reply in a session all of whose blobs were deleted."""
    with Nexus(work, home=nexus_home) as nexus:
        session = nexus.session("main", model="gpt-4o", tools=TOOLS)
        session.ask("one")
        step = session.record(reply("first"))
    with closing(sqlite3.connect(nexus_home / "ledger.db")) as connection, connection:
        connection.execute("delete from blobs")
    return step.id


@pytest.mark.acceptance("R8")
def test_a_session_without_its_prompt_goes_on_with_a_new_one(lost: str, nexus_home: Path, work: Path) -> None:
    (work / "AGENTS.md").write_text("Rules that are new.\n", encoding="utf-8")
    with Nexus(work, home=nexus_home) as nexus:
        session = nexus.session("main", tools=TOOLS)
        context = session.ask("two")
        session.record(reply("second"))
        later = session.ask("three")
        gone = {each.message.split()[1] for each in nexus.ledger.verify() if each.code == "blob-missing"}
        replayed = nexus.replay(str(nexus.ledger.session("main").tip))  # type: ignore[union-attr]

    assert lost
    assert [each.code for each in context.findings] == ["prompt-gone"]
    assert [each.code for each in later.findings] == []
    assert "first" in [message.content for message in context.messages]
    assert [tool.name for tool in context.tools] == ["add"]
    assert len(gone) == 2  # the first prompt and its sections; the settings are the same, and so they are back
    assert (replayed.messages, replayed.tools) == (later.messages, later.tools)


@pytest.mark.acceptance("R8")
def test_a_prompt_that_is_the_same_as_before_is_back_with_the_next_question(
    cli: Cli, lost: str, nexus_home: Path, work: Path
) -> None:
    with Nexus(work, home=nexus_home) as nexus:
        findings = nexus.session("main", tools=TOOLS).ask("two").findings

    assert [each.code for each in findings] == ["prompt-gone"]
    assert cli("ledger", "verify").code == 0
    assert cli("session", "replay", lost).code == 0


@pytest.mark.acceptance("R8")
def test_a_call_whose_prompt_is_gone_says_which_blob_and_that_it_stays_gone(cli: Cli, lost: str) -> None:
    outcome = cli("session", "replay", lost)

    assert outcome.code == 3
    assert "the system prompt, with the tools, of this call is gone: there is no blob " in outcome.err
    assert "no command brings it back" in outcome.err


@pytest.mark.acceptance("R8")
def test_other_commands_work_where_the_prompt_is_gone(cli: Cli, lost: str) -> None:
    for command in (("show", "main"), ("stats", "main"), ("list",), ("tree",)):
        assert cli("session", *command).code == 0, command
    assembled = cli("assemble", "two", "--session", "main")
    exported = cli("session", "export", "main")

    assert lost
    assert assembled.code == 0
    assert "it goes on with new ones" in assembled.err
    assert exported.code == 3
    assert "there is no blob" in exported.err
