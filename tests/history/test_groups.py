"""Messages that live or die together."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest
from hypothesis import given

from nexus_core.history.groups import IndexRange, MessageLinks, find_group_starts, group_messages
from nexus_core.history.repair import repair_messages
from nexus_core.types.messages import Message, Reasoning, Text, ToolCall, ToolResult
from tests.history.broken import ANYTHING, MESSAGES, neutral, valid_turns

USER = Message("user", "hi")
SAID = Message("assistant", "so")


def calls(*ids: str) -> Message:
    return Message("assistant", tuple(ToolCall(name, "read") for name in ids))


def result(*ids: str) -> Message:
    return Message("tool", tuple(ToolResult(name, "x") for name in ids))


def spans(messages: list[Message]) -> list[tuple[int, int]]:
    return [(group.first, group.end - 1) for group in group_messages(messages)]


@pytest.mark.acceptance("T-04")
def test_a_lone_message_is_a_group_of_its_own() -> None:
    assert spans([Message("system", "be kind"), USER, SAID, SAID]) == [(0, 0), (1, 1), (2, 2), (3, 3)]


@pytest.mark.acceptance("T-04")
def test_calls_and_all_their_results_are_one_group() -> None:
    assert group_messages([USER, calls("a", "b"), result("a"), result("b"), SAID]) == [
        IndexRange(0, 1),
        IndexRange(1, 4),
        IndexRange(4, 5),
    ]


def test_results_beside_words_of_the_user_belong_to_the_calls() -> None:
    mixed = Message("user", (ToolResult("a", "x"), Text("go on")))

    assert spans([USER, calls("a"), mixed, SAID]) == [(0, 0), (1, 2), (3, 3)]


def test_each_round_of_calls_is_its_own_group() -> None:
    assert spans([USER, calls("a"), result("a"), calls("b"), result("b")]) == [(0, 0), (1, 2), (3, 4)]


def test_items_of_one_answer_are_one_group_from_the_thought_or_call_on() -> None:
    thought = Message("assistant", (Reasoning(text="hm", api="responses"),))

    assert spans([USER, SAID, thought, SAID, calls("a"), calls("b"), result("a"), result("b")]) == [
        (0, 0),
        (1, 1),
        (2, 7),
    ]


def test_a_result_of_another_call_belongs_to_no_group() -> None:
    found = group_messages([calls("a", "b"), result("a"), result("x"), result("b")])

    assert found == [IndexRange(0, 2), IndexRange(2, 3), IndexRange(3, 4)]


def test_a_message_with_one_strange_result_takes_none_of_the_calls() -> None:
    assert group_messages([calls("a"), result("a", "x")]) == [
        IndexRange(0, 1),
        IndexRange(1, 2),
    ]


def test_calls_without_ids_are_matched_by_name_and_number() -> None:
    asked = Message("assistant", (ToolCall("", "read"), ToolCall("", "write")))
    answers = Message("tool", (ToolResult("", "x", "write"), ToolResult("", "x", "read")))

    assert group_messages([asked, answers]) == [IndexRange(0, 2)]
    assert group_messages([asked, answers, answers]) == [IndexRange(0, 2), IndexRange(2, 3)]


def forward(messages: list[Message]) -> list[tuple[int, int]]:
    """The definition, followed from the front: another message joins the last group, or begins one."""
    found: list[tuple[int, int]] = []
    waiting: list[tuple[str, str]] = []
    leads = False
    for place, message in enumerate(messages):
        is_said = message.role == "assistant"
        if is_said:
            joins = leads
        else:
            left = list(waiting)
            joins = bool(message.tool_results) and all(answer(left, each) for each in message.tool_results)
            waiting = left if joins else []
        found[-1:] = [(found[-1][0], place)] if joins else [*found[-1:], (place, place)]
        if is_said and not joins:
            waiting = []
        waiting += [(call.id, call.name) for call in message.tool_calls if is_said]
        leads = is_said and (leads or any(isinstance(part, ToolCall | Reasoning) for part in message.parts))
    return found


def answer(waiting: list[tuple[str, str]], given: ToolResult) -> bool:
    def matches(call: tuple[str, str], *, strictly: bool) -> bool:
        if given.call_id and strictly:
            return call[0] == given.call_id
        if given.call_id:
            return call == ("", given.name)
        return not given.name or call[1] == given.name

    for strictly in (True, False):
        for call in waiting:
            if matches(call, strictly=strictly):
                waiting.remove(call)
                return True
    return False


@pytest.mark.acceptance("T-04")
@given(MESSAGES)
def test_read_from_the_end_the_groups_are_those_read_from_the_front(messages: list[Message]) -> None:
    assert spans(messages) == forward(messages)


@given(ANYTHING)
def test_groups_lie_side_by_side_and_cover_the_list(turns: list[Any]) -> None:
    messages = neutral(turns)

    covered = [place for group in group_messages(messages) for place in range(*group)]

    assert covered == list(range(len(messages)))


@given(MESSAGES, MESSAGES)
def test_what_is_added_changes_no_group_but_the_newest(messages: list[Message], more: list[Message]) -> None:
    before = group_messages(messages)[:-1]

    assert group_messages(messages + more)[: len(before)] == before


@pytest.mark.acceptance("T-09")
@given(valid_turns())
def test_the_newest_groups_of_a_valid_list_need_no_repair_of_results(turns: list[Any]) -> None:
    messages = neutral(turns)

    for group in group_messages(messages):
        assert repair_messages(messages[group.first :], "neutral").findings == ()


@given(MESSAGES)
def test_every_message_is_read_once_and_the_newest_first(messages: list[Message]) -> None:
    asked: list[int] = []

    def read(place: int) -> MessageLinks:
        asked.append(place)
        return MessageLinks(messages[place])

    list(find_group_starts(read, len(messages)))

    assert asked == list(range(len(messages)))[::-1]


def test_the_newest_group_of_a_long_list_costs_as_much_as_that_of_a_short_one() -> None:
    def lines(count: int) -> int:
        messages = [USER, calls("a"), result("a"), SAID] * count
        ran = 0

        def trace(frame: FrameType, *_: Any) -> Any:
            nonlocal ran
            if "history" not in frame.f_code.co_filename:  # what Python clears away meanwhile is not counted
                return None
            ran += 1
            return trace

        sys.settrace(trace)
        try:
            found = find_group_starts(lambda place: MessageLinks(messages[place]), len(messages))
            for _ in range(4):
                next(found)
        finally:
            sys.settrace(None)
        return ran

    assert lines(10_000) == lines(10) > 0
