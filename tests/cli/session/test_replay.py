"""`nexus session replay`: what was sent, from what is kept alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nexus_core import Nexus
from nexus_core.dialects.registry import BUILT_IN_NAMES
from nexus_core.testing import write_files
from tests.cli.session.conftest import Talk
from tests.conftest import Cli
from tests.session.support import calls, says

pytestmark = pytest.mark.usefixtures("no_session_start")


def steps_of(cli: Cli, label: str) -> list[str]:
    """The steps of the turns that `show` prints."""
    turns = json.loads(cli("session", "show", label, "--json").out)["turns"]
    return [step["id"] for turn in turns for step in turn["steps"]]


@pytest.mark.parametrize("api", BUILT_IN_NAMES)
def test_a_past_request_is_printed_as_it_was_sent(api: str, cli: Cli, talk: Talk, work: Path) -> None:
    write_files(work, {".nexus3/NEXUS.md": "Be brief."})
    session = talk("s", "Why?")
    sent = session.ask("And then?").to(api)
    step = session.record(says("So.", name="msg_2"))
    write_files(work, {".nexus3/NEXUS.md": "Be terse."})
    session.reload()

    outcome = cli("session", "replay", step.id, "--api", api)

    assert outcome.code == 0
    assert json.loads(outcome.out) == json.loads(json.dumps(sent))


def test_a_reader_sees_who_said_what(cli: Cli, talk: Talk, nexus: Nexus) -> None:
    talk("s", "Why?", "And then?")
    last = nexus.ledger.session("s")
    assert last is not None
    assert last.tip is not None

    outcome = cli("session", "replay", last.tip)

    headings = [line.split()[0] for line in outcome.out.splitlines() if line and not line.startswith("  ")]
    assert headings == ["system", "tools", "user", "assistant", "user"]
    assert "tokens of 200,000 for claude-sonnet-4" in outcome.err


def test_json_has_everything_that_is_known(cli: Cli, talk: Talk, nexus: Nexus) -> None:
    talk("s", "Why?")
    record = nexus.ledger.session("s")
    assert record is not None
    assert record.tip is not None

    document = json.loads(cli("session", "replay", record.tip, "--json").out)

    assert (document["schema"], document["model"]) == (1, "claude-sonnet-4")
    assert {placed["zone"] for placed in document["placements"]} == {"static", "current"}


def test_a_turn_stands_for_its_last_reply_and_a_session_for_its_last_turn(cli: Cli, talk: Talk) -> None:
    session = talk("s", "Why?")
    session.ask("And then?")
    called = session.record(calls("t1", name="msg_2"))
    session.record(called.tool_calls[0].result("Nothing."))
    session.next()
    last = session.record(says("So.", name="msg_3"))
    session.fork("other").ask("But?")
    first = steps_of(cli, "s")[0]

    sent = {name: cli("session", "replay", name, "--api", "openai") for name in (last.id, last.turn, "s")}

    assert {outcome.code for outcome in sent.values()} == {0}
    assert len({outcome.out for outcome in sent.values()}) == 1
    assert json.loads(sent["s"].out)["messages"][-1]["role"] == "tool"
    assert json.loads(cli("session", "replay", first, "--api", "openai").out)["messages"][-1]["role"] == "user"


def test_a_turn_that_nobody_has_answered_yet_is_what_was_sent_in_it(cli: Cli, talk: Talk) -> None:
    session = talk("s")
    sent = session.ask("Why?").to("openai")
    turn = steps_of(cli, "s")[0]

    assert json.loads(cli("session", "replay", turn, "--api", "openai").out) == json.loads(json.dumps(sent))


def test_a_turn_that_was_given_up_stands_for_the_last_reply_in_it(cli: Cli, talk: Talk) -> None:
    session = talk("s")
    sent = session.ask("Why?").to("openai")
    turn = session.record(calls("t1")).turn
    session.interrupt()

    assert json.loads(cli("session", "replay", turn, "--api", "openai").out) == json.loads(json.dumps(sent))


def test_a_session_in_which_nothing_was_answered_says_what_can_be_seen(cli: Cli, talk: Talk) -> None:
    talk("s").ask("Why?")

    outcome = cli("session", "replay", "s")

    assert outcome.code == 2
    assert "Nexus has sent nothing in session 's' yet that was answered" in outcome.err
    assert "`nexus assemble --session s` prints what would be sent" in outcome.err


def test_a_step_that_is_not_there_is_refused(cli: Cli, talk: Talk) -> None:
    talk("s", "Why?")

    outcome = cli("session", "replay", "nowhere")

    assert (outcome.code, outcome.out) == (2, "")
    assert "there is no step 'nowhere'" in outcome.err


def test_a_dialect_that_nobody_speaks_is_refused_before_anything_is_read(cli: Cli) -> None:
    outcome = cli("session", "replay", "x", "--api", "gemni")

    assert outcome.code == 2
    assert "did you mean 'gemini'?" in outcome.err
