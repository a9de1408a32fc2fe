"""`nexus session fork`, `rename` and `archive`."""

from __future__ import annotations

import json

import pytest

from nexus_core import Nexus
from tests.cli.session.conftest import Talk
from tests.conftest import Cli
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
    assert said_in(nexus, "fork")[1:] == ["one", "re one", "two", "re two", "three", "re three"]
    assert said_in(nexus, "main")[1:] == ["one", "re one", "two", "re two", "open"]


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
    assert f"step {inside.id} stands inside a turn" in outcome.err
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
        assert "there is a session 'other' already" in outcome.err


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
    assert cli("session", "archive", "--undo", "main").err == "Restored main.\n"
    assert cli("session", "archive", "--undo", "main").err == "main is in use already.\n"
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
