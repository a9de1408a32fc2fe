"""What a provider's own counts teach."""

from __future__ import annotations

import pytest

from nexus_core.thread.state import MAX_CALIBRATION_SAMPLES, add_calibration_sample, get_calibration
from nexus_core.types.budget import TokenBudget, TokenCalibration


def test_a_few_replies_tell_how_a_provider_counts() -> None:
    known: dict[str, list[float]] = {}
    for counted in (1100, 1200, 1300):
        known = add_calibration_sample(known, "m", 1000, counted)

    assert get_calibration(known, "m") == TokenCalibration(3, 1.1, 1.2, 1.3)
    assert get_calibration(known, "other") is None


def test_two_replies_are_too_few() -> None:
    assert (
        get_calibration(add_calibration_sample(add_calibration_sample({}, "m", 1000, 1100), "m", 1000, 1100), "m")
        is None
    )


@pytest.mark.parametrize(("sent", "counted"), [(0, 10), (10, 15), (999, 1000), (1000, 2001), (1000, 400), (1000, 0)])
def test_what_cannot_be_right_teaches_nothing(sent: int, counted: int) -> None:
    assert add_calibration_sample({}, "m", sent, counted) == {}


def test_only_the_newest_replies_count() -> None:
    known: dict[str, list[float]] = {}
    for _ in range(20):
        known = add_calibration_sample(known, "m", 1000, 2000)
    for _ in range(MAX_CALIBRATION_SAMPLES):
        known = add_calibration_sample(known, "m", 1000, 1000)

    assert get_calibration(known, "m") == TokenCalibration(MAX_CALIBRATION_SAMPLES, 1.0, 1.0, 1.0)


def test_a_budget_goes_by_the_high_side() -> None:
    budget = TokenBudget(limit=1000, used={"history": 500}, calibration=TokenCalibration(3, 0.9, 1.1, 1.25))

    assert (budget.total, budget.low, budget.estimate, budget.high) == (500, 450, 550, 625)
    assert budget.remaining == 375
