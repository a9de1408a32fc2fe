"""What a session allows, and when."""

from __future__ import annotations

from typing import Any, cast

import pytest
from openai.types.chat import ChatCompletionMessage

from nexus_core.dialects.rules import SILENT_ERROR_TEXT
from nexus_core.errors import (
    ConflictError,
    MessageError,
    PendingToolCallsError,
    TurnError,
    UnknownNameError,
    UsageError,
)
from nexus_core.ledger.ledger import StoreLedger
from nexus_core.session.record import INTERRUPTED_RESULT
from nexus_core.types.assembled import AgentResult
from nexus_core.types.messages import Image, Message, Reply, Text, ToolCall, ToolResult, Usage
from tests.session.conftest import EVERYWHERE, Clock, OpenSession
from tests.session.support import calls, gemini_calls, gemini_says, kinds_of, reply_of, says, spoken, steps_of

pytestmark = [EVERYWHERE, pytest.mark.usefixtures("no_session_start")]


@pytest.mark.acceptance("C-31")
def test_a_turn_is_open_until_an_answer_without_calls(open_session: OpenSession, ledger: StoreLedger) -> None:
    session = open_session()

    session.ask("Why?")
    asked = session.record(calls("t1"))
    session.record(asked.tool_calls[0].result("found"))
    session.next()
    answered = session.record(says("Because.", name="msg_2"))

    assert (asked.done, answered.done) == (False, True)
    assert answered.text == "Because."
    assert kinds_of(ledger, "s") == ["input", "sealed", "reply", "result", "reply"]
    assert len({step.turn for step in steps_of(ledger, "s")}) == 1


def test_each_record_is_one_step(open_session: OpenSession, ledger: StoreLedger) -> None:
    session = open_session()
    session.ask("Why?")
    step = session.record(calls("t1", "t2", "t3"))
    before = len(steps_of(ledger, "s"))

    for call in step.tool_calls:
        session.record(call.result("found"))

    assert len(steps_of(ledger, "s")) == before + 3


def test_a_second_open_turn_is_refused(open_session: OpenSession) -> None:
    session = open_session()
    session.ask("Why?")

    with pytest.raises(TurnError, match="a turn is open in session 's' already") as caught:
        session.ask("And why else?")

    assert "next() goes on with it" in str(caught.value)


def test_why_a_second_turn_is_refused_while_a_call_waits_says_that_its_result_comes_first(
    open_session: OpenSession,
) -> None:
    session = open_session()
    session.ask("Why?")
    session.record(calls("t1"))

    with pytest.raises(TurnError, match=r"waits for look \(t1\)") as caught:
        session.ask("And why else?")

    assert "record these results, then next() goes on with it" in str(caught.value)


def test_asking_may_give_up_the_open_turn(open_session: OpenSession, ledger: StoreLedger) -> None:
    session = open_session()
    session.ask("Why?")
    session.record(calls("t1", "t2"))

    context = session.ask("Never mind. Hello?", interrupt=True)

    results = [result for message in context.history for result in message.tool_results]
    assert [(result.call_id, result.text, result.is_error) for result in results] == [
        ("t1", INTERRUPTED_RESULT, True),
        ("t2", INTERRUPTED_RESULT, True),
    ]
    assert spoken(context.current_message) == "Never mind. Hello?"
    assert kinds_of(ledger, "s") == ["input", "sealed", "reply", "interrupted", "input", "sealed"]


def test_interrupting_keeps_the_results_that_came(open_session: OpenSession) -> None:
    session = open_session()
    session.ask("Why?")
    step = session.record(calls("t1", "t2", "t3"))
    session.record(step.tool_calls[1].result("found"))

    session.interrupt()

    texts = [result.text for message in session.messages for result in message.tool_results]
    assert texts == [INTERRUPTED_RESULT, "found", INTERRUPTED_RESULT]
    assert session.pending_calls == ()


