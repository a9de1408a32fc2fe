"""Automatic compaction pauses before it loops."""

from __future__ import annotations

import pytest

from nexus_core.compaction.trigger import compute_saved_share, find_cooldown

Savings = tuple[int, int]

GOOD, SMALL, WORSE = (1000, 400), (1000, 950), (1000, 1100)


@pytest.mark.parametrize(
    ("savings", "share"), [(GOOD, 0.6), ((1000, 900), 0.1), (SMALL, 0.05), (WORSE, -0.1), ((0, 0), 0.0)]
)
def test_savings_are_a_share(savings: Savings, share: float) -> None:
    assert compute_saved_share(*savings) == pytest.approx(share)


@pytest.mark.parametrize(
    "savings", [[], [SMALL], [SMALL, GOOD], [GOOD, SMALL], [SMALL, SMALL, GOOD], [SMALL, (1000, 900)]]
)
def test_one_useful_compaction_is_enough_to_continue(savings: list[Savings]) -> None:
    assert find_cooldown(savings, since_reply=1, turns_since=0) is None


@pytest.mark.acceptance("R15")
@pytest.mark.parametrize("savings", [[SMALL, SMALL], [GOOD, SMALL, WORSE]])
def test_two_small_savings_in_a_row_pause_compaction(savings: list[Savings]) -> None:
    reason = find_cooldown(savings, since_reply=0, turns_since=2)

    assert reason is not None
    assert reason.code == "small-savings"
    assert reason.message.startswith("the last two compactions saved only 5% and ")
    assert reason.hint == "it is tried again after 1 more turn"


def test_new_turns_end_the_pause_after_small_savings() -> None:
    assert find_cooldown([SMALL, SMALL], since_reply=0, turns_since=3) is None


@pytest.mark.acceptance("R15")
@pytest.mark.parametrize("times", [2, 3])
def test_two_compactions_without_a_reply_pause_compaction(times: int) -> None:
    reason = find_cooldown([GOOD] * times, since_reply=times, turns_since=9)

    assert reason is not None
    assert (reason.code, reason.message) == ("cooldown", f"there were {times} compactions since the last reply")
