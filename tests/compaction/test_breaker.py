"""Compaction never goes round in circles."""

from __future__ import annotations

import pytest

from nexus_core.compaction.trigger import Savings, find_stop_reason

GOOD, SMALL, WORSE = Savings(1000, 400), Savings(1000, 950), Savings(1000, 1100)


@pytest.mark.parametrize(
    ("gain", "share", "is_small"),
    [
        (GOOD, 0.6, False),
        (Savings(1000, 900), 0.1, False),
        (SMALL, 0.05, True),
        (WORSE, -0.1, True),
        (Savings(0, 0), 0.0, True),
    ],
)
def test_a_gain_is_a_share(gain: Savings, share: float, is_small: bool) -> None:
    assert gain.share == pytest.approx(share)
    assert gain.is_small == is_small


@pytest.mark.parametrize("recent", [[], [SMALL], [SMALL, GOOD], [GOOD, SMALL], [SMALL, SMALL, GOOD]])
def test_nothing_speaks_against_it(recent: list[Savings]) -> None:
    assert find_stop_reason(recent, since_reply=1, turns_since=0) == ""


@pytest.mark.acceptance("R15")
@pytest.mark.parametrize("recent", [[SMALL, SMALL], [GOOD, SMALL, WORSE]])
def test_two_in_a_row_that_were_not_worth_it_are_enough(recent: list[Savings]) -> None:
    assert find_stop_reason(recent, since_reply=0, turns_since=2).startswith(
        "the last two compactions saved only 5% and "
    )


def test_with_new_turns_it_is_tried_again() -> None:
    assert find_stop_reason([SMALL, SMALL], since_reply=0, turns_since=3) == ""


@pytest.mark.acceptance("R15")
@pytest.mark.parametrize("times", [2, 3])
def test_two_without_a_reply_between_them_are_enough(times: int) -> None:
    assert (
        find_stop_reason([GOOD] * times, since_reply=times, turns_since=9)
        == f"there were {times} compactions since the last reply"
    )
