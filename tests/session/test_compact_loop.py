"""A conversation is not compacted again and again: it stops, and says why."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from nexus_core.errors import BudgetError
from nexus_core.ledger.in_memory import MemoryLedger
from nexus_core.ledger.ledger import StoreLedger
from tests.effort import rounds
from tests.session.compacted import AVAILABLE, Fake, Words, compactions, configure, exchange, long_session
from tests.session.conftest import OpenNexus
from tests.session.support import calls, compaction_of, kinds_of, says
from tests.tables import count

R15 = {
    "empty": "",
    "longer": lambda _: "longer " * 3000,
    "identical": lambda request: request.prompt,
    "error": ValueError("no"),
    "time-out": TimeoutError(),
    "refusal": "I cannot help with that.",
    "413": ValueError("413 request too large"),
    "surrogates": "\ud800" * 10,
    "as long as it may": lambda request: "word " * request.max_tokens,
    "short": "ok then",
}
"""What R15 of the reliability rules has a summarizer do."""


def test_without_a_reply_between_them_there_are_two_compactions_at_most(
    open_nexus: OpenNexus, ledger: StoreLedger
) -> None:
    session = long_session(open_nexus(plugins=[Words()], summarize=Fake()), 8)
    codes = []
    for number in range(6):
        context = session.ask(f"question {number} " + "word " * 350)
        codes.append([finding.code for finding in context.findings])
        assert context.token_budget.remaining >= 0
        session.interrupt()

    assert len(compactions(ledger)) == 2
    assert codes.count(["compacted"]) == 2
    assert codes.count(["compaction-stopped"]) >= 1


def test_compactions_that_bring_nothing_stop(open_nexus: OpenNexus, ledger: StoreLedger, nexus_home: Path) -> None:
    configure(nexus_home, trigger_tokens=200)
    fake = Fake(lambda request: "word " * request.max_tokens)
    session = open_nexus(plugins=[Words()], summarize=fake).session("s", model="words")
    for number in range(3):
        exchange(session, number, words=100)
    for number in range(3, 9):
        exchange(session, number, words=3)

    made = [compaction_of(step) for step in compactions(ledger)]
    assert len(made[-1].savings) <= 2
    small = [each for each in made if (each.tokens_after or 0) > 0.9 * (each.tokens_before or 0)]
    assert len(fake.asked) == len(compactions(ledger)) < 6
    assert len(small) <= 3


def test_where_it_stops_what_does_not_fit_is_left_out_and_the_cut_stays(
    open_nexus: OpenNexus, ledger: StoreLedger
) -> None:
    session = long_session(open_nexus(plugins=[Words()], summarize=Fake()), 8)
    for number in range(4):
        session.ask(f"question {number} " + "word " * 350)
        session.interrupt()

    context = session.ask("And? " + "word " * 350)

    assert len(compactions(ledger)) == 2
    assert [(each.action, each.rule) for each in context.decisions] == [("dropped", "oldest_first")]
    assert context.history[0].extra["_summary"] == compactions(ledger)[-1].id
    assert session.next().messages == context.messages


@pytest.mark.acceptance("R15")
@pytest.mark.parametrize("histories", [1, pytest.param(rounds(20), marks=pytest.mark.slow)])
@pytest.mark.parametrize("fault", R15)
def test_whatever_a_summarizer_does_a_conversation_goes_on(
    nexus_home: Path, open_nexus: OpenNexus, fault: str, histories: int
) -> None:
    configure(nexus_home, summarizers=["given"], timeout=60)
    count(histories)
    for seed in range(histories):
        chance = random.Random(seed)  # noqa: S311 - the same conversations in every run
        ledger, fake = MemoryLedger(), Fake(R15[fault])
        session = open_nexus(plugins=[Words()], summarize=fake, ledger=ledger).session("s", model="words")
        for number in range(14):
            before, asked = kinds_of(ledger, "s"), len(fake.asked)
            try:
                context = session.ask(f"question {number} " + "word " * chance.randint(0, 200))
                assert context.token_budget.total <= AVAILABLE
                for round_ in range(chance.randint(0, 2)):
                    step = session.record(calls("a", name=f"msg_{number}_{round_}"))
                    session.record(step.tool_calls[0].result("found " * chance.randint(1, 60)))
                    assert session.next().token_budget.total <= AVAILABLE
                session.record(says("so " * chance.randint(1, 50), name=f"msg_{number}"))
            except BudgetError:
                session.interrupt()
            assert len(fake.asked) - asked <= 2
            if fault not in ("as long as it may", "short"):
                assert "compaction" not in kinds_of(ledger, "s")[len(before) :]
        assert list(ledger.verify()) == []
