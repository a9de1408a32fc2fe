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


def test_after_three_replies_budgets_go_by_what_the_provider_counts(
    open_session: OpenSession, ledger: StoreLedger
) -> None:
    session = open_session()
    for number in range(3):
        context = session.ask(LONG)
        assert context.token_budget.calibration is None
        reply(session, f"msg_{number}", cached=0, read=int(context.token_budget.total * 1.5))

    budget = session.ask("And?").token_budget

    assert budget.calibration is not None
    assert budget.calibration.replies == 3
    assert budget.high > budget.total * 1.45
    assert budget.remaining == budget.available - budget.high
    assert "calibration" in steps_of(ledger, "s")[-1].data


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
