"""`nexus session replay`: what was sent, from what is kept alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nexus_core import Nexus
from nexus_core.dialects.finding import NAMES
from nexus_core.testing import write_files
from tests.cli.session.conftest import Talk
from tests.conftest import Cli
from tests.session.support import says


@pytest.mark.parametrize("api", NAMES)
def test_a_past_request_is_printed_as_it_was_sent(api: str, cli: Cli, talk: Talk, work: Path) -> None:
    write_files(work, {".nexus3/NEXUS.md": "Be brief."})
    session = talk("s", "Why?")
    sent = session.ask("And then?").to(api)
    step = session.record(says("So.", name="msg_2"))
    write_files(work, {".nexus3/NEXUS.md": "Be terse."})
    session.reload()

    outcome = cli("session", "replay", step.id, "--dialect", api)

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


def test_a_step_that_is_not_there_is_refused(cli: Cli, talk: Talk) -> None:
    talk("s", "Why?")

    outcome = cli("session", "replay", "nowhere")

    assert (outcome.code, outcome.out) == (2, "")
    assert "there is no step 'nowhere'" in outcome.err


def test_a_dialect_that_nobody_speaks_is_refused_before_anything_is_read(cli: Cli) -> None:
    outcome = cli("session", "replay", "x", "--dialect", "gemni")

    assert outcome.code == 2
    assert "did you mean 'gemini'?" in outcome.err
