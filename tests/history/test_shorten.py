"""Long results of tools as their head and tail."""

from __future__ import annotations

from typing import Any

import pytest

from nexus_core import UsageError, fit
from nexus_core.history.shorten import shorten_results, shorten_text, split_head_and_tail
from nexus_core.types.messages import Message, Text, ToolResult
from tests.history.counters import Characters


@pytest.mark.parametrize("limit", [0, 1, 10, 40, 100])
def test_a_text_never_becomes_longer(limit: int) -> None:
    for length in range(120):
        assert len(shorten_text("x" * length, limit, len)) <= length


def test_a_result_that_would_become_longer_is_the_same_object() -> None:
    message = Message("tool", (ToolResult("a", (Text("short"),)),))

    assert shorten_results(message, 1, len) is message


@pytest.mark.parametrize("limit", [-1, 1.5, "10", True])
def test_a_limit_that_is_none_is_refused(limit: Any) -> None:
    with pytest.raises(UsageError, match="result_tokens is a number of tokens"):
        fit([{"role": "user", "content": "hi"}], budget=10, result_tokens=limit, counter=Characters())


@pytest.mark.parametrize("limit", [0, -1, -100])
def test_without_any_room_only_the_line_is_left(limit: int) -> None:
    assert split_head_and_tail("some words", limit, len, str) == (0, 0)
