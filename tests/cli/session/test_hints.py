"""What a person at a terminal is told to do is something that can be typed there."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from nexus_core import Nexus, TurnError
from tests.cli.session.conftest import Talk, TypeIn
from tests.conftest import Cli
from tests.session.support import add_turns, calls

PYTHON = re.compile(r"\w\((…|\"|\)|\w+=)|=True|\bsession\.\w|\bcall\.\w|\w+=[\[{\"]")
"""A call, an argument or an attribute, as a program has them."""


GIVEN: list[object] = [
    {"ask": "More"},
    {"ask": {"role": "assistant", "content": "x"}},
    {"ask": " "},
    {"ask": "x", "platfrom": 1},
    {"ask": "x", "platform_actions": "reply"},
    {"ask": "x", "attachments": "a.py"},
    {"ask": "x", "hook_data": 3},
    {"reply": {"role": "assistant", "content": "x"}},
    {"reply": {"role": "assistant", "content": "x", "tool_calls": 3}},
    {"call": "toolu_9", "result": "x"},
    {"call": "toolu_1", "result": "x"},
    {"role": "tool", "tool_call_id": "toolu_9", "content": "x"},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t"}, {"type": "text", "text": "x"}]},
    {"role": "system", "content": "x"},
    {"messages": [3]},
    [3],
]
"""What is wrong by itself, or at the wrong time."""


@pytest.fixture
def sessions(nexus: Nexus, talk: Talk) -> None:
    """One that rests, one whose turn waits for a reply, one that waits for a result, one that was made elsewhere."""
    talk("resting", "Why?")
    talk("asked", "Why?").ask("And now?")
    waiting = talk("waiting")
    waiting.ask("Why?")
    waiting.record(calls("toolu_1"))
    add_turns(nexus.ledger, "foreign", "one", "two")  # type: ignore[arg-type]


@pytest.mark.parametrize("label", ["resting", "asked", "waiting", "foreign"])
@pytest.mark.usefixtures("sessions")
def test_no_hint_about_what_is_recorded_speaks_of_python(cli: Cli, type_in: TypeIn, label: str) -> None:
    said = []
    for given in GIVEN:
        type_in(json.dumps(given))
        said.append(cli("session", "record", label, "-").err)

    assert not [each for each in said if PYTHON.search(each)]


@pytest.mark.parametrize(
    "command",
    [
        ("assemble", "More", "--session", "asked"),
        ("assemble", "More", "--session", "waiting"),
        ("assemble", "More", "--role", "worker"),
        ("diff", "foreign"),
        ("diff", "resting"),
        ("session", "fork", "foreign", "new", "--at", "nothing"),
        ("session", "replay", "nothing"),
    ],
)
@pytest.mark.usefixtures("sessions")
def test_no_hint_about_a_request_speaks_of_python(cli: Cli, command: tuple[str, ...]) -> None:
    outcome = cli(*command)

    assert outcome.code
    assert not PYTHON.search(outcome.err), outcome.err


@pytest.mark.parametrize("command", ["forget", "rm"])
def test_other_words_for_delete_lead_to_the_command(cli: Cli, command: str) -> None:
    outcome = cli("session", command, "resting")

    assert outcome.code == 2
    assert f"unknown command '{command}'" in outcome.err
    assert "`nexus session delete NAME` erases a session" in outcome.err
    assert "`nexus session archive NAME` only puts it away" in outcome.err


@pytest.mark.parametrize("group", [(), ("session",), ("memory",), ("plugin",)])
def test_a_command_that_is_misspelt_is_answered_with_the_nearest(cli: Cli, group: tuple[str, ...]) -> None:
    outcome = cli(*group, "shwo", "resting")

    assert outcome.code == 2
    assert outcome.err.startswith("Error: unknown command 'shwo'\n  ")
    assert group == ("plugin",) or "did you mean 'show'?" in outcome.err
    assert group != ("plugin",) or "known: " in outcome.err


@pytest.mark.usefixtures("sessions")
def test_who_says_something_while_a_turn_is_open_is_told_which_commands_help(cli: Cli) -> None:
    outcome = cli("assemble", "More", "--session", "asked")

    assert outcome.code == 3
    assert "`nexus session record asked --discard-open-turn` gives it up" in outcome.err
    assert cli("session", "record", "asked", "--discard-open-turn").code == 0
    assert cli("assemble", "More", "--session", "asked").code == 0


def test_a_program_is_told_what_a_program_can_do(talk: Talk) -> None:
    session = talk("asked", "Why?")
    session.ask("And now?")

    with pytest.raises(TurnError, match=r"next\(\) goes on with it"):
        session.ask("More")


@pytest.mark.usefixtures("sessions")
def test_a_result_that_nobody_waits_for_is_not_called_unknown(cli: Cli, type_in: TypeIn) -> None:
    type_in("x")

    outcome = cli("session", "record", "asked", "-", "--call", "toolu_1")

    assert "no call waits for a result" in outcome.err
    assert "a reply is expected" in outcome.err


@pytest.mark.usefixtures("sessions")
def test_an_unknown_call_is_named_beside_those_that_wait(cli: Cli, type_in: TypeIn) -> None:
    type_in("x")

    outcome = cli("session", "record", "waiting", "-", "--call", "toolu_2")

    assert outcome.code == 2
    assert "did you mean 'toolu_1'?" in outcome.err


@pytest.mark.usefixtures("sessions")
def test_whoever_compares_calls_that_were_made_elsewhere_is_shown_another_way(cli: Cli) -> None:
    outcome = cli("diff", "foreign")

    assert outcome.code == 2
    assert "Nexus has sent nothing in session foreign" in outcome.err
    assert "`nexus diff foreign B` compares what it would send now with B" in outcome.err
    assert cli("diff", "foreign", "resting").code == 0


def test_a_call_is_not_compared_with_one_that_was_made_elsewhere(nexus: Nexus, cli: Cli, talk: Talk) -> None:
    add_turns(nexus.ledger, "foreign", "one")  # type: ignore[arg-type]
    talk("foreign", "two")

    assert "there is only one call in session foreign" in cli("diff", "foreign").err


def test_a_step_that_was_made_elsewhere_cannot_be_replayed_and_says_what_can_be_seen(nexus: Nexus, cli: Cli) -> None:
    [step] = add_turns(nexus.ledger, "foreign", "one")  # type: ignore[arg-type]

    outcome = cli("session", "replay", step.id)

    assert outcome.code == 3
    assert "`nexus session show NAME` shows what was said" in outcome.err


@pytest.fixture
def elsewhere(torn_turn: str, nexus_home: Path, work: Path) -> str:
    """A damaged ledger that is not the user's own."""
    assert torn_turn
    (nexus_home / "ledger.db").rename(work / "their ledger.db")
    return "their ledger.db"