def test_interrupting_without_an_open_turn_does_nothing(open_session: OpenSession, ledger: StoreLedger) -> None:
    session = open_session()
    session.ask("Why?")
    session.record(says("Because."))

    assert session.interrupt() is None
    assert kinds_of(ledger, "s") == ["input", "sealed", "reply"]


def test_next_names_the_calls_that_wait(open_session: OpenSession) -> None:
    session = open_session()
    session.ask("Why?")
    step = session.record(calls("t1", "t2"))
    session.record(step.tool_calls[0].result("found"))

    with pytest.raises(PendingToolCallsError, match=r"1 tool call without a result: look \(t2\)") as caught:
        session.next()

    assert caught.value.calls == ("look (t2)",)
    assert [call.id for call in session.pending_calls] == ["t2"]


def test_next_without_an_open_turn_is_refused(open_session: OpenSession) -> None:
    session = open_session()

    with pytest.raises(TurnError, match="no turn is open"):
        session.next()


def test_a_provider_that_pauses_is_asked_again_in_the_same_turn(open_session: OpenSession) -> None:
    session = open_session()
    session.ask("Search for it.")

    step = session.record(says("Still searching…", stop="pause_turn"))
    context = session.next()

    assert not step.done
    assert [message.content for message in context.progress] == ["Still searching…"]
    assert session.record(says("Found.", name="msg_2")).done


def test_an_interrupted_reply_ends_the_turn_and_its_calls_do_not_wait(open_session: OpenSession) -> None:
    session = open_session()
    session.ask("Why?")

    step = session.record(calls("t1", text="Let me"), interrupted=True)

    assert step.done
    assert step.text == "Let me"
    assert step.tool_calls == ()
    assert session.pending_calls == ()
    assert session.ask("Go on.").history[-1].tool_results[0].text == INTERRUPTED_RESULT


def test_an_interrupted_reply_has_one_result_for_every_call_with_its_id(open_session: OpenSession) -> None:
    session = open_session()
    session.ask("Why?")

    session.record(calls("t1", "t2"), interrupted=True)

    results = [result for message in session.messages for result in message.tool_results]
    assert [(result.call_id, result.text) for result in results] == [
        ("t1", INTERRUPTED_RESULT),
        ("t2", INTERRUPTED_RESULT),
    ]


def test_a_result_in_a_reply_answers_one_of_two_calls_with_its_id(open_session: OpenSession) -> None:
    session = open_session()
    session.ask("Why?")
    asked = Message("assistant", (ToolCall("t1", "look", {"path": "a"}), ToolCall("t1", "look", {"path": "b"})))

    step = session.record(Reply(messages=(asked, Message("tool", (ToolResult("t1", "found"),))), stop="tools"))

    assert [call.arguments for call in step.tool_calls] == [{"path": "b"}]


def test_a_lone_result_keeps_the_other_fields_of_its_message(open_session: OpenSession) -> None:
    session = open_session()
    session.ask("Why?")
    session.record(calls("t1"))
    block = {"type": "tool_result", "tool_use_id": "t1", "content": "found"}

    session.record({"role": "user", "content": [block], "newer_field": 1})

    assert session.next().to("anthropic")["messages"][-1]["newer_field"] == 1


def test_an_error_that_says_nothing_can_be_sent_to_anthropic(open_session: OpenSession) -> None:
    session = open_session()
    session.ask("Why?")
    (call,) = session.record(calls("t1")).tool_calls

    session.record(call.result("", is_error=True))
    (result,) = session.next().to("anthropic")["messages"][-1]["content"]

    assert result["content"] == [{"type": "text", "text": SILENT_ERROR_TEXT}] or result["content"] == SILENT_ERROR_TEXT
    assert result["is_error"]


@pytest.mark.parametrize(
    "lone", [says("Because."), ToolResult("t1", "found"), {"role": "tool", "tool_call_id": "t1", "content": "x"}]
)
def test_a_lone_reply_or_result_is_refused(open_session: OpenSession, ledger: StoreLedger, lone: object) -> None:
    session = open_session()

    with pytest.raises(TurnError):
        session.record(lone)

    assert ledger.session("s") is None


