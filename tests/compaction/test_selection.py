"""Which messages of a conversation in memory are summarized, and what becomes of the conversation."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nexus_core import UsageError
from nexus_core.context import (
    CompactionResult,
    ContextConfig,
    ContextManager,
    build_summarize_prompt,
    create_summary_message,
    select_messages_for_compaction,
)
from nexus_core.history.groups import group_messages
from nexus_core.types.messages import Message, ToolCall, ToolResult
from tests.effort import examples
from tests.history.conversations import any_messages, conversations
from tests.history.counters import Characters


def text(letter: str, length: int = 9) -> Message:
    """A message of `length` + 1 tokens."""
    return Message("user", letter * length)


@pytest.mark.acceptance("Q-01")
def test_the_newest_messages_stay_that_a_share_of_the_budget_holds() -> None:
    messages = [text(letter) for letter in "abcdef"]

    gone, kept = select_messages_for_compaction(
        messages=messages, token_counter=Characters(), available_budget=100, recent_preserve_ratio=0.25
    )

    assert [message.content[0] for message in gone] == ["a", "b", "c", "d"]
    assert [message.content[0] for message in kept] == ["e", "f"]


@pytest.mark.acceptance("Q-02")
def test_the_share_is_a_quarter_where_nobody_says_it() -> None:
    assert len(select_messages_for_compaction([text("a")] * 10, Characters(), 125)[1]) == 3


def test_what_fits_into_the_share_is_not_summarised() -> None:
    messages = [text("a"), text("b")]

    assert select_messages_for_compaction(messages, Characters(), 1000) == ([], messages)
    assert select_messages_for_compaction([], Characters(), 1000) == ([], [])


@pytest.mark.acceptance("B-01")
@pytest.mark.parametrize("budget", [0, -50, 300])
def test_an_open_tool_batch_is_kept_however_large(budget: int) -> None:
    asked = text("u", 1000)
    call = Message("assistant", (ToolCall("a", "read"), ToolCall("b", "read")))
    result = Message("tool", (ToolResult("a", "x" * 2000),))

    gone, kept = select_messages_for_compaction([asked, call, result], Characters(), budget)

    assert (gone, kept) == ([asked], [call, result])


@pytest.mark.parametrize("ratio", [-0.1, 1.5])
def test_a_share_that_is_none_is_refused(ratio: float) -> None:
    with pytest.raises(UsageError, match="between 0 and 1"):
        select_messages_for_compaction([], Characters(), 100, ratio)


@pytest.mark.acceptance("Q-08")
@given(conversations() | any_messages, st.integers(0, 400), st.floats(0, 1))
@settings(max_examples=examples(500), deadline=None)
def test_no_group_is_ever_split(messages: list[Message], budget: int, ratio: float) -> None:
    gone, kept = select_messages_for_compaction(messages, Characters(), budget, ratio)

    assert [*gone, *kept] == messages
    assert len(gone) in {0, len(messages), *(group.first for group in group_messages(messages))}
    assert bool(kept) == bool(messages)


# ---- what becomes of the conversation -----------------------------------------------------------------------------


class Log:
    def __init__(self) -> None:
        self.entries: list[Any] = []

    def log_system(self, prompt: str) -> None:
        self.entries.append(prompt)

    def log_message(self, message: Message) -> None:
        self.entries.append(message)


def manager(**options: Any) -> ContextManager:
    config = ContextConfig(max_tokens=400, reserve_tokens=100, clock="off", session_start=False)
    return ContextManager(config, Characters(), **options)


@pytest.mark.acceptance("Q-06", "Q-07")
def test_a_summary_takes_the_place_of_what_was_summarised() -> None:
    context = manager()
    context.set_system_prompt("Be kind.")
    for letter in "abcdef":
        context.add_user_message(letter * 50)
    before = context.get_token_usage()["messages"]

    gone, kept = select_messages_for_compaction(context.messages, Characters(), 300, 0.5)
    assert gone[0].content in build_summarize_prompt(gone)
    summary = create_summary_message("a to d")
    context.apply_compaction(summary_message=summary, preserved_messages=kept)

    after = context.get_token_usage()["messages"]
    result = CompactionResult(summary, kept, before, after)
    assert context.messages == [summary, *kept]
    assert context.system_prompt == "Be kind."
    assert result.new_token_count == Characters().count_messages([summary, *kept])


@pytest.mark.acceptance("Q-06", "L-16")
def test_the_system_prompt_is_replaced_only_if_there_is_a_new_one() -> None:
    context = manager()
    context.set_system_prompt("Old.")

    context.apply_compaction(create_summary_message("x"), [], new_system_prompt="New.")
    assert context.system_prompt == "New."

    context.apply_compaction(create_summary_message("x"), [], None)
    assert context.system_prompt == "New."


@pytest.mark.acceptance("B-01")
def test_a_tool_loop_goes_on_after_a_compaction_in_the_middle_of_it() -> None:
    context = manager()
    context.add_user_message("u" * 200)
    context.add_assistant_message("", [ToolCall("a", "read"), ToolCall("b", "read")])
    context.add_tool_result("a", "read", "x" * 20)
    gone, kept = select_messages_for_compaction(context.messages, Characters(), 50)

    context.apply_compaction(create_summary_message("asked"), kept)
    context.add_tool_result("b", "read", "y")
    sent = context.build_messages()

    assert len(gone) == 1
    assert [result.call_id for message in sent for result in message.tool_results] == ["a", "b"]
    assert context.findings == () or context.findings[0].code == "over-budget"


def test_only_what_is_new_is_logged() -> None:
    log = Log()
    context = manager(logger=log)
    context.add_user_message("a")
    (kept,) = context.messages
    summary = create_summary_message("x")

    context.apply_compaction(summary, [kept])

    assert log.entries == [kept, summary]


def test_what_is_counted_is_not_counted_again() -> None:
    counter = Characters()
    context = ContextManager(ContextConfig(clock="off"), counter)
    context.add_user_message("a" * 50)
    kept = context.messages
    counter.asked.clear()

    context.apply_compaction(create_summary_message("x"), kept)

    assert kept[0] not in counter.asked


@pytest.mark.parametrize("wrong", ["a summary", None, {"role": "user"}])
def test_what_is_no_message_is_refused_and_nothing_changes(wrong: Any) -> None:
    context = manager()
    context.add_user_message("a")
    before = context.messages

    with pytest.raises(UsageError, match="expected a Message"):
        context.apply_compaction(wrong, [])
    with pytest.raises(UsageError, match="expected a Message"):
        context.apply_compaction(create_summary_message("x"), [wrong])

    assert context.messages == before