@pytest.mark.parametrize("command", [["show", "main"], ["stats"], ["tree"], ["export", "main"]], ids=str)
def test_hints_about_a_damaged_ledger_name_it(cli: Cli, elsewhere: str, command: list[str]) -> None:
    outcome = cli("session", *command, "--ledger", elsewhere)

    named = [hint for hint in re.findall(r"`(nexus [^`]+)`", outcome.err) if hint.startswith("nexus ledger")]
    assert outcome.code == 3
    assert named
    assert all(hint.endswith(" --ledger 'their ledger.db'") for hint in named)
    assert all("repair NEW " in hint for hint in named if "repair" in hint)


def test_hints_about_the_users_own_ledger_do_not_name_it(cli: Cli, torn_turn: str) -> None:
    outcome = cli("session", "show", "main")

    assert torn_turn in outcome.err
    assert "`nexus ledger verify` says" in outcome.err


def test_a_hint_in_json_names_the_ledger(cli: Cli, elsewhere: str, type_in: TypeIn) -> None:
    type_in(json.dumps({"ask": "More"}))

    outcome = cli("session", "record", "main", "-", "--api", "openai", "--json", "--ledger", elsewhere)

    assert "--ledger 'their ledger.db'`" in json.loads(outcome.out)["error"]["hint"]