def test_a_reply_while_calls_wait_is_refused(open_session: OpenSession) -> None:
    session = open_session()
    session.ask("Why?")
    session.record(calls("t1"))

    with pytest.raises(TurnError, match=r"another reply is recorded already, and waits for results: look \(t1\)"):
        session.record(says("Because.", name="msg_2"))


# ---- results ------------------------------------------------------------------------------------------------------


def test_results_may_come_in_any_order_and_are_read_in_that_of_the_calls(open_session: OpenSession) -> None:
    session = open_session()
    session.ask("Why?")
    step = session.record(calls("t1", "t2", "t3"))

    for place in (2, 0, 1):
        session.record(step.tool_calls[place].result(f"result {place}"))

    results = [result for message in session.next().progress for result in message.tool_results]
    assert [(result.call_id, result.text) for result in results] == [
        ("t1", "result 0"),
        ("t2", "result 1"),
        ("t3", "result 2"),
    ]


def test_calls_with_one_id_keep_their_own_results(open_session: OpenSession) -> None:
    session = open_session()
    session.ask("Why?")
    step = session.record(calls("same", "same"))

    session.record(step.tool_calls[1].result("second"))
    session.record(step.tool_calls[0].result("first"))

    assert [result.text for message in session.next().progress for result in message.tool_results] == [
        "first",
        "second",
    ]


def test_calls_without_ids_keep_their_own_results(open_session: OpenSession) -> None:
    session = open_session(model="gemini-2.5-pro")
    session.ask("Why?")
    step = session.record(gemini_calls("look", "look", "listen"))

    for place in (2, 1, 0):
        session.record(step.tool_calls[place].result(f"result {place}"))

    (_, _, results) = session.next().to("gemini")["contents"]
    assert [part["functionResponse"]["name"] for part in results["parts"]] == ["look", "look", "listen"]
    assert [next(iter(part["functionResponse"]["response"].values())) for part in results["parts"]] == [
        "result 0",
        "result 1",
        "result 2",
    ]


def test_results_without_ids_answer_what_still_waits(open_session: OpenSession) -> None:
    session = open_session(model="gemini-2.5-pro")
    session.ask("Why?")
    step = session.record(gemini_calls("look", "look"))
    session.record(step.tool_calls[1].result("second"))
    first = {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {"output": "first"}}}]}

    session.record(first)
    again = session.record(first)

    assert again.duplicate
    assert [result.text for message in session.next().progress for result in message.tool_results][1] == "second"


def test_an_id_may_come_back_in_a_later_reply(open_session: OpenSession) -> None:
    session = open_session()
    session.ask("Why?")
    for turn in range(3):
        step = session.record(calls("call_0", name=f"msg_{turn}"))
        session.record(step.tool_calls[0].result(f"result {turn}"))

    context = session.next()

    results = [result.text for message in context.progress for result in message.tool_results]
    assert results == ["result 0", "result 1", "result 2"]
    ids = [
        block["id"]
        for message in context.to("anthropic", max_tokens=9)["messages"]
        if message["role"] == "assistant"
        for block in message["content"]
    ]
    assert len(set(ids)) == 3


@pytest.mark.parametrize(
    "results",
    [
        [
            {"role": "tool", "tool_call_id": "t2", "content": "two"},
            {"role": "tool", "tool_call_id": "t1", "content": "one"},
        ],
        [{"type": "function_call_output", "call_id": "t1", "output": "one"}, ToolResult("t2", "two")],
        [
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "t2", "content": "two"},
                    {"type": "tool_result", "tool_use_id": "t1", "content": "one"},
                ],
            }
        ],
        [[ToolResult("t1", "one"), ToolResult("t2", "two")]],
    ],
)
def test_results_may_be_messages_of_any_api(open_session: OpenSession, results: list[object]) -> None:
    session = open_session()
    session.ask("Why?")
    session.record(calls("t1", "t2"))

    for result in results:
        session.record(result)

    sent = session.next().to("anthropic", max_tokens=9)["messages"][-1]["content"]
    assert [(block["tool_use_id"], block["content"]) for block in sent] == [("t1", "one"), ("t2", "two")]


