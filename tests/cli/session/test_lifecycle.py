"""`nexus session fork`, `rename` and `archive`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nexus_core import Nexus
from tests.cli.conftest import Answer
from tests.cli.session.conftest import Talk
from tests.conftest import Cli, InstallPlugin
from tests.session.support import calls, says


def heads(nexus: Nexus) -> dict[str, str | None]:
    return {record.label: record.head for record in nexus.ledger.sessions(status=None)}


def said_in(nexus: Nexus, label: str) -> list[str]:
    """What was said, without what is put around it when it is sent."""
    tip = nexus.ledger.session(label).tip  # type: ignore[union-attr]
    steps = nexus.ledger.thread(str(tip))
    return [message.content for step in steps if step.kind != "sealed" for message in step.messages]


# ---- fork -----------------------------------------------------------------------------------------------------------


@pytest.mark.acceptance("H-08")
def test_a_fork_begins_at_the_last_closed_turn_and_goes_its_own_way(cli: Cli, talk: Talk, nexus: Nexus) -> None:
    session = talk("main", "one", "two")
    session.ask("open")

    outcome = cli("session", "fork", "main", "fork")
    talk("fork", "three")

    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.err == f"Forked main as fork, after step {heads(nexus)['main']}.\n"
    assert said_in(nexus, "fork") == ["one", "re one", "two", "re two", "three", "re three"]
    assert said_in(nexus, "main") == ["one", "re one", "two", "re two", "open"]


def test_a_fork_has_model_tools_and_epoch_of_the_session(cli: Cli, talk: Talk, nexus: Nexus) -> None:
    talk("main", "one")
    cli("session", "fork", "main", "fork")

    context = nexus.session("fork").ask("two")

    assert (context.model, [tool.name for tool in context.tools]) == ("claude-sonnet-4", ["look"])


def test_a_fork_begins_at_any_closed_turn(cli: Cli, talk: Talk, nexus: Nexus) -> None:
    talk("main", "one", "two", "three")
    steps = nexus.ledger.thread(str(heads(nexus)["main"]))
    ends = [step for step in steps if step.closes]

    by_turn = cli("session", "fork", "main", "a", "--at", ends[0].turn)
    by_step = cli("session", "fork", "main", "b", "--at", ends[1].id)

    assert (by_turn.code, by_step.code) == (0, 0)
    assert (heads(nexus)["a"], heads(nexus)["b"]) == (ends[0].id, ends[1].id)


def test_a_step_inside_a_turn_is_refused_with_the_turn_it_is_of(cli: Cli, talk: Talk, nexus: Nexus) -> None:
    session = talk("main")
    session.ask("one")
    inside = session.record(calls("t1"))
    session.record(inside.tool_calls[0].result("x"))
    end = session.record(says("done", name="msg_2"))

    outcome = cli("session", "fork", "main", "fork", "--at", inside.id)

    assert outcome.code == 3
    assert f"step {inside.id} is inside a turn" in outcome.err
    assert f"its turn is {inside.turn}, which ended with {end.id}" in outcome.err
    assert list(heads(nexus)) == ["main"]


def test_a_turn_that_is_open_is_refused_with_the_last_that_is_not(cli: Cli, talk: Talk, nexus: Nexus) -> None:
    session = talk("main", "one")
    session.ask("two")
    turn = nexus.ledger.session("main").open_turn  # type: ignore[union-attr]

    outcome = cli("session", "fork", "main", "fork", "--at", str(turn))

    assert outcome.code == 3
    assert f"turn {turn} is still open\n  the last that is closed ended with step {heads(nexus)['main']}" in outcome.err


def test_a_turn_of_another_session_is_refused(cli: Cli, talk: Talk, nexus: Nexus) -> None:
    talk("main", "one")
    talk("other", "two")

    outcome = cli("session", "fork", "main", "fork", "--at", str(heads(nexus)["other"]))

    assert outcome.code == 2
    assert "there is no step" in outcome.err
    assert cli("session", "fork", "main", "fork", "--at", "nonsense").code == 2


def test_what_a_fork_shares_can_be_forked_again_from_it(cli: Cli, talk: Talk, nexus: Nexus) -> None:
    talk("main", "one", "two")
    first = next(step for step in nexus.ledger.thread(str(heads(nexus)["main"])) if step.closes)
    cli("session", "fork", "main", "fork")
    talk("fork", "three")

    assert cli("session", "fork", "fork", "again", "--at", first.turn).code == 0
    assert heads(nexus)["again"] == first.id


def test_a_name_that_is_taken_is_refused(cli: Cli, talk: Talk) -> None:
    talk("main", "one")
    talk("other", "two")

    for options in ((), ("--dry-run",)):
        outcome = cli("session", "fork", "main", "other", *options)

        assert outcome.code == 3
        assert "session 'other' exists already" in outcome.err


# ---- rename ---------------------------------------------------------------------------------------------------------


def test_both_names_lead_to_a_renamed_session(cli: Cli, talk: Talk) -> None:
    talk("main", "one")

    outcome = cli("session", "rename", "main", "login")

    assert outcome.err == "Renamed main to login.\n"
    assert cli("session", "show", "main").out == cli("session", "show", "login").out
    assert json.loads(cli("session", "show", "login", "--json").out)["session"]["aliases"] == ["main"]


def test_a_session_goes_back_to_the_name_it_had(cli: Cli, talk: Talk, nexus: Nexus) -> None:
    talk("main", "one")

    for name in ("login", "main"):
        assert cli("session", "rename", "main", name).code == 0

    assert list(heads(nexus)) == ["main"]


@pytest.mark.parametrize("name", ["", "  ", "x" * 501])
def test_not_everything_is_a_name(cli: Cli, talk: Talk, name: str) -> None:
    talk("main", "one")

    for options in ((), ("--dry-run",)):
        assert cli("session", "rename", "main", name, *options).code == 2


# ---- archive --------------------------------------------------------------------------------------------------------


def test_a_session_is_put_away_and_taken_back(cli: Cli, talk: Talk, nexus: Nexus) -> None:
    talk("main", "one")

    assert cli("session", "archive", "main").err == "Archived main.\n"
    assert cli("session", "archive", "main").err == "main is archived already.\n"
    assert nexus.ledger.sessions() == []
    assert cli("session", "unarchive", "main").err == "Restored main.\n"
    assert cli("session", "unarchive", "main").err == "main is in use already.\n"
    assert [record.label for record in nexus.ledger.sessions()] == ["main"]


# ---- all of them ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [["fork", "main", "new"], ["rename", "main", "new"], ["archive", "main"]], ids=str)
def test_trying_out_changes_nothing(cli: Cli, talk: Talk, nexus: Nexus, command: list[str]) -> None:
    talk("main", "one")
    before = nexus.ledger.sessions(status=None)

    outcome = cli("session", *command, "--dry-run")

    assert outcome.code == 0
    assert outcome.err.startswith("Would ")
    assert nexus.ledger.sessions(status=None) == before


@pytest.mark.parametrize("command", [["fork", "main", "new"], ["rename", "main", "new"], ["archive", "main"]], ids=str)
def test_json_says_what_the_session_is_like_then(cli: Cli, talk: Talk, nexus: Nexus, command: list[str]) -> None:
    talk("main", "one")
    head = heads(nexus)["main"]

    tried, done = (json.loads(cli("session", *command, "--json", *options).out) for options in (("--dry-run",), ()))

    assert tried == done
    assert done == {
        "schema": 1,
        "session": {
            "label": command[-1],
            "status": "archived" if command[0] == "archive" else "active",
            "head": head,
            "tip": head,
            "open_turn": None,
            "origin": "main" if command[0] == "fork" else "",
        },
    }


def test_session_show_finds_the_beginning_of_a_former_name(cli: Cli, talk: Talk) -> None:
    talk("auth-bug", "one")
    cli("session", "rename", "auth-bug", "login")

    outcome = cli("session", "show", "auth", "--json")

    assert outcome.code == 0
    assert json.loads(outcome.out)["session"]["label"] == "login"


def test_session_show_prefers_a_name_to_a_former_name(cli: Cli, talk: Talk) -> None:
    talk("auth-bug", "one")
    cli("session", "rename", "auth-bug", "login")
    talk("auth-cookie", "two")

    outcome = cli("session", "show", "auth", "--json")

    assert json.loads(outcome.out)["session"]["label"] == "auth-cookie"


pytestmark = pytest.mark.usefixtures("no_session_start")

WORDS = "the word is swordfish"


SHELF = """
from nexus_core import hookimpl
from nexus_core.ledger.in_memory import MemoryLedger

