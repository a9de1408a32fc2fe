"""`nexus session stats`: what sessions add up to."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from nexus_core import Nexus
from nexus_core.ledger.ledger import walk_back
from nexus_core.request.cache_report import list_cache_reports
from nexus_core.request.prefix import PrefixStore
from nexus_core.testing import write_files
from nexus_core.tokens.counters import get_model
from nexus_core.types.messages import Message, Role
from tests.cli.session.conftest import Talk
from tests.conftest import Cli
from tests.ledger.backends import said
from tests.ledger.test_verify import tamper
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
    assert (facts["turns"], facts["messages"], facts["compactions"]) == (3, 10, 0)
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
        "cache_write_1h_tokens": 0,
        "cache_hit_rate": round(425 / 580, 4),
    }
    assert facts["models"][1]["cost"]["total"] == 0.000289
    assert facts["models"][1] | {"cost": None} == {
        "model": "gpt-4o",
        "replies": 1,
        "input_tokens": 100,
        "output_tokens": 7,
        "cached_input_tokens": 25,
        "cache_write_tokens": 0,
        "reasoning_tokens": None,
        "cache_write_1h_tokens": 0,
        "cache_hit_rate": 0.25,
        "cost": None,
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
    assert out[-1].split() == ["all", "3", "580", "425", "73%", "60", "107", "40", "$0.0022"]


@pytest.mark.usefixtures("main")
def test_reasoning_that_was_not_reported_is_a_dash(cli: Cli) -> None:
    out = cli("session", "stats", "main").out.splitlines()

    assert [line.split()[-2] for line in out if line.startswith("gpt-4o ")] == ["-"]


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
    assert cli("session", "stats").out.splitlines()[-1].split() == ["(unknown)", "1", *"-------"]


def test_what_does_not_say_who_has_answered_counts_for_the_model_that_was_asked(cli: Cli, nexus: Nexus) -> None:
    session = nexus.session("main", model="us.amazon.nova-lite-v1:0")
    session.ask("Hello?")
    message = {"role": "assistant", "content": [{"text": "Hello."}]}
    session.record({"output": {"message": message}, "stopReason": "end_turn"})

    (model,) = json.loads(cli("session", "stats", "main", "--json").out)["models"]

    assert model == {"model": "us.amazon.nova-lite-v1:0", "replies": 1}


# ---- the provider's cache -------------------------------------------------------------------------------------------


def long_talk(nexus: Nexus, work: Path, cached: list[int]) -> list[str]:
    """A session with a prompt that is long enough to be cached, and what came from the cache in each call."""
    write_files(work, {"NEXUS.md": "Be brief. " * 1000})
    session, steps = nexus.session("long", model="claude-sonnet-4"), []
    for number, found in enumerate(cached):
        session.ask(f"question {number}")
        usage = {"input_tokens": 10, "cache_read_input_tokens": found, "output_tokens": 5}
        steps.append(session.record(says("yes", name=f"msg_{number}") | {"usage": usage}).id)
    return steps


def test_what_became_of_the_cache_is_added_up(cli: Cli, nexus: Nexus, work: Path) -> None:
    steps = long_talk(nexus, work, [0, 9000, 0, 9000])
    expected = [nexus.session("long").cache_report(step).expected or 0 for step in steps]

    facts = json.loads(cli("session", "stats", "long", "--json").out)["cache"]
    outcome = cli("session", "stats", "long")

    assert {name: facts[name] for name in ("hit", "miss", "short", "unknown")} == {
        "hit": 2,
        "miss": 1,
        "short": 0,
        "unknown": 0,
    }
    assert facts["expected"] == sum(expected)
    assert facts["got"] == expected[1] + expected[3]
    assert facts["rate"] == round(facts["got"] / facts["expected"], 4)
    assert (facts["first_miss"]["step"], facts["first_miss"]["blame"]["cause"]) == (steps[2], "unknown")
    assert f"(step {steps[2]})" in outcome.out
    assert "2 calls found, 1 call missed" in outcome.out


def test_the_first_miss_names_what_is_to_blame(cli: Cli, nexus: Nexus, work: Path) -> None:
    long_talk(nexus, work, [0, 9000])
    write_files(work, {"NEXUS.md": "Be verbose. " * 1000})
    nexus.session("long").reload()
    nexus.session("long").ask("again")
    usage = {"input_tokens": 10, "cache_read_input_tokens": 0, "output_tokens": 5}
    nexus.session("long").record(says("yes", name="again") | {"usage": usage})

    outcome = cli("session", "stats", "long")

    (line,) = [line for line in outcome.out.splitlines() if line.startswith("first miss")]
    assert f"{work}/NEXUS.md" in line


@pytest.mark.usefixtures("main")
def test_calls_that_are_too_short_for_a_cache_are_not_counted_as_missed(cli: Cli) -> None:
    facts = json.loads(cli("session", "stats", "fork", "--json").out)["cache"]

    assert (facts["miss"], facts["short"], facts["expected"], facts["first_miss"]) == (0, 3, 0, None)


@pytest.mark.usefixtures("main")
def test_the_whole_ledger_has_no_calls_one_after_the_other(cli: Cli) -> None:
    assert "cache" not in json.loads(cli("session", "stats", "--json").out)


@pytest.mark.usefixtures("main")
def test_every_call_is_told_as_it_was_when_its_reply_came(nexus: Nexus) -> None:
    record = nexus.ledger.session("fork")
    assert record is not None
    settings = nexus.load().settings

    def minimum(model: str) -> int:
        return get_model(model, host=nexus.host, settings=settings).cache_minimum

    along = list_cache_reports(walk_back(nexus.ledger, record.tip), PrefixStore(lambda: nexus.ledger), minimum)
    reports = {step.id: report for step, report in along}

    assert len(reports) == 4
    assert [nexus.session("fork").cache_report(step) for step in reports] == list(reports.values())


def test_what_is_damaged_is_named_and_the_rest_is_added_up(cli: Cli, torn_turn: str) -> None:
    outcome = cli("session", "stats", "main")
    told, all_of_it = (json.loads(cli("session", "stats", *one, "--json").out) for one in (["main"], []))

    assert outcome.code == 3
    assert f"session 'main' is damaged: step {torn_turn} of turn {torn_turn} is damaged" in outcome.err
    assert (told["turns"], told["models"][0]["replies"], len(told["damaged"])) == (2, 3, 1)
    assert (all_of_it["turns"], all_of_it["damaged"][0]["label"]) == (2, "")


def test_a_session_whose_end_is_gone_is_named(cli: Cli, talk: Talk, nexus: Nexus, nexus_home: Path) -> None:
    talk("main", "one")
    tip = str(nexus.ledger.session("main").tip)  # type: ignore[union-attr]
    nexus.close()
    tamper(nexus_home / "ledger.db", lambda file: file.execute("delete from steps where id = ?", (tip,)))

    outcome = cli("session", "stats", "main")

    assert outcome.code == 3
    assert f"session 'main' is damaged: there is no step {tip}" in outcome.err


def test_turns_that_other_programs_kept_count_the_answers_in_them(cli: Cli, nexus: Nexus) -> None:
    nexus.ledger.create("main")
    roles: tuple[Role, ...] = ("user", "assistant", "assistant", "tool", "assistant")
    turn = replace(said("hi"), messages=tuple(Message(role, "x") for role in roles))
    first = nexus.ledger.append("main", said("only asked"), after=None)
    nexus.ledger.append("main", turn, after=first.id)

    facts = json.loads(cli("session", "stats", "main", "--json").out)

    assert facts["models"] == [{"model": "", "replies": 2}]


@pytest.mark.parametrize("command", ["copy", "repair"])
def test_copies_of_a_ledger_count_turns_as_stats_and_list_do(cli: Cli, talk: Talk, work: Path, command: str) -> None:
    talk("main", *(f"Question {number}: {'why is that so? ' * 30}" for number in range(6)))
    cli("session", "compact", "main")
    cli("session", "undo", "main")
    system = {"role": "system", "content": "Be brief."}
    messages = [system, {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    write_files(work, {"chat.json": json.dumps(messages)})
    assert cli("session", "import", "chat.json").code == 0

    tried = json.loads(cli("ledger", command, "tried.db", "--dry-run", "--json").out)["saved"]
    saved = json.loads(cli("ledger", command, "new.db", "--json").out)["saved"]
    stats = json.loads(cli("session", "stats", "--json").out)
    listed = json.loads(cli("session", "list", "--json").out)["sessions"]

    assert stats["turns"] == sum(each["turns"] for each in listed) == 7
    assert (saved["turns"], saved["steps"]) == (tried["turns"], tried["steps"]) == (stats["turns"], stats["steps"])


def test_calls_of_another_program_cannot_be_judged(cli: Cli, work: Path) -> None:
    reply = {"role": "assistant", "content": [{"type": "text", "text": "Because."}]}
    usage = {"input_tokens": 9, "output_tokens": 2}
    entries: list[dict[str, object]] = [
        {"type": "user", "uuid": "1", "parentUuid": None, "message": {"role": "user", "content": "Why?"}},
        {"type": "assistant", "uuid": "2", "parentUuid": "1", "message": {"id": "m", "usage": usage, **reply}},
    ]
    shared = {"sessionId": "s", "timestamp": "2026-03-02T09:00:00Z", "version": "2.0.0", "cwd": "/w"}
    write_files(work, {"t.jsonl": "".join(json.dumps({**shared, **each}) + "\n" for each in entries)})
    cli("session", "import", "t.jsonl")

    outcome = cli("session", "stats", "claude")

    assert "1 call cannot be judged" in outcome.out
