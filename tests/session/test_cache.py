"""What became of the provider's cache, and what its counts teach."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nexus_core.errors import BudgetError
from nexus_core.ledger.ledger import StoreLedger
from nexus_core.session.session import Session
from nexus_core.testing import write_files
from nexus_core.tokens.count_cache import CountCache, get_shared_cache
from nexus_core.tokens.counters import open_counter
from tests.session.conftest import OpenNexus, OpenSession
from tests.session.support import TOOLS, says, steps_of

LONG = "word " * 3000


def reply(session: Session, name: str, *, cached: int, read: int = 0) -> Any:
    """An answer whose provider found so much in its cache."""
    usage = {"input_tokens": read, "cache_read_input_tokens": cached, "output_tokens": 5}
    return session.record({**says("so", name=name), "usage": usage}).cache


def begun(open_session: OpenSession, **arguments: Any) -> Session:
    session = open_session(**arguments)
    session.ask(LONG)
    reply(session, "msg_1", cached=0)
    return session


@pytest.mark.acceptance("D-10")
def test_a_beginning_that_was_found_is_a_hit(open_session: OpenSession) -> None:
    session = begun(open_session)
    session.ask("And?")

    cache = reply(session, "msg_2", cached=3100)

    assert (cache.verdict, cache.got, cache.blame) == ("hit", 3100, None)
    assert 3000 < cache.expected < 4000


def test_the_first_call_has_nothing_to_find(open_session: OpenSession) -> None:
    session = open_session()
    session.ask(LONG)

    assert reply(session, "msg_1", cached=0).blame.cause == "first"


def test_a_file_that_changed_is_not_to_blame_and_a_reload_is(open_session: OpenSession, tmp_path: Path) -> None:
    write_files(tmp_path / "work", {"NEXUS.md": "Be brief.\n"})
    session = begun(open_session)
    write_files(tmp_path / "work", {"NEXUS.md": "Be verbose.\n"})
    session.ask("And?")
    assert reply(session, "msg_2", cached=0).blame.cause == "unknown"
    session.reload()
    session.ask("Well?")

    cache = reply(session, "msg_3", cached=0)

    assert (cache.verdict, cache.blame.cause, cache.blame.name) == ("miss", "section", "Project Configuration")
    assert cache.blame.source.uri == str(tmp_path / "work/NEXUS.md")
    assert "NEXUS.md) has changed" in str(cache)


def test_other_tools_are_to_blame(open_session: OpenSession) -> None:
    begun(open_session)
    session = open_session(tools=[*TOOLS, {"name": "listen", "input_schema": {"type": "object"}}])
    session.ask("And?")

    cache = reply(session, "msg_2", cached=0)

    assert (cache.blame.cause, cache.blame.name) == ("tool", "listen")


def test_another_model_is_to_blame(open_session: OpenSession) -> None:
    begun(open_session)
    session = open_session(model="claude-opus-4")
    session.ask("And?")

    assert reply(session, "msg_2", cached=0).blame.cause == "model"


def test_a_short_beginning_says_so(open_session: OpenSession) -> None:
    session = open_session()
    session.ask("Why?")
    reply(session, "msg_1", cached=0)
    session.ask("And?")

    cache = reply(session, "msg_2", cached=0)

    assert cache.blame.cause == "short"


def test_a_provider_that_says_nothing_leaves_it_unknown(open_session: OpenSession) -> None:
    session = begun(open_session)
    session.ask("And?")

    cache = session.record({key: value for key, value in says("so", name="msg_2").items() if key != "usage"}).cache

    assert (cache.verdict, cache.got) == ("unknown", None)


def test_another_program_tells_the_same(open_session: OpenSession) -> None:
    begun(open_session).ask("And?")
    session = open_session()

    cache = reply(session, "msg_2", cached=0)
    again = open_session().record(
        {**says("so", name="msg_2"), "usage": {"input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 5}}
    )

    assert cache.expected > 3000
    assert again.duplicate
    assert again.cache == cache


# ---- calibration ----------------------------------------------------------------------------------------------------


def test_before_the_first_reply_a_budget_allows_for_the_error_of_the_model_table(open_session: OpenSession) -> None:
    budget = open_session().ask(LONG).token_budget

    assert budget.calibration is not None
    assert budget.calibration.replies == 0
    assert budget.low < budget.total < budget.high
    assert budget.high == pytest.approx(budget.total * 1.1, abs=1)


def test_after_the_first_reply_budgets_go_by_what_the_provider_counts(
    open_session: OpenSession, ledger: StoreLedger
) -> None:
    session = open_session()
    sent = session.ask(LONG).token_budget
    counted = int(sent.total * 1.5)
    reply(session, "msg_1", cached=0, read=counted)

    budget = session.ask("And?").token_budget

    new = budget.total - budget.margin - (sent.total - sent.margin)
    assert 0 < new < 200
    assert budget.estimate in range(counted + new, counted + 2 * new)
    assert budget.remaining == budget.available - budget.high
    assert list(steps_of(ledger, "s")[-1].payload.calibration.values()) == [[pytest.approx(1.65, abs=0.02)]]


def test_instructions_that_the_caller_adds_to_every_call_are_part_of_the_prediction(open_session: OpenSession) -> None:
    session = open_session()
    sent = session.ask("Why?").token_budget.total
    reply(session, "msg_1", cached=0, read=sent + 20_000)

    budget = session.ask("word " * 2000).token_budget

    assert budget.estimate - 20_000 == pytest.approx(budget.total - budget.margin, abs=20)


@pytest.mark.parametrize("counted", [1, 100, 120_000, 10**9])
def test_a_usage_that_cannot_be_of_this_call_changes_nothing(open_session: OpenSession, counted: int) -> None:
    session = open_session()
    session.ask(LONG)
    reply(session, "msg_1", cached=0, read=counted)

    calibration = session.ask("And?").token_budget.calibration

    assert calibration is not None
    assert (calibration.replies, calibration.counted) == (0, 0)


def test_another_program_predicts_the_same(open_session: OpenSession) -> None:
    session = open_session()
    reply(session, "msg_1", cached=0, read=session.ask(LONG).token_budget.total + 777)

    assert open_session().preview("And?").token_budget == session.preview("And?").token_budget


def test_another_session_starts_from_what_one_has_learned(open_nexus: OpenNexus) -> None:
    nexus = open_nexus()
    first = nexus.session("first", model="claude-sonnet-4")
    sent = first.ask(LONG).token_budget
    reply(first, "msg_1", cached=0, read=round((sent.total - sent.margin) * 1.3))

    budget = nexus.session("second", model="claude-sonnet-4").ask(LONG).token_budget
    others = nexus.session("third", model="claude-opus-4-7").ask(LONG).token_budget

    assert budget.estimate == pytest.approx((budget.total - budget.margin) * 1.3, rel=0.01)
    assert others.estimate == others.total - others.margin


def test_exact_counts_learn_nothing_from_other_sessions(open_nexus: OpenNexus) -> None:
    nexus = open_nexus()
    first = nexus.session("first", model="gpt-4o")
    reply(first, "msg_1", cached=0, read=round(first.ask(LONG).token_budget.total * 1.3))

    assert nexus.session("second", model="gpt-4o").ask(LONG).token_budget.calibration is None


def test_without_a_model_nothing_is_learned_and_nothing_learned_is_used(
    open_nexus: OpenNexus, ledger: StoreLedger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    nexus = open_nexus()
    # as an earlier version cached a ratio of 1.4
    get_shared_cache().keep(CountCache.key(f"calibration {open_counter('', host=nexus.host).name}", ""), 14_000)
    first = nexus.session("first")
    context = first.ask(LONG)
    reply(first, "msg_1", cached=0, read=round(context.token_budget.total * 1.3))

    assert context.token_budget.calibration is None
    assert steps_of(ledger, "first")[-1].payload.calibration == {}
    assert nexus.session("second").ask(LONG).token_budget.calibration is None


@pytest.mark.usefixtures("only_cuts")
def test_a_provider_that_counts_more_leaves_less_room(open_nexus: OpenNexus, nexus_home: Path) -> None:
    config = {"models": {"tiny": {"window": 12_000}}, "budget": {"reserve_response": 1000}}
    write_files(nexus_home, {"config.json": json.dumps(config)})
    session = open_nexus().session("s", model="tiny")
    for number in range(3):
        context = session.ask("word " * 2200)
        reply(session, f"msg_{number}", cached=0, read=int(context.token_budget.total * 1.9))

    context = session.ask("And?")

    assert context.decisions
    assert context.token_budget.high <= context.token_budget.available
    session.record(says("so", name="msg_9"))
    with pytest.raises(BudgetError):
        session.ask("word " * 7000)