def test_a_result_may_be_parts(open_session: OpenSession) -> None:
    session = open_session()
    session.ask("Why?")
    step = session.record(calls("t1"))

    session.record(step.tool_calls[0].result([Text("a picture"), Image(mime="image/png", data="aGk=")], is_error=False))

    (result,) = session.next().progress[-1].tool_results
    assert result.parts == (Text("a picture"), Image(mime="image/png", data="aGk="))


def test_a_result_that_is_neither_text_nor_parts_is_refused(open_session: OpenSession) -> None:
    session = open_session()
    session.ask("Why?")
    step = session.record(calls("t1"))

    with pytest.raises(UsageError, match="the result of look must be text or parts, not dict") as caught:
        step.tool_calls[0].result({"found": True})  # type: ignore[dict-item]

    assert "json.dumps" in str(caught.value)


def test_a_result_of_no_call_is_refused(open_session: OpenSession) -> None:
    session = open_session()
    session.ask("Why?")
    session.record(calls("t1"))

    with pytest.raises(TurnError, match=r"a result of \(t9\) answers no call of this turn"):
        session.record(ToolResult("t9", "found"))


def test_results_and_words_in_one_message_are_refused(open_session: OpenSession) -> None:
    session = open_session()
    session.ask("Why?")
    session.record(calls("t1"))

    with pytest.raises(MessageError, match="brings results of tools and something else"):
        session.record(Message("user", (ToolResult("t1", "found"), Text("By the way…"))))


# ---- never the same thing twice -----------------------------------------------------------------------------------


def test_the_same_reply_again_is_the_same_step(open_session: OpenSession, ledger: StoreLedger) -> None:
    session = open_session()
    session.ask("Why?")
    first = session.record(calls("t1"))

    again = session.record(calls("t1"))

    assert (first.duplicate, again.duplicate) == (False, True)
    assert (again.id, again.tool_calls) == (first.id, first.tool_calls)
    assert kinds_of(ledger, "s").count("reply") == 1


def test_the_last_reply_again_is_the_same_step_although_the_turn_has_ended(open_session: OpenSession) -> None:
    session = open_session()
    session.ask("Why?")
    first = session.record(says("Because."))

    again = session.record(says("Because."))

    assert (again.id, again.done, again.duplicate) == (first.id, True, True)
    assert session.usage.output_tokens == 50


def test_an_earlier_reply_of_the_turn_again_is_the_same_step(open_session: OpenSession) -> None:
    session = open_session()
    session.ask("Why?")
    first = session.record(calls("t1"))
    session.record(first.tool_calls[0].result("found"))

    again = session.record(calls("t1"))

    assert (again.id, again.duplicate) == (first.id, True)


def test_a_reply_with_a_known_id_and_other_words_is_another_reply(open_session: OpenSession) -> None:
    session = open_session()
    session.ask("Why?")
    first = session.record(calls("t1", name="constant"))
    session.record(first.tool_calls[0].result("found"))

    second = session.record(calls("t2", name="constant"))

    assert not second.duplicate
    assert second.id != first.id


def test_the_same_words_of_a_server_without_ids_are_said_again(open_session: OpenSession) -> None:
    session = open_session(model="gemini-2.5-pro")
    session.ask("Wait for it.")
    first = session.record(gemini_calls("look"))
    retried = session.record(gemini_calls("look"))
    session.record(first.tool_calls[0].result("not yet"))

    second = session.record(gemini_calls("look"))

    assert (retried.duplicate, second.duplicate) == (True, False)
    session.record(second.tool_calls[0].result("now"))
    assert session.record(gemini_says("There.")).done


