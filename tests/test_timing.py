"""Comparisons of processor time."""

from __future__ import annotations

import gc

import pytest

from tests import timing
from tests.timing import assert_linear, assert_quick


@pytest.fixture(autouse=True)
def few_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure that is expected need not be measured twenty times."""
    monkeypatch.setattr(timing, "MAX_PAIRS", 3)
    monkeypatch.setattr(timing, "PAUSE_SECONDS", 0)


def test_work_that_takes_longer_than_its_limit_fails() -> None:
    with pytest.raises(AssertionError, match="the limit is"):
        assert_quick(lambda: sum(range(200_000)), times=0.001)


def test_work_that_grows_with_the_square_of_its_input_fails() -> None:
    with pytest.raises(AssertionError, match="the input 8 times as long"):
        assert_linear(lambda size: sum(1 for _ in range(size * size)), 200, 1600, times=8)


def test_measuring_leaves_frozen_what_is_frozen() -> None:
    gc.freeze()
    before = gc.get_freeze_count()

    assert_quick(lambda: None, times=1)

    assert gc.get_freeze_count() > before * 0.9
