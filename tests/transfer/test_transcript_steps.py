"""Turns and steps of imported transcripts."""

from __future__ import annotations

import pytest

from nexus_core.ledger.in_memory import MemoryLedger
from nexus_core.tokens.estimator import SimpleTokenCounter
from nexus_core.types.messages import Usage
from tests.session.conftest import OpenNexus
from tests.session.support import reply_of, result_of, says
from tests.transfer.support import (
    assistant,
    calls,
    compacted,
    describe_steps,
    import_lines,
    import_sample,
    read_next,
    result,
    steps_of,
    summary,
    usage,
    user,
)


def test_turn_ends_with_a_reply_without_tool_calls(ledger: MemoryLedger) -> None:
    import_lines(
        ledger, [user("u", None), calls("a", "u", "t1"), result("r", "a", "t1"), assistant("b", "r"), user("v", "b")]
    )

    assert describe_steps(ledger, "claude-s-1") == [
        "input: u",
        "reply: look(t1)",
        "result: =found",
        "reply: b.",
        "input: v",
    ]


def test_results_in_any_order_refer_to_their_calls(ledger: MemoryLedger) -> None:
    lines = [user("u", None), calls("a", "u", "t1", "t2"), result("r2", "a", "t2", text="two"), result("r1", "a", "t1")]

    import_lines(ledger, [*lines, assistant("b", "r1")])

    _, reply, results, _ = steps_of(ledger, "claude-s-1")
    assert result_of(results).answers == ((reply.id, 1), (reply.id, 0))
    assert [message.tool_results[0].call_id for message in read_next(ledger, "claude-s-1")[2:4]] == ["t1", "t2"]


def test_message_with_several_results_stays_one_message(ledger: MemoryLedger) -> None:
    import_lines(
        ledger, [user("u", None), calls("a", "u", "t1", "t2"), result("r", "a", "t1", "t2"), assistant("b", "r")]
    )

    _, reply, results, _ = steps_of(ledger, "claude-s-1")
    assert result_of(results).answers == ((reply.id, 0), (reply.id, 1))
    assert len(results.messages) == 1
    assert len(read_next(ledger, "claude-s-1")) == 4


def test_result_without_a_call_keeps_its_position(ledger: MemoryLedger) -> None:
    import_lines(ledger, [user("u", None), result("r", "u", "nobody"), assistant("b", "r")])

    assert describe_steps(ledger, "claude-s-1") == ["input: u", "result: =found", "reply: b."]
    assert result_of(steps_of(ledger, "claude-s-1")[1]).answers == (("", 0),)


def test_user_message_before_the_results_interrupts_the_turn(ledger: MemoryLedger) -> None:
    import_lines(ledger, [user("u", None), calls("a", "u", "t1"), user("v", "a"), assistant("b", "v")])

    assert describe_steps(ledger, "claude-s-1") == [
        "input: u",
        "reply: look(t1)",
        "interrupted.",
        "input: v",
        "reply: b.",
    ]


def test_unfinished_turn_stays_open_with_its_pending_call(ledger: MemoryLedger, open_nexus: OpenNexus) -> None:
    import_lines(ledger, [user("u", None), calls("a", "u", "t1", "t2"), result("r", "a", "t2")])

    session = open_nexus().session("claude-s-1", model="claude-opus-4-5")
    (call,) = session.pending_calls
    assert call.id == "t1"
    session.record(call.result("late"))
    context = session.next()
    assert [each.call_id for message in context.progress for each in message.tool_results] == ["t1", "t2"]
    assert [message.role for message in context.messages] == ["user", "assistant", "tool", "tool"]
    assert session.record(says("Both.")).done
    assert [message.content for message in session.messages] == ["u", "", "", "", "Both."]


def test_open_turn_without_input_can_be_continued(ledger: MemoryLedger, open_nexus: OpenNexus) -> None:
    import_lines(ledger, [calls("a", "", "t1"), result("r", "a", "t1")])

    context = open_nexus().session("claude-s-1", model="claude-opus-4-5").next()

    assert context.current_message is None
    assert [message.role for message in context.progress] == ["assistant", "tool"]


def test_paused_reply_does_not_end_the_turn(ledger: MemoryLedger) -> None:
    import_lines(ledger, [user("u", None), assistant("a", "u", stop_reason="pause_turn")])

    assert describe_steps(ledger, "claude-s-1") == ["input: u", "reply: a", "sealed"]