class Shelf:
    url = "shelf:"

    def __init__(self):
        self._kept = MemoryLedger()
        self._kept.create("main")

    def __getattr__(self, name):
        if name in ("delete", "deletions"):
            raise AttributeError(name)
        return getattr(self._kept, name)

@hookimpl
def nexus_ledger(url):
    return Shelf() if url.startswith("shelf:") else None
"""


@pytest.fixture
def reply(talk: Talk, nexus: Nexus) -> str:
    """The last reply of a session that is about to be deleted, beside another that was forked from it."""
    talk("main", "one")
    nexus.session("main").fork("fork")
    talk("main", WORDS)
    talk("fork", "two")
    record = nexus.ledger.session("main")
    assert record is not None
    nexus.close()
    return str(record.tip)


@pytest.mark.acceptance("R23")
def test_delete_erases_a_session_and_records_it(cli: Cli, reply: str, nexus_home: Path) -> None:
    tried = cli("session", "delete", "main", "--dry-run")
    refused = cli("session", "delete", "main")
    done = cli("session", "delete", "main", "--yes", "--reason", "a leak")
    verified = cli("ledger", "verify")

    assert (tried.code, refused.code, done.code, verified.code) == (0, 2, 0, 0)
    assert tried.err.startswith("Would delete main: 3 steps and 0 blobs.")
    assert "there is no terminal to ask on, so nothing was deleted" in refused.err
    assert done.err.startswith("Deleted main: 3 steps and 0 blobs.")
    assert "steps that are also part of fork stay" in done.err
    assert "everything is as it was recorded, 1 deletion recorded" in verified.err
    assert reply
    assert not [file for file in nexus_home.rglob("*") if file.is_file() and WORDS.encode() in file.read_bytes()]


@pytest.mark.acceptance("R23")
@pytest.mark.usefixtures("reply")
@pytest.mark.parametrize(("typed", "left"), [("y", ["fork"]), ("n", ["fork", "main"])])
def test_delete_asks_on_a_terminal(answer: Answer, cli: Cli, typed: str, left: list[str]) -> None:
    answer(f"{typed}\n")

    outcome = cli("session", "delete", "main")

    assert "main: 3 steps and 0 blobs would be erased for good" in outcome.err
    assert sorted(each["label"] for each in json.loads(cli("session", "list", "--json").out)["sessions"]) == left


@pytest.mark.acceptance("R23")
def test_a_deletion_in_json_names_everything(cli: Cli, reply: str) -> None:
    document = json.loads(cli("session", "delete", "main", "--yes", "--json").out)
    verified = json.loads(cli("ledger", "verify", "--json").out)

    assert (document["labels"], document["steps"], document["sharing"]) == (["main"], 3, ["fork"])
    assert (document["is_purged"], len(document["ids"]), verified["deletions"]) == (True, 1, 1)
    assert reply


@pytest.mark.usefixtures("reply")
def test_verify_counts_erased_steps_apart_from_the_others(cli: Cli) -> None:
    cli("session", "delete", "main", "--yes")

    outcome = cli("ledger", "verify")
    verified = json.loads(cli("ledger", "verify", "--json").out)
    stats = json.loads(cli("session", "stats", "--json").out)
    copied = json.loads(cli("ledger", "copy", "new.db", "--dry-run", "--json").out)

    assert verified["steps"] == stats["steps"] == copied["saved"]["steps"]
    assert verified["erased"] == 3
    assert outcome.err.startswith(f"Looked at {stats['steps']} steps (3 erased) and 1 session in ")


@pytest.mark.acceptance("R23")
def test_other_commands_answer_clearly_about_a_deleted_session(cli: Cli, reply: str) -> None:
    exported = cli("session", "export", "main").out
    Path("main.jsonl").write_text(exported, encoding="utf-8")
    cli("session", "delete", "main", "--yes")

    for command in (("show", "main"), ("export", "main"), ("fork", "main", "new"), ("delete", "main", "--yes")):
        outcome = cli("session", *command)
        assert (outcome.code, "unknown session 'main'" in outcome.err) == (2, True), command
    replayed = cli("session", "replay", reply)
    imported = cli("session", "import", "main.jsonl")
    assert (replayed.code, imported.code) == (3, 3)
    assert f"step {reply} was deleted with its session" in replayed.err
    assert "was deleted here with its session, and does not come back" in imported.err
    assert WORDS not in cli("session", "search", "swordfish").out
    assert "swordfish" not in cli("session", "tree").out
    assert "turns        2" in cli("session", "stats").out
    assert cli("ledger", "copy", "new.db").code == 0
    assert "1 deletion recorded" in cli("ledger", "verify", "--ledger", "new.db").err


@pytest.mark.acceptance("R23")
def test_a_ledger_that_cannot_delete_says_what_to_do(cli: Cli, install_plugin: InstallPlugin) -> None:
    install_plugin(
        "shelf",
        SHELF,
    )

    outcome = cli("session", "delete", "main", "--yes", "--ledger", "shelf:")

    assert outcome.code == 3
    assert "nothing can be deleted from this ledger" in outcome.err
    assert "nexus ledger copy NEW --without NAME" in outcome.err


@pytest.mark.acceptance("R23")
def test_nexus_deletes_a_session_and_begins_it_anew(nexus: Nexus, talk: Talk) -> None:
    talk("main", WORDS)
    session = nexus.session("main", model="gpt-4o")

    report = nexus.delete_session("main", reason="a leak")
    context = session.ask("Again?")

    assert report.labels == ("main",)
    assert WORDS not in str(context.messages)
    assert list(nexus.ledger.verify()) == []
