"""What fits, and what takes it up."""

from __future__ import annotations

import dataclasses

import pytest

from nexus_core.context import TokenBudget
from nexus_core.plugin import TruncationStrategy


@pytest.mark.acceptance("D-01")
def test_what_is_available_is_the_limit_without_the_reserves() -> None:
    budget = TokenBudget(limit=200_000, reserve_response=8000, reserve_tools=16_000, used={"history": 100_000})

    assert budget.available == 176_000
    assert budget.remaining == 76_000


@pytest.mark.acceptance("C-12", "D-02")
def test_tools_take_room_like_everything_else() -> None:
    budget = TokenBudget(limit=100, used={"system": 10, "tools": 20, "history": 30, "memory": 5, "event": 35})

    assert budget.total == 100
    assert budget.remaining == 0


@pytest.mark.acceptance("B-20")
def test_reserves_above_the_limit_are_refused() -> None:
    with pytest.raises(ValueError, match="reserves 130 tokens of a limit of 100"):
        TokenBudget(limit=100, reserve_response=90, reserve_tools=40)


@pytest.mark.parametrize("field", ["limit", "reserve_response", "reserve_tools"])
def test_negative_numbers_are_refused(field: str) -> None:
    with pytest.raises(ValueError, match=f"{field} must not be negative"):
        dataclasses.replace(TokenBudget(limit=100), **{field: -1})  # type: ignore[arg-type] # of mixed types


def test_a_truncation_needs_a_function() -> None:
    with pytest.raises(ValueError, match="must be a function"):
        TruncationStrategy("newest", "newest")  # type: ignore[arg-type] # on purpose