def test_the_same_result_again_is_the_same_step(open_session: OpenSession, ledger: StoreLedger) -> None:
    session = open_session()
    session.ask("Why?")
    (call,) = session.record(calls("t1")).tool_calls
    first = session.record(call.result("found \ud83d"))

    again = session.record(call.result("found \ud83d"))

    assert (again.id, again.duplicate) == (first.id, True)
    assert kinds_of(ledger, "s").count("result") == 1


def test_another_result_of_the_same_call_is_refused(open_session: OpenSession) -> None:
    session = open_session()
    session.ask("Why?")
    (call,) = session.record(calls("t1")).tool_calls
    session.record(call.result("found"))

    with pytest.raises(TurnError, match=r"look \(t1\) has another result already"):
        session.record(call.result("lost"))


def test_a_result_that_comes_after_it_was_given_up_is_refused(open_session: OpenSession) -> None:
    session = open_session()
    session.ask("Why?")
    (call,) = session.record(calls("t1")).tool_calls
    session.interrupt()

    with pytest.raises(TurnError, match=r"the turn in which look \(t1\) was called was interrupted"):
        session.record(call.result("found"))


# ---- whole turns --------------------------------------------------------------------------------------------------


@pytest.mark.acceptance("G-03", "G-05")
def test_the_result_of_an_agent_is_one_closed_turn_in_one_step(open_session: OpenSession, ledger: StoreLedger) -> None:
    session = open_session()
    result = AgentResult(
        messages=[
            {"role": "user", "content": "Why?"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "found"},
            {"role": "assistant", "content": "Because."},
        ],
        tool_calls=[ToolCall("c1", "look")],
        usage=Usage(input_tokens=5, output_tokens=7, cached_input_tokens=3),
        stop_reason="stop",
        error=None,
    )

    step = session.record(result)

    (kept,) = steps_of(ledger, "s")
    assert (kept.kind, kept.closes, len(kept.messages)) == ("turn", True, 4)
    assert step.done
    assert step.text == "Because."
    assert session.usage == Usage(input_tokens=5, output_tokens=7, cached_input_tokens=3)
    record = ledger.session("s")
    assert record is not None
    assert (record.head, record.open_turn) == (kept.id, None)
    assert [message.role for message in session.ask("And?").history] == ["user", "assistant", "tool", "assistant"]


def test_the_result_of_an_agent_ends_the_open_turn(open_session: OpenSession, ledger: StoreLedger) -> None:
    session = open_session()
    session.ask("Why?")
    result = AgentResult(messages=[Message("assistant", "Because.")], error="timeout")

    first, again = session.record(result), session.record(result)

    assert first.done
    assert (again.id, again.duplicate) == (first.id, True)
    assert reply_of(steps_of(ledger, "s")[-1]).error == "timeout"


def test_calls_that_an_agent_left_unanswered_do_not_wait(open_session: OpenSession) -> None:
    session = open_session()

    session.record(AgentResult(messages=[Message("user", "Why?"), Message("assistant", (ToolCall("c1", "look"),))]))

    assert session.pending_calls == ()
    assert session.messages[-1].tool_results[0].text == INTERRUPTED_RESULT


def test_the_results_of_two_runs_without_a_name_are_two_turns(open_session: OpenSession, ledger: StoreLedger) -> None:
    session = open_session()
    result = AgentResult(messages=[Message("user", "Tick."), Message("assistant", "Tock.")])

    first, second = session.record(result), session.record(result)

    assert (first.duplicate, second.duplicate) == (False, False)
    assert kinds_of(ledger, "s") == ["turn", "turn"]


