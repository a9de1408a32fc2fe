"""A conversation goes on with a model whose window is smaller than that for which it was summarized."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nexus_core import Nexus, hookimpl
from nexus_core.errors import BudgetError
from nexus_core.ledger.in_memory import MemoryLedger
from nexus_core.ledger.ledger import StoreLedger
from nexus_core.session.session import Session
from nexus_core.types.budget import Model
from nexus_core.types.compaction import SummaryRequest
from nexus_core.types.ledger import NewStep, Step
from nexus_core.types.messages import Message
from tests.effort import examples
from tests.session.compacted import Fake, Words, compactions, configure, exchange, work
from tests.session.conftest import OpenNexus
from tests.session.support import add_step, add_turns, compaction_of, says, steps_of
from tests.session.test_replay import neutral

pytestmark = pytest.mark.usefixtures("no_session_start")

WINDOWS = {"large": 100_000, "small": 1200}
SMALL = 750
"""What the model `small` leaves for a call."""


class Sizes(Words):
    """Models that count words alike and have windows of different sizes; `window` is that of the model `any`."""

    def __init__(self, window: int = 1800) -> None:
        super().__init__()
        self.windows = {**WINDOWS, "any": window}

    @hookimpl
    def nexus_models(self) -> list[Model]:
        return [Model(name=name, window=window, api="anthropic") for name, window in self.windows.items()]

    @hookimpl
    def nexus_token_counter(self, model: str) -> Words | None:
        return self if model in self.windows else None


def at_length(request: SummaryRequest) -> str:
    """A summary that is as long as it may be."""
    return " ".join(f"point{number}" for number in range(request.max_tokens))


def summarized(nexus: Nexus, turns: int = 2) -> Session:
    """A session with a long summary, and some short turns behind it."""
    session = nexus.session("s", model="large")
    for number in range(4):
        exchange(session, number, words=800)
    for number in range(4, 7):
        exchange(session, number, words=2)
    assert session.compact() is not None
    for number in range(7, 7 + turns):
        exchange(session, number, words=2)
    assert session.preview("And?").token_budget.total > 3000
    return session


def long_summary(ledger: StoreLedger, first_kept: str, *, closes: bool = True, **data: object) -> Step:
    """A compaction with a long summary at the end of the session."""
    said = {"summary": "They found much. " * 1000, "prose": "They found much.\n" * 1000, "first_kept": first_kept}
    return add_step(ledger, "s", NewStep(kind="compaction", closes=closes, data=said | data))


def kept_by(ledger: StoreLedger, compaction: Step) -> list[Step]:
    """What was said in what a compaction keeps."""
    steps = steps_of(ledger, "s")
    first = next(step.position for step in steps if step.id == compaction_of(compaction).first_kept)
    return [step for step in steps if step.position >= first and step.kind in ("input", "reply")]


# ---- it goes on -----------------------------------------------------------------------------------------------------


@pytest.mark.acceptance("D-04", "C-23")
def test_a_summary_that_does_not_fit_any_more_is_made_shorter(open_nexus: OpenNexus, ledger: StoreLedger) -> None:
    nexus = open_nexus(plugins=[Sizes()], summarize=Fake(at_length))
    summarized(nexus)

    context = nexus.session("s", model="small").ask("And?")

    first, second = compactions(ledger)
    assert (compaction_of(second).trigger, compaction_of(second).summarizer) == ("context_limit", "given")
    assert context.token_budget.total <= SMALL
    assert context.history[0].extra["_summary"] == second.id
    assert len(str(compaction_of(second).summary)) < len(str(compaction_of(first).summary)) / 2


def test_inside_a_turn_the_summary_alone_is_made_shorter(open_nexus: OpenNexus, ledger: StoreLedger) -> None:
    fake = Fake(at_length)
    nexus = open_nexus(plugins=[Sizes()], summarize=fake)
    session = nexus.session("s", model="large")
    session.ask("Why?")
    work(session, 0)
    long_summary(ledger, steps_of(ledger, "s")[0].id, closes=False)
    before = session.next()

    context = nexus.session("s", model="any").next()

    last = compactions(ledger)[-1]
    assert before.token_budget.total > 3000
    assert context.token_budget.total < 0.25 * 1800 + 100  # a quarter of the window, and what must stay
    assert context.messages[1:] == before.messages[1:]
    assert (fake.asked[-1].messages, "RECORD" in fake.asked[-1].prompt) == ((), False)
    assert fake.asked[-1].previous in fake.asked[-1].prompt
    (told,) = (each.message for each in context.findings if each.code == "compacted")
    assert told.startswith("summary shortened by given: ")
    assert session.expand(last.id) == ()


def test_what_is_pinned_behind_it_stays(open_nexus: OpenNexus, ledger: StoreLedger) -> None:
    nexus = open_nexus(plugins=[Sizes()], summarize=Fake(at_length))
    session = summarized(nexus, turns=0)
    (first,) = compactions(ledger)
    for step in kept_by(ledger, first):
        session.pin(step.id)
    before = session.preview("And?")

    context = nexus.session("s", model="small").ask("And?")

    assert context.token_budget.total <= SMALL
    assert context.history[1:] == before.history[1:]
    assert len(context.history) == 7


def test_a_summary_that_another_program_wrote_is_made_shorter_too(open_nexus: OpenNexus, ledger: StoreLedger) -> None:
    add_turns(ledger, "s", "one", "two")
    tip = steps_of(ledger, "s")[-1]
    told = (Message("user", "They said: " + "much more " * 900 + "see src/auth/login.py " + "and more " * 900),)
    add_step(ledger, "s", NewStep(kind="compaction", closes=True, messages=told, data={"first_kept": tip.id}))

    context = open_nexus(plugins=[Sizes()]).session("s", model="small").ask("And?")

    assert context.token_budget.total <= SMALL
    assert "They said: much more" in context.history[0].content
    assert "src/auth/login.py" in context.history[0].content


# ---- whoever summarizes ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", [RuntimeError("no"), ""], ids=["raises", "says nothing"])
def test_where_nobody_else_can_no_model_is_needed(
    open_nexus: OpenNexus, ledger: StoreLedger, nexus_home: Path, answer: object
) -> None:
    configure(nexus_home, summarizers=["given"])
    fake = Fake(at_length)
    nexus = open_nexus(plugins=[Sizes()], summarize=fake)
    summarized(nexus)
    fake.answer = answer

    context = nexus.session("s", model="small").ask("And?")

    last = compactions(ledger)[-1]
    assert (compaction_of(last).summarizer, len(list(compaction_of(last).failures))) == ("extractive", 1)
    assert context.token_budget.total <= SMALL


def test_without_a_model_the_best_lines_of_the_summary_stay(open_nexus: OpenNexus, ledger: StoreLedger) -> None:
    nexus = open_nexus(plugins=[Sizes()])
    session = nexus.session("s", model="large")
    session.ask("Why?")
    prose = "\n".join(f"They looked at file {each}, about {'rivers' if each % 9 else 'hills'}." for each in range(400))
    long_summary(ledger, steps_of(ledger, "s")[0].id, closes=False, prose=prose, summary=prose)

    report = nexus.session("s", model="small").compact(focus="rivers")

    assert report is not None
    assert (report.summarizer, report.turns, report.messages) == ("extractive", 0, 0)
    assert report.summary.count("rivers") > 3
    assert "hills" not in report.summary
    session.undo()
    again = nexus.session("s", model="small").compact(focus="rivers")
    assert again is not None
    assert again.summary == report.summary


def test_a_failure_before_in_the_same_turn_does_not_matter(
    open_nexus: OpenNexus, ledger: StoreLedger, nexus_home: Path
) -> None:
    configure(nexus_home, summarizers=["given"])
    fake = Fake(RuntimeError("no"))
    nexus = open_nexus(plugins=[Sizes()], summarize=fake)
    session = nexus.session("s", model="small")
    for number in range(8):
        exchange(session, number)
    session.ask("Why? " + "word " * 100)
    assert not compactions(ledger)
    long_summary(ledger, steps_of(ledger, "s")[-2].turn, closes=False)

    context = session.next()

    assert len(fake.asked) == 2
    assert compaction_of(compactions(ledger)[-1]).summarizer == "extractive"
    assert context.token_budget.remaining >= 0


# ---- brakes ---------------------------------------------------------------------------------------------------------


def test_compactions_for_a_larger_window_are_no_reason_to_stop(open_nexus: OpenNexus, ledger: StoreLedger) -> None:
    nexus = open_nexus(plugins=[Sizes()], summarize=Fake(at_length))
    session = nexus.session("s", model="large")
    session.ask("Why?")
    for _ in range(2):
        long_summary(ledger, steps_of(ledger, "s")[0].id, closes=False, limit=92_000)

    context = nexus.session("s", model="any").next()

    assert len(compactions(ledger)) == 3
    assert context.token_budget.remaining >= 0


def test_compactions_that_brought_little_are_no_reason_to_stop(open_nexus: OpenNexus, ledger: StoreLedger) -> None:
    nexus = open_nexus(plugins=[Sizes()], summarize=Fake(at_length))
    summarized(nexus)
    long_summary(ledger, steps_of(ledger, "s")[-1].turn, limit=SMALL, gains=[[100, 99], [100, 99]])

    context = nexus.session("s", model="small").ask("And?")

    assert context.token_budget.total <= SMALL


def test_where_even_the_shortest_does_not_fit_nobody_is_asked_for_ever(
    open_nexus: OpenNexus, ledger: StoreLedger
) -> None:
    nexus = open_nexus(plugins=[Sizes(window=133)], summarize=Fake(at_length))
    summarized(nexus)
    session = nexus.session("s", model="any")

    for _ in range(5):
        with pytest.raises(BudgetError):
            session.next() if session.is_open else session.ask("And?")

    assert len(compactions(ledger)) == 2


# ---- where it ends --------------------------------------------------------------------------------------------------


@pytest.mark.acceptance("D-06")
def test_what_must_stay_and_does_not_fit_is_an_error_that_lists_it(open_nexus: OpenNexus, ledger: StoreLedger) -> None:
    nexus = open_nexus(plugins=[Sizes()], summarize=Fake(at_length))
    summarized(nexus)

    with pytest.raises(BudgetError) as caught:
        nexus.session("s", model="small").ask("word " * 700)

    assert set(caught.value.parts) == {"system", "event", "summary"}
    assert len(compactions(ledger)) == 1


def test_where_nothing_is_summarised_without_being_asked_to_asking_helps(
    open_nexus: OpenNexus, ledger: StoreLedger, nexus_home: Path
) -> None:
    configure(nexus_home, enabled=False)
    nexus = open_nexus(plugins=[Sizes()], summarize=Fake(at_length))
    summarized(nexus)
    session = nexus.session("s", model="small")

    with pytest.raises(BudgetError) as caught:
        session.ask("And?")

    assert caught.value.pieces[0][0] == f"step {compactions(ledger)[0].id}"
    assert session.compact() is not None
    assert session.next().token_budget.total <= SMALL


def test_what_was_sent_before_and_after_can_be_replayed(open_nexus: OpenNexus) -> None:
    nexus = open_nexus(plugins=[Sizes()], summarize=Fake(at_length))
    session = summarized(nexus)
    long = session.ask("And?")
    one = session.record(says("So.", name="one"))
    session = nexus.session("s", model="small")
    short = session.ask("And?")
    two = session.record(says("So.", name="two"))

    assert neutral(nexus.replay(one.id)) == neutral(long)
    assert neutral(nexus.replay(two.id)) == neutral(short)


def test_undoing_gives_the_long_summary_back(open_nexus: OpenNexus, ledger: StoreLedger) -> None:
    nexus = open_nexus(plugins=[Sizes()], summarize=Fake(at_length))
    session = summarized(nexus)
    session.ask("And?")
    session.interrupt()
    first = compactions(ledger)[0].id
    small = nexus.session("s", model="small")
    assert small.compact() is not None

    small.undo()

    again = nexus.session("s", model="large").ask("And?")
    assert again.history[0].extra["_summary"] == first
    assert again.token_budget.total > 3000


def test_a_summary_that_fits_is_left_alone(open_nexus: OpenNexus, ledger: StoreLedger) -> None:
    nexus = open_nexus(plugins=[Sizes()], summarize=Fake(at_length))
    session = summarized(nexus, turns=0)

    assert session.compact() is None
    assert len(compactions(ledger)) == 1


def test_a_summary_far_back_is_found_by_a_program_that_read_only_the_end(open_nexus: OpenNexus) -> None:
    nexus = open_nexus(plugins=[Sizes()], summarize=Fake(at_length))
    summarized(nexus, turns=20)
    session = nexus.session("s", model="small")
    with pytest.raises(BudgetError):
        session.ask("word " * 900)
    session.interrupt()

    session = open_nexus(plugins=[Sizes()], summarize=Fake(at_length)).session("s", model="small")

    with pytest.raises(BudgetError):
        session.ask("word " * 900)
    session.interrupt()
    assert session.ask("And?").token_budget.total <= SMALL


@pytest.mark.slow
@given(window=st.integers(500, 9000), asked=st.integers(1, 300), turns=st.integers(0, 3))
@settings(max_examples=examples(15), deadline=None)
def test_whatever_the_window_only_what_must_stay_can_be_too_much(window: int, asked: int, turns: int) -> None:
    ledger = MemoryLedger()
    with Nexus(layers=False, installed=False, ledger=ledger, plugins=[Sizes(window)], summarize=at_length) as nexus:
        session = nexus.session("s", model="large")
        exchange(session, 0, words=3000)
        for number in range(1, 4):
            exchange(session, number, words=2)
        session.compact()
        for number in range(4, 4 + turns):
            exchange(session, number, words=2)
        session = nexus.session("s", model="any")
        available = nexus.session("x", model="any").preview("word").token_budget.available
        try:
            parts = session.ask("word " * asked).token_budget.used
        except BudgetError as error:
            parts = error.parts

    floor = parts["system"] + parts["event"] + min(200, available // 4)
    assert (floor > available) == ("summary" in parts)
