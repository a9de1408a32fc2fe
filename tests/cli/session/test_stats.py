"""`nexus session stats`: what sessions add up to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nexus_core import Nexus
from tests.cli.session.conftest import Talk
from tests.conftest import Cli
from tests.session.support import calls, says


@pytest.fixture
def main(talk: Talk, nexus: Nexus) -> None:
    """A session with tools and two models, and a fork of it."""
    session = talk("main", "one")
    session.ask("two")
    step = session.record(calls("t1", "t2", name="msg_2"))
    session.record([call.result("x") for call in step.tool_calls])
    other = nexus.session("main", model="gpt-4o")
    other.next()
    reply = {"choices": [{"message": {"role": "assistant", "content": "done"}, "finish_reason": "stop"}], "id": "c1"}
    usage = {"prompt_tokens": 100, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 25}}
    other.record({**reply, "model": "gpt-4o", "usage": usage})
    session.fork("fork")
    talk("fork", "three")


@pytest.mark.usefixtures("main")
def test_a_session_adds_up_with_what_it_was_forked_from(cli: Cli) -> None:
    facts = json.loads(cli("session", "stats", "fork", "--json").out)

    assert (facts["schema"], facts["session"]) == (1, "fork")
    assert (facts["turns"], facts["messages"], facts["compactions"]) == (3, 9, 0)
    assert facts["tools"] == [{"name": "look", "calls": 2}]
    assert [(model["model"], model["replies"]) for model in facts["models"]] == [
        ("claude-sonnet-4-20250514", 3),
        ("gpt-4o", 1),
    ]


@pytest.mark.usefixtures("main")
@pytest.mark.acceptance("D-10")
def test_every_field_of_usage_is_added_up_in_all_and_by_model(cli: Cli) -> None:
    facts = json.loads(cli("session", "stats", "main", "--json").out)

    assert facts["usage"] == {
        "input_tokens": 580,
        "output_tokens": 107,
        "cached_input_tokens": 425,
        "cache_write_tokens": 60,
        "reasoning_tokens": 40,
        "cache_hit_rate": round(425 / 580, 4),
    }
    assert facts["models"][1] == {
        "model": "gpt-4o",
        "replies": 1,
        "input_tokens": 100,
        "output_tokens": 7,
        "cached_input_tokens": 25,
        "cache_write_tokens": 0,
        "reasoning_tokens": 0,
        "cache_hit_rate": 0.25,
    }


@pytest.mark.usefixtures("main")
def test_in_the_whole_ledger_every_step_counts_once(cli: Cli, nexus: Nexus) -> None:
    facts = json.loads(cli("session", "stats", "--json").out)

    assert (facts["sessions"], facts["turns"], facts["steps"]) == (2, 3, len(list(nexus.ledger.steps())))
    assert facts["usage"]["input_tokens"] == 820


@pytest.mark.usefixtures("main")
def test_the_tables_say_the_same(cli: Cli) -> None:
    out = cli("session", "stats", "main").out.splitlines()

    assert out[:2] == ["session      main", "turns        2"]
    assert ["look", "2"] in [line.split() for line in out]
    assert out[-1].split() == ["all", "3", "580", "425", "73%", "60", "107", "40"]


def test_tokens_are_those_of_their_counter(cli: Cli, talk: Talk, nexus: Nexus) -> None:
    talk("main", "one")

    facts = json.loads(cli("session", "stats", "main", "--json").out)

    tip = nexus.ledger.step(str(nexus.ledger.session("main").tip))  # type: ignore[union-attr]
    assert tip is not None
    assert facts["tokens"] == {tip.counter: tip.total}


def test_a_reply_that_does_not_say_what_it_cost_is_counted_without(cli: Cli, nexus: Nexus, work: Path) -> None:  # noqa: ARG001 - the directory must be there
    session = nexus.session("main")
    session.ask("one")
    session.record({key: value for key, value in says("x").items() if key != "usage"} | {"model": ""})

    (model,) = json.loads(cli("session", "stats", "main", "--json").out)["models"]

    assert model == {"model": "", "replies": 1}
    assert cli("session", "stats").out.splitlines()[-1].split() == ["(unknown)", "1", *"------"]
