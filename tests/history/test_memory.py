"""What was read and counted before."""

from __future__ import annotations

from typing import Any

from nexus_core import fit
from tests.history.counters import Characters

COUNTER = Characters()


def asked_by(messages: list[dict[str, Any]]) -> int:
    before = len(COUNTER.asked)
    fit(messages, budget=1000, counter=COUNTER)
    return len(COUNTER.asked) - before


def test_a_message_is_read_and_counted_once_in_its_life() -> None:
    messages = [{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}]

    assert asked_by(messages) == 2
    assert asked_by(messages) == 0
    assert asked_by([*messages, {"role": "user", "content": "three"}]) == 1


def test_a_message_that_was_changed_is_read_again() -> None:
    messages: list[dict[str, Any]] = [{"role": "user", "content": [{"type": "text", "text": "one"}]}]
    fit(messages, budget=1000, counter=COUNTER)

    messages[0]["content"][0]["text"] = "another"

    assert fit(messages, budget=1000, counter=COUNTER).budget.total == len("another") + 1


def test_a_message_that_became_wrong_is_repaired_although_it_was_right_before() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "Why?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": "x"},
    ]
    assert fit(messages, budget=1000, counter=COUNTER).findings == ()

    del messages[1]

    assert [finding.code for finding in fit(messages, budget=1000, counter=COUNTER).findings] == ["orphan-result"]


def test_a_counter_that_cannot_be_remembered_counts_every_time() -> None:
    class Slotted(Characters):
        __slots__ = ("asked",)
        __hash__ = None  # type: ignore[assignment] # on purpose

    messages = [{"role": "user", "content": "one"}]
    counter = Slotted()

    fit(messages, budget=1000, counter=counter)
    fit(messages, budget=1000, counter=counter)

    assert len(counter.asked) == 2
