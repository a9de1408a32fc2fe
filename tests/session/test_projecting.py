"""Which messages a model reads of the steps that are kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from nexus_core.errors import LedgerError
from nexus_core.ledger.ledger import StoreLedger
from nexus_core.testing import write_files
from nexus_core.thread.cache import TokenSizer
from nexus_core.thread.projection import DEFAULT_MARKER as SUMMARY
from nexus_core.thread.projection import project_steps
from nexus_core.tokens.counters import CachingCounter
from nexus_core.tokens.estimator import SimpleTokenCounter
from nexus_core.types.ledger import NewStep, Step
from nexus_core.types.messages import Message, Text, ToolCall, ToolResult
from tests.session.conftest import EVERYWHERE, OpenSession
from tests.session.support import add_step, add_turns, calls, says, spoken, steps_of

pytestmark = [EVERYWHERE, pytest.mark.usefixtures("no_session_start")]


def texts_of(messages: tuple[Message, ...]) -> list[str]:
    return [spoken(message) for message in messages]


def compact(ledger: StoreLedger, summary: str, first_kept: str | None) -> Step:
    data = {"summary": summary, "first_kept": first_kept}
    return add_step(ledger, "s", NewStep(kind="compaction", closes=True, data=data))


@pytest.mark.acceptance("H-01", "H-02")
def test_without_a_compaction_everything_is_there_in_order(ledger: StoreLedger, open_session: OpenSession) -> None:
    add_turns(ledger, "s", "1", "2", "3")

    assert texts_of(open_session().messages) == ["1", "re 1", "2", "re 2", "3", "re 3"]


@pytest.mark.acceptance("C-11", "H-03", "H-04", "H-05")
def test_what_a_compaction_keeps_begins_with_its_first_kept_turn(
    ledger: StoreLedger, open_session: OpenSession
) -> None:
    turns = add_turns(ledger, "s", "1", "2", "3", "4", "5")
    compact(ledger, "1 to 3", turns[3].id)
    add_turns(ledger, "s", "6")

    messages = open_session().messages

    assert texts_of(messages) == [f"{SUMMARY}\n1 to 3", "4", "re 4", "5", "re 5", "6", "re 6"]
    assert messages[0].role == "user"


@pytest.mark.acceptance("C-11")
def test_a_compaction_that_keeps_nothing_is_followed_by_what_came_after(
    ledger: StoreLedger, open_session: OpenSession
) -> None:
    add_turns(ledger, "s", "1", "2")
    compact(ledger, "1 and 2", None)
    add_turns(ledger, "s", "3")

    assert texts_of(open_session().messages) == [f"{SUMMARY}\n1 and 2", "3", "re 3"]


@pytest.mark.acceptance("H-03", "H-09")
def test_the_latest_compaction_counts(ledger: StoreLedger, open_session: OpenSession) -> None:
    turns = add_turns(ledger, "s", "1", "2", "3")
    compact(ledger, "1", turns[1].id)
    compact(ledger, "1 and 2", turns[2].id)

    assert texts_of(open_session().messages) == [f"{SUMMARY}\n1 and 2", "3", "re 3"]


@pytest.mark.acceptance("H-07")
def test_a_reverted_compaction_gives_back_what_it_stood_for(ledger: StoreLedger, open_session: OpenSession) -> None:
    turns = add_turns(ledger, "s", "1", "2")
    compact(ledger, "1", turns[1].id)
    add_step(ledger, "s", NewStep(kind="revert", closes=True, data={"restores": None}))

    assert texts_of(open_session().messages) == ["1", "re 1", "2", "re 2"]


def test_reverting_a_compaction_makes_the_one_before_it_count(ledger: StoreLedger, open_session: OpenSession) -> None:
    turns = add_turns(ledger, "s", "1", "2", "3")
    first = compact(ledger, "1", turns[1].id)
    compact(ledger, "1 and 2", turns[2].id)
    add_step(ledger, "s", NewStep(kind="revert", closes=True, data={"restores": first.id}))

    assert texts_of(open_session().messages) == [f"{SUMMARY}\n1", "2", "re 2", "3", "re 3"]


@pytest.mark.acceptance("C-11")
def test_a_first_kept_turn_of_another_branch_is_an_error(ledger: StoreLedger, open_session: OpenSession) -> None:
    add_turns(ledger, "s", "1")
    (elsewhere,) = add_turns(ledger, "other", "x")
    compact(ledger, "1", elsewhere.id)

    with pytest.raises(LedgerError, match=f"step {elsewhere.id} is not among those before"):
        _ = open_session().messages


def test_a_first_kept_turn_that_does_not_exist_is_an_error(ledger: StoreLedger, open_session: OpenSession) -> None:
    add_turns(ledger, "s", "1")
    compact(ledger, "1", "nowhere")

    with pytest.raises(LedgerError, match="step nowhere is not among those before"):
        open_session().ask("And?")


def test_where_the_kept_history_begins_inside_the_open_turn_its_input_stays(
    ledger: StoreLedger, open_session: OpenSession
) -> None:
    add_turns(ledger, "s", "earlier")
    session = open_session()
    session.ask("Why?")
    for name in ("a", "b", "c"):
        step = session.record(calls(name, name=f"msg_{name}"))
        session.record(step.tool_calls[0].result(f"result {name}"))
    *_, first_kept, tip = steps_of(ledger, "s")
    data = {"summary": "a and b were looked at", "first_kept": first_kept.id, "epoch": tip.payload.epoch}
    add_step(ledger, "s", NewStep(kind="compaction", data=data))

    context = session.next()

    assert texts_of(context.history) == [f"{SUMMARY}\na and b were looked at"]
    assert spoken(context.current_message) == "Why?"
    assert [call.id for message in context.progress for call in message.tool_calls] == ["c"]
    session.record(says("Because.", name="msg_d"))
    assert texts_of(session.ask("And?").history)[:2] == [f"{SUMMARY}\na and b were looked at", "Why?"]


@pytest.mark.acceptance("C-10")
def test_a_sealed_input_stands_as_it_was_sent(ledger: StoreLedger, open_session: OpenSession) -> None:
    ledger.create("s")
    add_step(ledger, "s", NewStep(kind="input", messages=(Message("user", "Why?"),)))
    add_step(ledger, "s", NewStep(kind="sealed", messages=(Message("user", "[Monday] Why?"),)))
    add_step(ledger, "s", NewStep(kind="reply", closes=True, messages=(Message("assistant", "Because."),)))

    assert texts_of(open_session().messages) == ["[Monday] Why?", "Because."]


@pytest.mark.acceptance("H-06")
def test_kept_turns_have_their_calls_and_results(ledger: StoreLedger, open_session: OpenSession) -> None:
    add_turns(ledger, "s", "1")
    session = open_session()
    session.ask("Why?")
    step = session.record(calls("t1"))
    session.record(step.tool_calls[0].result("found"))
    session.next()
    session.record(says("Because.", name="msg_2"))
    compact(ledger, "one", steps_of(ledger, "s")[1].id)

    parts = [part for message in session.messages for part in message.parts]

    assert any(isinstance(part, ToolCall) for part in parts)
    assert any(isinstance(part, ToolResult) for part in parts)
    assert Text("1") not in parts


@pytest.mark.acceptance("H-08", "C-25")
def test_a_fork_sees_its_own_past_and_not_the_other_future(open_session: OpenSession) -> None:
    session = open_session()
    session.ask("Why?")
    session.record(says("Because."))
    fork = session.fork("f")
    session.ask("And?")
    session.record(says("So.", name="msg_2"))

    fork.ask("But?")
    fork.record(says("No.", name="msg_3"))

    assert texts_of(session.messages) == ["Why?", "Because.", "And?", "So."]
    assert texts_of(fork.messages) == ["Why?", "Because.", "But?", "No."]


def test_a_fork_begins_without_the_open_turn_and_with_model_tools_and_epoch(
    ledger: StoreLedger, open_session: OpenSession, tmp_path: Path
) -> None:
    write_files(tmp_path / "work", {"NEXUS.md": "Be brief.\n"})
    session = open_session()
    first = session.ask("Why?")
    session.record(says("Because."))
    session.ask("And?")
    session.record(calls("t1", name="msg_2"))

    write_files(tmp_path / "work", {"NEXUS.md": "Be verbose.\n"})
    session.fork("f")
    context = open_session("f", model=None, tools=None).ask("But?")

    assert texts_of(context.history) == ["Why?", "Because."]
    assert spoken(context.current_message).endswith("But?")
    assert (context.model, context.tools, context.system_prompt) == (first.model, first.tools, first.system_prompt)
    record = ledger.session("f")
    assert record is not None
    assert record.origin == "s"
    assert [call.id for call in session.pending_calls] == ["t1"]


@pytest.mark.acceptance("C-17")
def test_roles_are_kept_as_they_are_spoken(open_session: OpenSession) -> None:
    session = open_session()
    session.ask("Why?")
    step = session.record(calls("t1"))
    session.record(step.tool_calls[0].result("found"))

    assert [message.role for message in session.messages] == ["user", "assistant", "tool"]


def test_messages_that_were_taken_back_are_not_sent(ledger: StoreLedger, open_session: OpenSession) -> None:
    add_turns(ledger, "s", "one", "two")
    add_step(ledger, "s", NewStep(kind="revert", closes=True, data={"restores": None, "popped": 1}))
    add_turns(ledger, "s", "three")

    assert texts_of(open_session().messages) == ["one", "re one", "two", "three", "re three"]


def test_whoever_takes_back_more_than_there_is_takes_back_all(ledger: StoreLedger, open_session: OpenSession) -> None:
    add_turns(ledger, "s", "one")
    add_step(ledger, "s", NewStep(kind="revert", closes=True, data={"popped": 5}))

    assert open_session().messages == ()


def test_a_projection_that_continues_the_last_one_is_the_same_as_one_from_the_start(
    ledger: StoreLedger, open_session: OpenSession
) -> None:
    session = open_session()
    for number in range(4):
        session.ask(f"question {number}")
        reply = session.record(calls(f"a{number}", f"b{number}", name=f"c{number}"))
        for call in reversed(reply.tool_calls):  # recorded in another order than they were called
            session.record(call.result(f"found {call.id}"))
        session.record(says(f"answer {number}", name=f"m{number}"))
        if number == 2:
            add_step(ledger, "s", NewStep(kind="revert", closes=True, data={"restores": None, "popped": 2}))
    session.ask("question 4")
    steps = steps_of(ledger, "s")
    counter = CachingCounter(SimpleTokenCounter())
    shared = TokenSizer(counter)

    continued = [project_steps(steps[:end], shared) for end in range(1, len(steps) + 1)]

    assert continued == [project_steps(steps[:end], TokenSizer(counter)) for end in range(1, len(steps) + 1)]
    assert shared.projected is not None
    assert project_steps(steps[3:], shared) == project_steps(steps[3:], TokenSizer(counter))
