"""Repair does about as much for each message however long the list is."""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

from nexus_core.history.repair import repair_messages
from nexus_core.types.messages import Message, Reasoning, Text, ToolCall, ToolResult
from tests.effort import sampled


def call(*ids: str) -> Message:
    return Message("assistant", tuple(ToolCall(name, "read") for name in ids))


def result(*ids: str) -> Message:
    return Message("tool", tuple(ToolResult(name, "x", "read") for name in ids))


def sound(count: int) -> list[Message]:
    return [each for n in range(count) for each in (Message("user", "hi"), call(f"{n}"), result(f"{n}"))]


def one_id(count: int) -> list[Message]:
    return [each for _ in range(count) for each in (call("a"), Message("user", "hi"), result("a"))]


def results_first(count: int) -> list[Message]:
    return [*(result("a") for _ in range(count)), Message("user", "hi"), *(call("a") for _ in range(count))]


def results_last(count: int) -> list[Message]:
    asked = [each for n in range(count) for each in (call(f"{n}"), Message("user", "hi"))]
    return [*asked, *(result(f"{n}") for n in range(count))]


def one_turn(count: int) -> list[Message]:
    return [Message("user", "hi"), call(*["a"] * count), *(result("a") for _ in range(count))]


def without_ids(count: int) -> list[Message]:
    return [Message("user", "hi"), call(*[""] * count), *(result("") for _ in range(count))]


def never_answered(count: int) -> list[Message]:
    return [Message("user", "hi"), *(call("a") for _ in range(count)), Message("user", "hi")]


def thoughts(count: int) -> list[Message]:
    return [Message("assistant", (Reasoning(text="hm", api="responses"), Text(""))) for _ in range(count)]


def instructions(count: int) -> list[Message]:
    return [Message("user", "hi"), *(Message("system", "be kind") for _ in range(count))]


LISTS = [
    *(sound, one_id, results_first, results_last, one_turn, without_ids, never_answered, thoughts, instructions),
]


def events(work: Callable[[], object]) -> int:
    """How many functions are called, ours and Python's."""
    count = 0

    def profile(*_: Any) -> None:
        nonlocal count
        count += 1

    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.slow
@pytest.mark.parametrize(
    ("api", "make"), sampled(product(["openai", "responses", "anthropic", "gemini", "neutral"], LISTS), one_in=4)
)
def test_eight_times_the_messages_take_eight_times_the_work(api: str, make: Callable[[int], list[Message]]) -> None:
    short, long = make(50), make(400)
    repair_messages(short, api)  # imports and caches

    assert events(lambda: repair_messages(long, api)) <= 8.5 * events(lambda: repair_messages(short, api))