def test_the_result_of_a_run_with_a_name_is_one_turn_however_often_it_comes(
    open_session: OpenSession, ledger: StoreLedger
) -> None:
    first, second, other = (
        AgentResult(id=name, messages=[Message("user", "Tick."), Message("assistant", said)])
        for name, said in (("run 1", "Tock."), ("run 2", "Tock."), ("run 1", "Boom."))
    )
    kept = [open_session().record(result) for result in (first, second, other)]

    again = open_session().record(first)
    open_session().ask("Still there?")
    meanwhile = open_session().record(first)

    assert [step.duplicate for step in kept] == [False, False, False]
    assert (again.id, again.duplicate, again.text) == (kept[0].id, True, "Tock.")
    assert (meanwhile.id, meanwhile.duplicate) == (kept[0].id, True)
    assert kinds_of(ledger, "s") == ["turn", "turn", "turn", "input", "sealed"]
    assert reply_of(steps_of(ledger, "s")[0]).id == "run 1"


# ---- archived -----------------------------------------------------------------------------------------------------


def test_an_archived_session_opens_no_turn(open_session: OpenSession, ledger: StoreLedger) -> None:
    session = open_session("my notes")
    session.ask("Why?")
    session.record(says("Because."))
    ledger.update("my notes", status="archived")
    result = AgentResult(messages=[Message("user", "Tick."), Message("assistant", "Tock.")])

    for deed in (session.ask, session.preview, session.record):
        with pytest.raises(TurnError, match="session 'my notes' is archived") as caught:
            deed(result if deed == session.record else "And?")

        assert "`nexus session unarchive 'my notes'`" in str(caught.value)
    assert kinds_of(ledger, "my notes") == ["input", "sealed", "reply"]


def test_an_archived_session_can_be_read_forked_and_taken_back(open_session: OpenSession, ledger: StoreLedger) -> None:
    session = open_session()
    session.ask("Why?")
    session.record(says("Because."))
    ledger.update("s", status="archived")

    assert [spoken(message) for message in session.messages] == ["Why?", "Because."]
    assert session.usage.output_tokens == 50
    assert session.record(says("Because.")).duplicate
    assert len(session.fork("t").ask("And?").history) == 2
    ledger.update("s", status="active")
    assert len(session.ask("And?").history) == 2


def test_the_open_turn_of_an_archived_session_can_be_finished(open_session: OpenSession, ledger: StoreLedger) -> None:
    session = open_session()
    session.ask("Why?")
    ledger.update("s", status="archived")

    step = session.record(calls("t1"))
    with pytest.raises(TurnError, match="is archived"):
        session.ask("Never mind.", interrupt=True)
    session.record(step.tool_calls[0].result("found"))
    session.next()

    assert session.record(says("Because.", name="msg_2")).done
    assert kinds_of(ledger, "s") == ["input", "sealed", "reply", "result", "reply"]


# ---- what is said -------------------------------------------------------------------------------------------------


@pytest.mark.acceptance("J-02", "J-03", "J-04")
def test_what_is_known_of_the_occasion_is_kept_with_each_message(
    open_session: OpenSession, ledger: StoreLedger, clock: Clock
) -> None:
    session = open_session()

    context = session.ask(
        "Why?",
        platform="discord",
        hook_data={"weather": "rain", "moon": "full"},
        attachments=[{"path": "auth.py", "lines": [3, 9]}, "notes.md"],
        event_id="evt_1",
    )
    session.record(says("Because."))

    asked, _, answered = steps_of(ledger, "s")
    (kept,) = cast("list[dict[str, Any]]", asked.payload.context)
    assert kept["event"] == {"platform": "discord", "hookCount": 2}
    assert kept["attachments"] == [{"path": "auth.py", "lines": [3, 9]}, {"path": "notes.md", "lines": None}]
    assert kept["injectedAt"] == clock.ms
    assert answered.payload.context == [None]
    assert context.source_event_id == "evt_1"


def test_an_unknown_word_about_the_occasion_is_refused(open_session: OpenSession) -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'platform'"):
        open_session().ask("Why?", plattform="discord")  # type: ignore[call-arg]


