"""What to send after a provider refused a call as too long."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nexus_core.errors import SummaryError, TurnError
from nexus_core.ledger.ledger import StoreLedger
from nexus_core.session.session import Session
from nexus_core.testing import write_files
from tests.session.compacted import (
    AVAILABLE,
    Fake,
    Words,
    compactions,
    configure,
    exchange,
    long_session,
    work,
)
from tests.session.conftest import OpenNexus
from tests.session.support import calls, compaction_of, kinds_of, says, spoken


class RefusedError(Exception):
    """What an SDK raises."""

    def __init__(self, message: str, **attributes: Any) -> None:
        super().__init__(message)
        self.message = message
        for name, value in attributes.items():
            setattr(self, name, value)


def too_long(asked: int = 1801, limit: int = 1800) -> RefusedError:
    return RefusedError(f"prompt is too long: {asked} tokens > {limit} maximum", status_code=400)


def refused_session(open_nexus: OpenNexus, turns: int = 7, words: int = 40) -> Session:
    session = long_session(open_nexus(plugins=[Words()], summarize=Fake()), turns, words=words)
    session.ask("And?")
    return session


@pytest.mark.acceptance("D-05")
def test_a_call_that_was_too_long_is_made_shorter_once(open_nexus: OpenNexus, ledger: StoreLedger) -> None:
    session = refused_session(open_nexus, 10)
    error = too_long()

    context = session.recover(error)

    (step,) = compactions(ledger)
    assert compaction_of(step).trigger == "overflow_recovery"
    assert context.token_budget.total <= 0.4 * AVAILABLE
    assert spoken(context.current_message) == "And?"
    with pytest.raises(RefusedError) as caught:
        session.recover(error)
    assert caught.value is error
    assert len(compactions(ledger)) == 1
    session.record(says("So.", name="msg_a"))
    session.ask("word " * 150)
    assert session.recover(too_long()).token_budget.remaining > 0


@pytest.mark.acceptance("D-05")
def test_after_a_restart_it_is_not_made_shorter_again(open_nexus: OpenNexus, ledger: StoreLedger) -> None:
    refused_session(open_nexus).recover(too_long())
    restarted = open_nexus(plugins=[Words()], summarize=Fake()).session("s")

    with pytest.raises(RefusedError) as caught:
        restarted.recover(error := too_long())

    assert caught.value is error
    assert "made shorter once already" in caught.value.__notes__[0]
    assert len(compactions(ledger)) == 1


@pytest.mark.parametrize(
    "error",
    [
        RefusedError("rate limit reached", status_code=429),
        RefusedError("overloaded", status_code=529),
        KeyError("x"),
        KeyboardInterrupt(),
        SummaryError([("a", "failed")]),
    ],
    ids=lambda error: type(error).__name__ + str(getattr(error, "status_code", "")),
)
def test_any_other_error_is_raised_as_it_is(open_nexus: OpenNexus, ledger: StoreLedger, error: BaseException) -> None:
    session = refused_session(open_nexus)
    before = kinds_of(ledger, "s")

    with pytest.raises(type(error)) as caught:
        session.recover(error)

    assert caught.value is error
    assert not hasattr(error, "__notes__")
    assert kinds_of(ledger, "s") == before


def test_the_number_in_the_error_says_how_short_it_must_be(open_nexus: OpenNexus, ledger: StoreLedger) -> None:
    session = refused_session(open_nexus, 9)
    sent = session.next().token_budget.total

    context = session.recover(too_long(asked=sent * 2, limit=1800))

    # The provider counts twice as much as we do, so that half as much may be sent.
    assert context.token_budget.total <= 0.4 * AVAILABLE / 2 + 3 * 100
    assert compaction_of(compactions(ledger)[0]).tokens_before == sent


def test_what_a_provider_counts_is_remembered(open_nexus: OpenNexus, ledger: StoreLedger) -> None:
    session = long_session(open_nexus(plugins=[Words()], summarize=Fake()), 8)
    room = session.preview("word").token_budget.remaining
    sent = session.ask("word " * (room - 50)).token_budget.total
    assert sent > 1000  # less would say too little

    session.recover(too_long(asked=int(sent * 1.5)))

    assert compaction_of(compactions(ledger)[0]).calibration["words"][-1] == pytest.approx(1.5, abs=0.01)


def test_room_for_the_answer_does_not_count_as_the_providers_way_of_counting(
    open_nexus: OpenNexus, ledger: StoreLedger
) -> None:
    session = long_session(open_nexus(plugins=[Words()], summarize=Fake()), 8)
    room = session.preview("word").token_budget.remaining
    sent = session.ask("word " * (room - 50)).token_budget.total

    said = f"input length and `max_tokens` exceed context limit: {sent} + 700 > 1800, decrease input length"
    context = session.recover(RefusedError(said, status_code=400))

    assert compaction_of(compactions(ledger)[0]).calibration["words"] == [1.0]
    assert context.token_budget.total <= 1800 - 700


def test_a_smaller_window_than_we_thought_counts(open_nexus: OpenNexus) -> None:
    session = refused_session(open_nexus, 8, words=20)

    context = session.recover(
        RefusedError("This model's maximum context length is 400 tokens.", code="context_length_exceeded")
    )

    assert context.token_budget.total <= 300


SMALL = RefusedError("This model's maximum context length is 600 tokens.", code="context_length_exceeded")


def test_a_smaller_window_is_remembered(open_nexus: OpenNexus, ledger: StoreLedger) -> None:
    session = refused_session(open_nexus, 8, words=20)
    session.recover(SMALL)
    session.record(says("So.", name="msg_a"))

    findings = []
    for number in range(20, 30):
        context = session.ask(f"question {number} " + "word " * 40)
        findings.append(context.findings[0])
        assert context.token_budget.limit == 600
        assert context.token_budget.total <= 450
        session.record(says(f"answer {number}", name=f"msg_{number}"))

    assert {finding.code for finding in findings} == {"smaller-window"}
    assert "reported a window of 600 tokens, not 1,800" in str(findings[0])
    assert [compaction_of(step).trigger for step in compactions(ledger)][:2] == [
        "overflow_recovery",
        "context_limit",
    ]


def test_a_session_that_is_opened_again_or_forked_knows_the_smaller_window(open_nexus: OpenNexus) -> None:
    session = refused_session(open_nexus, 8, words=20)
    session.recover(SMALL)
    session.record(says("So.", name="msg_a"))
    session.undo()

    again = open_nexus(plugins=[Words()], summarize=Fake()).session("s")

    assert again.preview("And?").token_budget.limit == 600
    assert again.fork("t").preview("And?").token_budget.limit == 600


def test_another_model_has_its_own_window(open_nexus: OpenNexus) -> None:
    session = refused_session(open_nexus, 8, words=20)
    session.recover(SMALL)
    session.record(says("So.", name="msg_a"))

    other = open_nexus(plugins=[Words()], summarize=Fake()).session("s", model="gpt-4o")

    assert other.preview("And?").token_budget.limit == 128_000


def test_whoever_corrects_the_window_in_the_settings_is_believed(open_nexus: OpenNexus, nexus_home: Path) -> None:
    session = refused_session(open_nexus, 8, words=20)
    session.recover(SMALL)
    session.record(says("So.", name="msg_a"))
    write_files(nexus_home, {"config.json": json.dumps({"models": {"words": {"window": 1000}}})})

    context = open_nexus(plugins=[Words()], summarize=Fake()).session("s").preview("And?")

    assert context.token_budget.limit == 1000
    assert context.findings == ()


def test_a_larger_window_than_we_thought_is_not_believed(open_nexus: OpenNexus, ledger: StoreLedger) -> None:
    session = refused_session(open_nexus, 8)

    session.recover(too_long(asked=9_000, limit=8_000))

    assert not compactions(ledger)[0].payload.windows


def test_where_it_could_not_be_made_shorter_nothing_is_remembered(open_nexus: OpenNexus) -> None:
    session = refused_session(open_nexus, 8)

    with pytest.raises(RefusedError):
        session.recover(RefusedError("maximum context length is 3 tokens", code="context_length_exceeded"))

    assert session.next().token_budget.limit == 1800


def test_three_turns_that_a_provider_refuses_are_summarised_all_the_same(
    open_nexus: OpenNexus, ledger: StoreLedger
) -> None:
    session = refused_session(open_nexus, 3, words=100)
    before = session.next().token_budget.total

    context = session.recover(RefusedError("too large", status_code=413))

    assert context.token_budget.total < before * 0.9
    (step,) = compactions(ledger)
    assert step.payload.request_bytes["words"].limit == context.token_budget.byte_limit < 10_000


def test_a_loop_of_tools_goes_on_after_it(open_nexus: OpenNexus, ledger: StoreLedger) -> None:
    session = refused_session(open_nexus)
    work(session, 9, rounds=3)
    session.next()

    context = session.recover(too_long())

    assert [call.id for message in context.progress for call in message.tool_calls] == ["c9_0", "c9_1", "c9_2"]
    reply = session.record(calls("c9_3", name="msg_x"))
    assert [call.id for call in reply.tool_calls] == ["c9_3"]
    assert list(ledger.verify()) == []


def test_without_an_open_turn_there_is_nothing_to_send(open_nexus: OpenNexus) -> None:
    session = long_session(open_nexus(plugins=[Words()], summarize=Fake()), 6)

    with pytest.raises(RefusedError):
        session.recover(too_long())


def test_where_nobody_can_summarise_the_error_is_raised_and_says_so(
    open_nexus: OpenNexus, ledger: StoreLedger, nexus_home: Path
) -> None:
    configure(nexus_home, summarizers=["given"])
    session = long_session(open_nexus(plugins=[Words()], summarize=Fake("")), 7, words=40)
    session.ask("And?")

    with pytest.raises(RefusedError) as caught:
        session.recover(too_long())

    assert "could not be summarized" in caught.value.__notes__[0]
    assert isinstance(caught.value.__cause__, SummaryError)
    assert not compactions(ledger)


def test_where_nothing_is_to_be_summarised_the_error_is_raised(open_nexus: OpenNexus, nexus_home: Path) -> None:
    configure(nexus_home, enabled=False)
    session = refused_session(open_nexus)

    with pytest.raises(RefusedError) as caught:
        session.recover(too_long())

    assert "compaction.enabled is false" in caught.value.__notes__[0]


def test_a_question_alone_that_is_too_long_cannot_be_helped(open_nexus: OpenNexus, ledger: StoreLedger) -> None:
    session = open_nexus(plugins=[Words()], summarize=Fake()).session("s", model="words")
    session.ask("word " * 900)

    with pytest.raises(RefusedError):
        session.recover(too_long(asked=3000))

    assert not compactions(ledger)
    session.interrupt()
    exchange(session, 1)
    with pytest.raises(TurnError):
        session.next()