def test_injected_messages_belong_to_the_turn_before(ledger: MemoryLedger) -> None:
    lines = [user("u", None), assistant("a", "u"), user("m", "a", isMeta=True), user("n", "m", isMeta=True)]

    import_lines(ledger, [*lines, user("v", "n"), assistant("b", "v"), user("o", "b", isMeta=True)])

    assert describe_steps(ledger, "claude-s-1") == [
        "input: u",
        "reply: a",
        "input: m + n.",
        "input: v",
        "reply: b",
        "input: o.",
    ]
    assert steps_of(ledger, "claude-s-1")[2].payload.kinds == ["injected", "injected"]


def test_reply_after_an_injected_message_continues_the_turn(ledger: MemoryLedger) -> None:
    import_lines(ledger, [user("u", None), assistant("a", "u"), user("m", "a", isMeta=True), assistant("b", "m")])

    assert describe_steps(ledger, "claude-s-1") == ["input: u", "reply: a", "input: m", "reply: b."]


def test_further_user_messages_are_a_second_input_step(ledger: MemoryLedger, open_nexus: OpenNexus) -> None:
    import_lines(ledger, [user("u", None), user("v", "u"), user("w", "v")])

    assert describe_steps(ledger, "claude-s-1") == ["input: u", "input: v + w"]
    context = open_nexus().session("claude-s-1").next()
    assert [message.content.rpartition("\n")[2] for message in context.messages] == ["u", "v", "w"]
    assert context.current_message == context.messages[0]
    assert open_nexus().session("claude-s-1").next().messages == context.messages


def test_items_of_one_reply_become_one_step(ledger: MemoryLedger) -> None:
    import_sample(ledger, "codex.jsonl")

    replies = [step for step in steps_of(ledger, "codex-0199-weather") if step.kind == "reply"]
    assert [len(step.messages) for step in replies] == [2, 1, 1, 1]
    assert reply_of(replies[0]).api == "responses"


def test_consecutive_replies_become_two_steps(ledger: MemoryLedger) -> None:
    import_lines(ledger, [user("u", None), assistant("a", "u"), assistant("b", "a")])

    assert describe_steps(ledger, "claude-s-1") == ["input: u", "reply: a", "reply: b."]


def test_compaction_inside_a_turn_leaves_it_open(ledger: MemoryLedger) -> None:
    lines = [user("u", None), calls("a", "u", "t1"), result("r", "a", "t1")]

    import_lines(ledger, [*lines, compacted("c", "r"), summary("s", "c", "so far"), assistant("b", "s")])

    assert [step.kind for step in steps_of(ledger, "claude-s-1")][3:] == ["compaction", "reply"]
    assert len({step.turn for step in steps_of(ledger, "claude-s-1")}) == 1


def test_compaction_between_turns_is_a_turn_of_its_own(ledger: MemoryLedger) -> None:
    lines = [user("u", None), assistant("a", "u"), compacted("c", "a"), summary("s", "c", "so far")]

    import_lines(ledger, [*lines, user("v", "s"), assistant("b", "v")])

    assert describe_steps(ledger, "claude-s-1") == ["input: u", "reply: a.", "compaction.", "input: v", "reply: b."]


@pytest.mark.acceptance("D-10", "C-18")
def test_usage_is_stored_as_a_running_sum(ledger: MemoryLedger, open_nexus: OpenNexus) -> None:
    lines = [user("u", None), assistant("a", "u", **usage(100)), user("v", "a"), assistant("b", "v", **usage(10))]

    import_lines(ledger, lines)

    closing = [step for step in steps_of(ledger, "claude-s-1") if step.closes]
    assert [step.payload.total_usage and step.payload.total_usage.input_tokens for step in closing] == [100, 110]
    assert [step.payload.turns for step in closing] == [1, 2]
    assert open_nexus().session("claude-s-1").usage == Usage(input_tokens=110, output_tokens=2)


def test_tokens_are_marked_as_estimates(ledger: MemoryLedger) -> None:
    import_lines(ledger, [user("u", None, "How are you today?"), assistant("a", "u")])

    step = steps_of(ledger, "claude-s-1")[0]
    assert step.counter == "estimate"
    assert step.tokens == SimpleTokenCounter().count_messages(list(step.messages))


def test_step_has_lines_time_and_model(ledger: MemoryLedger) -> None:
    import_sample(ledger, "claude.jsonl")

    first, reply, *_ = steps_of(ledger, "claude-bakery-1")
    assert first.payload.imported == [[3]]
    assert first.payload.time == "2026-03-02T09:00:00.000Z"
    assert reply.payload.imported == [[4, 5, 6, 8]]
    assert (reply_of(reply).id, reply.payload.model) == ("msg_1", "claude-opus-4-5-20251101")
