"""What was read and counted before."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_core import BudgetError, fit_messages
from nexus_core.history import counted_messages
from tests.history.broken import ANYTHING, ENCODERS, valid_turns
from tests.history.counters import Characters

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexus_core.types.messages import Message


def test_a_message_is_read_and_counted_once_in_its_life() -> None:
    counter = Characters()
    messages = [{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}]

    for more in ([], [], [{"role": "user", "content": "three"}]):
        fit_messages([*messages, *more], budget=1000, counter=counter)

    assert sorted(message.content for message in counter.asked) == ["one", "three", "two"]


def test_a_message_that_was_changed_is_read_again() -> None:
    counter = Characters()
    messages: list[dict[str, Any]] = [{"role": "user", "content": [{"type": "text", "text": "one"}]}]
    fit_messages(messages, budget=1000, counter=counter)

    messages[0]["content"][0]["text"] = "another"

    assert fit_messages(messages, budget=1000, counter=counter).budget.total == len("another") + 1


def test_a_message_that_became_wrong_is_repaired_although_it_was_right_before() -> None:
    counter = Characters()
    call = {"id": "a", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "Why?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": "x"},
    ]
    assert fit_messages(messages, budget=1000, counter=counter).findings == ()

    del messages[1]

    assert [finding.code for finding in fit_messages(messages, budget=1000, counter=counter).findings] == [
        "orphan-result"
    ]


def test_a_counter_that_cannot_be_remembered_counts_every_time() -> None:
    class Slotted(Characters):
        __slots__ = ("asked",)
        __hash__ = None  # type: ignore[assignment] # on purpose

    messages = [{"role": "user", "content": "one"}]
    counter = Slotted()

    fit_messages(messages, budget=1000, counter=counter)
    fit_messages(messages, budget=1000, counter=counter)

    assert len(counter.asked) == 2


@pytest.mark.parametrize("value", [True, 1.0, "1"])
def test_a_number_that_became_another_that_is_equal_is_read_again(value: object) -> None:
    counter = Characters()
    call: dict[str, Any] = {"type": "tool_use", "id": "not allowed", "name": "ls", "input": {"deep": [{"n": 1}]}}
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": [call]}]
    fit_messages(messages, budget=1000, counter=counter)

    call["input"]["deep"][0]["n"] = value

    (written,) = fit_messages(messages, budget=1000, counter=counter).messages[1]["content"]
    assert json.dumps(written["input"]) == json.dumps({"deep": [{"n": value}]})


def test_a_repaired_message_has_the_keys_in_their_new_order() -> None:
    counter = Characters()
    call: dict[str, Any] = {"type": "tool_use", "id": "not allowed", "name": "ls", "input": {"a": "x", "b": "y"}}
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": [call]}]
    fit_messages(messages, budget=1000, counter=counter)

    call["input"] = {"b": "y", "a": "x"}

    (written,) = fit_messages(messages, budget=1000, counter=counter).messages[1]["content"]
    assert list(written["input"]) == ["b", "a"]


def test_a_shortened_message_has_the_keys_in_their_new_order() -> None:
    counter = Characters()
    result: dict[str, Any] = {
        "type": "tool_result",
        "tool_use_id": "a",
        "content": [{"type": "text", "text": "x" * 900}],
    }
    result["content"].append({"type": "search_result", "source": "s", "title": "t"})
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "Why?"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "ls", "input": {}}]},
        {"role": "user", "content": [result]},
    ]
    fit_messages(messages, budget=2000, counter=counter)

    result["content"][1] = {"title": "t", "source": "s", "type": "search_result"}

    options: dict[str, Any] = {"budget": 700, "result_tokens": 100}
    warm, cold = (fit_messages(messages, counter=each, **options) for each in (counter, Characters()))
    assert json.dumps(warm.messages) == json.dumps(cold.messages)
    assert warm.decisions == cold.decisions


def test_a_message_that_is_changed_while_it_is_counted_is_read_again() -> None:
    message: dict[str, Any] = {"role": "user", "content": "before"}

    class Meddler(Characters):
        def count_messages(self, messages: Sequence[Message]) -> int:
            message["content"] = "after it"
            return super().count_messages(messages)

    counter = Meddler()
    fit_messages([message], budget=1000, counter=counter)

    assert fit_messages([message], budget=1000, counter=counter).budget.total == len("after it") + 1


def test_no_more_characters_are_remembered_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counted_messages, "MAX_CACHED_CHARACTERS", 1000)
    counter = Characters()
    messages = [{"role": "user", "content": f"{number:0100}"} for number in range(20)]
    fit_messages(messages, budget=10_000, counter=counter)
    counter.asked.clear()

    fit_messages(messages, budget=10_000, counter=counter)

    assert 10 < len(counter.asked) < 20


def test_a_message_that_is_read_again_does_not_make_others_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counted_messages, "MAX_CACHED_CHARACTERS", 1000)
    counter = Characters()
    messages: list[dict[str, Any]] = [{"role": "user", "content": "small"}, {"role": "user", "content": ""}]
    for number in range(20):
        messages[1]["content"] = f"{number:0100}"
        fit_messages(messages, budget=10_000, counter=counter)

    assert [message.content for message in counter.asked].count("small") == 1


def test_a_message_that_would_make_all_others_forgotten_is_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counted_messages, "MAX_CACHED_CHARACTERS", 1000)
    counter = Characters()
    messages = [{"role": "user", "content": "small"}, {"role": "user", "content": "x" * 900}]
    fit_messages(messages, budget=10_000, counter=counter)
    counter.asked.clear()

    fit_messages(messages, budget=10_000, counter=counter)

    assert [message.content[0] for message in counter.asked] == ["x"]


def test_a_result_that_is_shortened_has_as_many_bytes_when_it_was_read_before() -> None:
    counter = Characters()
    messages: list[dict[str, Any]] = []
    for name in ("a", "b", "c"):
        call = {"id": name, "type": "function", "function": {"name": "ls", "arguments": "{}"}}
        messages.append({"role": "user", "content": "Why?"})
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": name, "content": name * 500})

    first, second = (fit_messages(messages, budget=800, result_tokens=100, counter=counter) for _ in range(2))

    assert second == first
    assert len(first.messages) == len(messages)


def fit_or_refuse(messages: list[Any], options: dict[str, Any], counter: Characters) -> object:
    try:
        return fit_messages(messages, counter=counter, **options)
    except BudgetError as error:
        return str(error)


def change_a_text(value: Any, letters: str) -> bool:
    """Change the first text of a message in place, with its ids and roles left alone."""
    if not isinstance(value, dict | list):
        return False
    for key, each in list(value.items() if isinstance(value, dict) else enumerate(value)):
        if key in {"content", "text", "output", "thinking"} and isinstance(each, str):
            value[key] = each + letters
            return True
        if change_a_text(each, letters):
            return True
    return False


@pytest.mark.parametrize("api", sorted(ENCODERS))
@given(st.one_of(valid_turns(), ANYTHING), st.data())
def test_a_list_that_grew_and_changed_is_fitted_as_if_it_were_new(
    api: str, turns: list[Any], data: st.DataObject
) -> None:
    items, warm = ENCODERS[api](turns), Characters()
    options = {"api": api, "result_tokens": data.draw(st.sampled_from([None, 0, 70]))}

    for end in sorted(data.draw(st.lists(st.integers(0, len(items)), min_size=2, max_size=4))):
        options["budget"] = data.draw(st.integers(0, 400))
        options["strategy"] = data.draw(st.sampled_from(["oldest_first", "middle_out"]))
        assert fit_or_refuse(items[:end], options, warm) == fit_or_refuse(items[:end], options, Characters())
        if data.draw(st.booleans()) and items:
            change_a_text(data.draw(st.sampled_from(items)), data.draw(st.sampled_from(["!", "?" * 80])))
