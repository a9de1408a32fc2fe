"""What a truncation answers, and what becomes of an answer that is none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from nexus_core import Nexus, PluginError, fit, hookimpl
from nexus_core.history.groups import GrowingHistory, RunningSums
from nexus_core.history.select import call_strategy, shrink_budget
from nexus_core.plugin import TruncationStrategy
from nexus_core.types.messages import Message
from tests.history.counters import Characters


def fail(_groups: object, _budget: int) -> list[slice]:
    raise KeyError("boom")


def always(answer: Any) -> Callable[[object, int], Any]:
    return lambda _groups, _budget: answer


def fitted_by(answer: Any, budget: int = 8) -> list[str]:
    class Plugin:
        @hookimpl
        def nexus_truncation_strategies(self) -> list[TruncationStrategy]:
            return [TruncationStrategy("mine", always(answer))]

    messages = [{"role": "user", "content": text} for text in ("aaa", "bbb", "ccc", "ddd")]
    with Nexus(layers=False, plugins=[Plugin()]) as nexus:
        fitted = fit(messages, budget=budget, strategy="mine", counter=Characters(), host=nexus.host)
    return [str(message["content"]) for message in fitted.messages]


@pytest.mark.acceptance("T-06")
@pytest.mark.parametrize("answer", [[], [slice(3, 1)], [slice(90, 99)], [slice(None)], [slice(-3, None)]])
def test_the_newest_stays_whatever_a_truncation_forgets_or_keeps_too_much_of(answer: list[slice]) -> None:
    assert fitted_by(answer) == ["ddd"]


@pytest.mark.parametrize(
    "answer", [[slice(-1, None), slice(0, 1)], [slice(0, 1), slice(0, 1)], [slice(0, 1), slice(-1, None)], (slice(1),)]
)
def test_slices_may_come_in_any_order_and_overlap(answer: list[slice]) -> None:
    assert fitted_by(answer) == ["aaa", "ddd"]


@pytest.mark.parametrize("answer", [None, 3, [0, 1], slice(-1, None), [slice(0, 9, 2)], [slice("a", "b")]])
def test_an_answer_that_is_no_list_of_slices_is_the_plugins_fault(answer: Any) -> None:
    with pytest.raises(PluginError, match=r"its truncation 'mine' returned .*, expected a list of slices"):
        call_strategy(TruncationStrategy("mine", always(answer)), RunningSums([1, 2]), 1)


def test_a_truncation_that_fails_is_named_with_its_module() -> None:
    with pytest.raises(PluginError, match="its truncation 'mine' raised KeyError: 'boom'") as caught:
        call_strategy(TruncationStrategy("mine", fail), RunningSums([1, 2]), 1)

    assert caught.value.plugin == __name__


def test_groups_are_picked_whatever_the_order_of_slices() -> None:
    history = GrowingHistory()
    for text in "abcd":
        history.append(Message("user", text), 1)

    chosen = history.pick(history.ranges([slice(-1, None), slice(0, 2)]))

    assert [message.content for message, _ in chosen] == ["a", "b", "d"]


def test_what_mending_adds_goes_with_what_it_was_added_to() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
    unanswered = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "user", "content": "go on with something else"},
    ]

    fitted = fit(unanswered * 100, budget=2000, counter=Characters())

    assert 1800 < fitted.budget.total <= 2000


def test_room_becomes_smaller_or_nothing() -> None:
    assert shrink_budget(100, 100, 150, 100) == 66
    assert shrink_budget(100, 100, 101, 100) == 99
    assert shrink_budget(99, 300, 300, 100) == -1
