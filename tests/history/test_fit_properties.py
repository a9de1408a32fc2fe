"""What holds for every conversation, budget and strategy."""

from __future__ import annotations

import contextlib
import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_core import BudgetError, fit
from nexus_core.history.groups import group_messages
from nexus_core.types.messages import Message
from tests.history.conversations import any_messages, conversations
from tests.history.counters import Characters

STRATEGIES = st.sampled_from(["oldest_first", "middle_out"])
BUDGETS = st.integers(0, 400)
APIS = st.sampled_from(["neutral", "openai", "responses", "anthropic", "gemini"])


def unpaired(messages: list[Message]) -> list[str]:
    """Calls without a result and results without a call; calls at the end may wait."""
    waiting: dict[str, int] = {}
    wrong = []
    for place, message in enumerate(messages):
        ids = [result.call_id for result in message.tool_results]
        wrong += [f"result {each!r} at {place}" for each in ids if waiting.pop(each, None) is None]
        if message.tool_results:
            continue
        if message.role != "assistant":
            wrong += [f"call {each!r}" for each in waiting]
            waiting.clear()
        waiting |= {call.id: place for call in message.tool_calls}
    return wrong


@pytest.mark.acceptance("R14")
@given(st.one_of(conversations(), any_messages), BUDGETS, STRATEGIES)
def test_no_call_loses_its_result_and_no_result_its_call(messages: list[Message], budget: int, strategy: str) -> None:
    try:
        fitted = fit(messages, budget=budget, strategy=strategy, counter=Characters(), api="neutral")
    except BudgetError:
        return
    assert unpaired(fitted.messages) == []


@pytest.mark.acceptance("R14")
@given(st.one_of(conversations(), any_messages), BUDGETS, STRATEGIES)
def test_what_is_used_is_available_or_it_is_an_error(messages: list[Message], budget: int, strategy: str) -> None:
    counter = Characters()
    try:
        fitted = fit(messages, budget=budget, strategy=strategy, counter=counter, api="neutral")
    except BudgetError as error:
        refused = error
    else:
        assert fitted.budget.total == counter.count_messages(fitted.messages) <= budget
        return
    assert refused.needed > refused.available


@given(conversations(), BUDGETS)
def test_oldest_first_leaves_no_room_for_the_next_group(messages: list[Message], budget: int) -> None:
    counter = Characters()
    try:
        fitted = fit(messages, budget=budget, counter=counter, api="neutral", start_with_user=False)
    except BudgetError:
        return
    if dropped := [each for each in fitted.decisions if each.action == "dropped"]:
        newest = [group for group in group_messages(messages) if group.end <= dropped[-1].last + 1][-1]
        assert fitted.budget.remaining < counter.count_messages(messages[slice(*newest)])


@pytest.mark.acceptance("R14")
@given(conversations(), BUDGETS, STRATEGIES)
def test_what_fits_is_left_alone_the_second_time(messages: list[Message], budget: int, strategy: str) -> None:
    try:
        once = fit(messages, budget=budget, strategy=strategy, counter=Characters(), api="neutral")
    except BudgetError:
        return
    twice = fit(once.messages, budget=budget, strategy=strategy, counter=Characters(), api="neutral")
    assert [id(message) for message in twice.messages] == [id(message) for message in once.messages]
    assert twice.decisions == ()


@pytest.mark.acceptance("R14")
@given(any_messages, BUDGETS, STRATEGIES)
def test_the_same_list_gives_the_same_result_and_is_not_changed(
    messages: list[Message], budget: int, strategy: str
) -> None:
    before = copy.deepcopy(messages)
    results = []
    for _ in range(2):
        try:
            results.append(fit(messages, budget=budget, strategy=strategy, counter=Characters(), api="neutral"))
        except BudgetError as error:
            results.append(str(error))  # type: ignore[arg-type]
    assert results[0] == results[1]
    assert messages == before


@given(conversations(), BUDGETS)
def test_sound_messages_come_back_as_the_very_same_objects(messages: list[Message], budget: int) -> None:
    try:
        fitted = fit(messages, budget=budget, counter=Characters(), api="neutral", start_with_user=False)
    except BudgetError:
        return
    given = {id(message) for message in messages}
    assert all(id(message) in given for message in fitted.messages)


@given(conversations(), BUDGETS)
def test_no_message_is_counted_twice(messages: list[Message], budget: int) -> None:
    counter = Characters()
    with contextlib.suppress(BudgetError):
        fit(messages, budget=budget, counter=counter, api="neutral")
    assert len(counter.asked) == len({id(message) for message in counter.asked})


@pytest.mark.parametrize("strategy", ["oldest_first", "middle_out"])
def test_a_long_list_is_read_no_further_than_a_short_one(strategy: str) -> None:
    def read_of(turns: int) -> int:
        counter = Characters()
        messages = [Message("user" if place % 2 == 0 else "assistant", f"message {place:06}") for place in range(turns)]
        fit(messages, budget=200, counter=counter, strategy=strategy)
        return len(counter.asked)

    assert read_of(100) == read_of(1_000) < 30
