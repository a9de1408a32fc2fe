"""The first message of a new session says when it started."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pytest

from nexus_core.ledger.in_memory import MemoryLedger
from nexus_core.ledger.ledger import StoreLedger
from nexus_core.testing import write_files
from nexus_core.transfer.exporter import export_session, import_export, read_export
from nexus_core.types.messages import Message
from tests.session.compacted import Fake, Words, exchange, long_session
from tests.session.conftest import EVERYWHERE, Clock, OpenNexus, OpenSession
from tests.session.support import add_turns, calls, kinds_of, says, spoken, steps_of

pytestmark = EVERYWHERE


def started(ms: int = Clock.ms) -> str:
    """The line for a time, in the local time of this machine."""
    return f"[Session started: {datetime.fromtimestamp(ms // 1000):%Y-%m-%d %H:%M} (local)]"  # noqa: DTZ006 - local


@pytest.mark.acceptance("E-02")
def test_session_begins_with_the_time_it_started(open_session: OpenSession, ledger: StoreLedger, clock: Clock) -> None:
    session = open_session()

    first = session.ask("Why?")
    session.record(says("Because."))
    clock.ms += 3_600_000
    second = session.ask("And?")

    assert [message.content for message in first.history] == [started()]
    assert first.messages[0] == Message("user", started(), extra=first.messages[0].extra)
    assert [spoken(message) for message in second.history] == [started(), "Why?", "Because."]
    assert second.messages[:2] == first.messages
    assert kinds_of(ledger, "s")[:3] == ["input", "input", "sealed"]
    assert first.to("anthropic")["messages"][0] == {"role": "user", "content": started()}


@pytest.mark.acceptance("E-02")
def test_preview_begins_as_the_session_will(open_session: OpenSession, ledger: StoreLedger) -> None:
    session = open_session()

    tried = session.preview("Why?")

    assert ledger.session("s") is None
    asked = session.ask("Why?")
    assert tried.messages == asked.messages
    assert tried.token_budget == asked.token_budget


@pytest.mark.acceptance("E-02", "Y-05")
def test_start_is_stored_and_replayed_as_it_was(open_session: OpenSession, open_nexus: OpenNexus, clock: Clock) -> None:
    session = open_session()
    context = session.ask("Why?")
    reply = session.record(says("Because."))
    clock.ms += 86_400_000

    replayed = open_nexus().replay(reply)

    assert replayed.messages == context.messages
    assert replayed.to("anthropic") == context.to("anthropic")


@pytest.mark.acceptance("E-02")
def test_start_is_neither_a_turn_nor_the_parent_of_one(open_session: OpenSession, ledger: StoreLedger) -> None:
    session = open_session()

    first = session.ask("Why?")
    session.record(says("Because."))
    second = session.ask("And?")

    assert (first.parent_turn_id, second.parent_turn_id) == (None, first.turn_id)
    assert [step.payload.turns for step in steps_of(ledger, "s")] == [0, 1, 1, 1, 2, 2]
    assert repr(session) == "Session('s', model='claude-sonnet-4', 2 turns)"


@pytest.mark.acceptance("E-02")
def test_messages_and_said_both_begin_with_the_start(open_session: OpenSession) -> None:
    session = open_session()
    session.ask("Why?")
    session.record(says("Because."))

    assert [spoken(message) for message in session.messages] == [started(), "Why?", "Because."]
    assert [message.content for message in session.original_messages] == [started(), "Why?", "Because."]


@pytest.mark.acceptance("E-02")
def test_session_of_an_old_ledger_goes_on_without_a_start(open_nexus: OpenNexus, ledger: StoreLedger) -> None:
    add_turns(ledger, "old", "hello")

    context = open_nexus().session("old", model="claude-sonnet-4").ask("And?")

    assert [spoken(message) for message in context.messages] == ["hello", "re hello", "And?"]


@pytest.mark.acceptance("E-02")
def test_fork_inherits_the_start(open_session: OpenSession, clock: Clock) -> None:
    session = open_session()
    session.ask("Why?")
    session.record(says("Because."))
    clock.ms += 3_600_000

    fork = session.fork("other").ask("Or else?")

    assert [spoken(message) for message in fork.messages] == [started(), "Why?", "Because.", "Or else?"]


def test_fork_of_an_empty_session_has_no_start(open_session: OpenSession, ledger: StoreLedger) -> None:
    ledger.create("s")

    context = open_session().fork("other").ask("Why?")

    assert [spoken(message) for message in context.messages] == ["Why?"]


@pytest.mark.acceptance("E-02")
def test_worker_says_when_it_started_itself(open_session: OpenSession, clock: Clock) -> None:
    session = open_session()
    session.ask("Why?")
    call = session.record(calls("t1")).tool_calls[0]
    clock.ms += 3_600_000

    worker = session.spawn("Read the log.", call=call)

    assert [spoken(message) for message in worker.ask("Begin.").messages] == [started(clock.ms), "Begin."]


def test_start_can_be_switched_off(open_session: OpenSession, nexus_home: Path) -> None:
    write_files(nexus_home, {"config.json": json.dumps({"context": {"session_start": False}})})

    assert [spoken(message) for message in open_session().ask("Why?").messages] == ["Why?"]


def test_call_without_a_session_has_no_start(open_nexus: OpenNexus) -> None:
    nexus = open_nexus()

    context = nexus.assemble(nexus.request(message="Why?", model="claude-sonnet-4"))

    assert [spoken(message) for message in context.messages] == ["Why?"]


def test_compaction_neither_quotes_nor_counts_the_start(open_nexus: OpenNexus) -> None:
    session = long_session(open_nexus(plugins=[Words()], summarize=Fake()), turns=5)

    report = session.compact()

    assert report is not None
    assert report.turns == 2
    assert "Session started" not in report.summary
    assert "Session started" not in str(session.messages)
    session.undo()
    assert session.messages[0].content == started()


def test_start_alone_is_nothing_to_summarise(open_session: OpenSession) -> None:
    session = open_session()
    session.ask("Why?")
    session.record(says("Because."))

    assert session.compact() is None


@pytest.mark.acceptance("E-02", "T-07")
def test_middle_out_keeps_the_first_question_of_a_session(open_nexus: OpenNexus, nexus_home: Path) -> None:
    settings = {"truncation": {"strategy": "middle_out"}, "compaction": {"enabled": False}}
    write_files(nexus_home, {"config.json": json.dumps(settings)})
    session = open_nexus(plugins=[Words()]).session("s", model="words")
    for number in range(15):
        exchange(session, number)

    texts = [spoken(message) for message in session.preview("And?").history]

    assert texts[0] == started()
    assert texts[1].startswith("question 0 ")
    assert not any(text.startswith("question 2 ") for text in texts)


def test_exported_session_comes_back_with_its_start(open_session: OpenSession, ledger: StoreLedger) -> None:
    session = open_session()
    session.ask("Why?")
    session.record(says("Because."))
    target = MemoryLedger()

    import_export(target, read_export("".join(export_session(ledger, "s")), "export.jsonl"))

    assert [(step.id, step.digest, step.messages) for step in steps_of(target, "s")] == [
        (step.id, step.digest, step.messages) for step in steps_of(ledger, "s")
    ]
