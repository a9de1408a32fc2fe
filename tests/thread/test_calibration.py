"""What a provider's own counts teach."""

from __future__ import annotations

import pytest

from nexus_core.thread.calibration import MAX_CALIBRATION_SAMPLES, CountedCall, add_calibration_sample, get_calibration
from nexus_core.types.budget import TokenBudget, TokenCalibration


def test_a_few_replies_tell_how_a_provider_counts() -> None:
    known: dict[str, list[float]] = {}
    for counted in (1100, 1200, 1300):
        known = add_calibration_sample(known, "m", CountedCall(1000, counted))

    assert get_calibration(known, "m") == TokenCalibration(3, 1.1, 1.2, 1.3)
    assert get_calibration(known, "other") is None


def test_one_reply_is_enough_to_start_from() -> None:
    known = add_calibration_sample({}, "m", CountedCall(1000, 1200))

    assert get_calibration(known, "m", last=CountedCall(1000, 1200)) == TokenCalibration(1, 1.2, 1.2, 1.2, 1000, 1200)


def test_before_the_first_reply_the_error_of_the_model_table_is_the_range() -> None:
    assert get_calibration({}, "m") is None
    assert get_calibration({}, "m", error=0.1) == TokenCalibration(0, 0.9, 1.0, 1.1)


def test_the_error_of_the_model_table_widens_the_range_of_the_first_replies() -> None:
    two, three = {"m": [1.0, 1.5]}, {"m": [1.0, 1.2, 1.1]}

    assert get_calibration(two, "m", error=0.5) == TokenCalibration(2, 0.5, 1.25, 2.25)
    assert get_calibration(three, "m", error=0.5) == TokenCalibration(3, 1.0, 1.1, 1.2)


def test_after_the_first_call_only_what_is_new_is_compared() -> None:
    known = add_calibration_sample({}, "m", CountedCall(4000, 24_600), CountedCall(2000, 22_000))

    assert known == {"m": [1.3]}


@pytest.mark.parametrize(("sent", "counted"), [(0, 10), (10, 15), (999, 1000), (1000, 2001), (1000, 400), (1000, 0)])
def test_what_cannot_be_right_teaches_nothing(sent: int, counted: int) -> None:
    assert add_calibration_sample({}, "m", CountedCall(sent, counted)) == {}
    assert add_calibration_sample({}, "m", CountedCall(sent + 50, counted + 50), CountedCall(50, 50)) == {}


def test_only_the_newest_replies_count() -> None:
    known: dict[str, list[float]] = {}
    for _ in range(20):
        known = add_calibration_sample(known, "m", CountedCall(1000, 2000))
    for _ in range(MAX_CALIBRATION_SAMPLES):
        known = add_calibration_sample(known, "m", CountedCall(1000, 1000))

    assert get_calibration(known, "m") == TokenCalibration(MAX_CALIBRATION_SAMPLES, 1.0, 1.0, 1.0)


def test_a_budget_goes_by_the_high_side() -> None:
    budget = TokenBudget(limit=1000, used={"history": 500}, calibration=TokenCalibration(3, 0.9, 1.1, 1.25))

    assert (budget.total, budget.low, budget.estimate, budget.high) == (500, 450, 550, 625)
    assert budget.remaining == 375


def test_a_prediction_is_the_last_count_and_what_is_new() -> None:
    calibration = TokenCalibration(1, 0.9, 1.0, 1.1, sent=1000, counted=21_000)
    budget = TokenBudget(limit=50_000, used={"history": 2000, "event": 110}, margin=10, calibration=calibration)

    assert (budget.low, budget.estimate, budget.high) == (21_990, 22_100, 22_221)


def test_a_shorter_call_is_predicted_with_as_much_caution() -> None:
    calibration = TokenCalibration(1, 0.9, 1.0, 1.1, sent=1000, counted=21_000)
    budget = TokenBudget(limit=50_000, used={"history": 500}, calibration=calibration)

    assert (budget.low, budget.estimate, budget.high) == (20_450, 20_500, 20_550)


@pytest.mark.parametrize("available", [0, 10, 20_999, 21_000, 21_001, 33_333, 100_000])
@pytest.mark.parametrize("seen", [(0, 0), (1000, 21_000), (30_000, 21_000)])
def test_a_call_that_uses_the_available_tokens_fits(available: int, seen: tuple[int, int]) -> None:
    calibration = TokenCalibration(3, 0.83, 1.04, 1.17, *seen)
    tokens = calibration.compute_available(available)

    assert calibration.predict_high(tokens) <= available or tokens == 0
    assert calibration.predict_high(tokens + 2) > available