@pytest.mark.parametrize(
    "message",
    [
        "Why?",
        Text("Why?"),
        [Text("Why?")],
        Message("user", "Why?"),
        {"role": "user", "content": "Why?"},
        {"role": "user", "content": [{"type": "text", "text": "Why?"}]},
        {"role": "user", "parts": [{"text": "Why?"}]},
        [{"type": "text", "text": "Why?"}],
        ({"type": "input_text", "text": "Why?"},),
        [{"text": "Why?"}],
    ],
)
def test_a_message_may_be_asked_in_any_shape(open_session: OpenSession, message: object) -> None:
    context = open_session().ask(message)

    assert spoken(context.current_message) == "Why?"


@pytest.mark.parametrize(
    "message",
    [
        Message("assistant", "Because."),
        ToolResult("t1", "x"),
        7,
        {"role": "tool", "tool_call_id": "t", "content": "x"},
        [{"role": "user", "content": "Why?"}],
        [{"txt": "Why?"}],
        [],
    ],
)
def test_what_is_not_the_users_word_cannot_be_asked(
    open_session: OpenSession, ledger: StoreLedger, message: object
) -> None:
    with pytest.raises(MessageError):
        open_session().ask(message)

    assert ledger.session("s") is None


@pytest.mark.parametrize("tools", [["look"], [{"name": 7}], "look"])
def test_tools_that_are_none_are_refused_before_anything_is_kept(
    open_session: OpenSession, ledger: StoreLedger, tools: Any
) -> None:
    with pytest.raises((MessageError, UsageError), match="tools"):
        open_session(tools=tools).ask("Why?")

    assert ledger.session("s") is None


@pytest.mark.parametrize(
    "given",
    [
        Message("assistant", "Because."),
        {"role": "assistant", "content": "Because."},
        {"role": "assistant", "content": [{"type": "text", "text": "Because."}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Because."}]},
        {"role": "model", "parts": [{"text": "Because."}]},
        ChatCompletionMessage(role="assistant", content="Because."),
    ],
)
def test_the_message_of_a_model_alone_is_a_reply(open_session: OpenSession, given: object) -> None:
    session = open_session()
    session.ask("Why?")

    step = session.record(given)

    assert (step.text, step.done, step.usage) == ("Because.", True, None)


def test_the_message_of_a_model_alone_may_ask_for_tools(open_session: OpenSession) -> None:
    session = open_session()
    session.ask("Why?")

    session.record({"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "look", "input": {}}]})

    assert [call.id for call in session.pending_calls] == ["t1"]


@pytest.mark.parametrize("given", [Message("user", "Why?"), {"role": "user", "content": "Why?"}])
def test_the_words_of_the_user_are_not_recorded_but_asked(open_session: OpenSession, given: object) -> None:
    with pytest.raises(MessageError, match=r"ask\(…\) takes the user's words"):
        open_session().record(given)


def test_a_session_says_whether_a_turn_is_open(open_session: OpenSession) -> None:
    session = open_session()

    before = session.is_open
    session.ask("Why?")
    asked = session.is_open
    session.record(calls("t1"))
    waiting = session.is_open
    session.interrupt()

    assert (before, asked, waiting, session.is_open) == (False, True, True, False)


@pytest.mark.parametrize("given", [None, "Because.", 7, {"answer": 42}, []])
def test_what_nobody_answered_is_refused(open_session: OpenSession, given: object) -> None:
    session = open_session()
    session.ask("Why?")

    with pytest.raises(MessageError, match="expected a reply or a result"):
        session.record(given)


def test_recover_raises_again(open_session: OpenSession) -> None:
    error = ConflictError("too long")

    with pytest.raises(ConflictError) as caught:
        open_session().recover(error)

    assert caught.value is error


def test_total_of_a_usage_is_all_input_and_all_output_once(open_session: OpenSession) -> None:
    session = open_session()
    for number in range(2):
        session.ask("Why?")
        session.record(says("Because.", name=f"msg_{number}"))

    # Cached and written input is part of the input, reasoning is part of the output.
    assert session.usage.total_tokens == 2 * (10 + 200 + 30 + 50)
