"""How a provider counts, told from what it said about earlier calls; carried from step to step, for each model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core.types.budget import TokenCalibration

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

REMEMBERED = 8
"""The newest calls of a model that count."""
ENOUGH = 3
"""Fewer say too little."""
SMALLEST = 1000
"""Tokens. In a short call, what a provider adds to every call weighs too much."""
PLAUSIBLE = (0.5, 2.0)
"""Beyond this, something else was sent than we put together."""

Ratios = dict[str, list[float]]
"""By model, how the provider's counts of the newest calls compare with ours."""


def read_ratios(value: object) -> Ratios:
    """What a step says about models."""
    return {name: list(ratios) for name, ratios in value.items()} if isinstance(value, dict) else {}


def learn(known: Ratios, model: str, sent: int, counted: int) -> Ratios:
    """What is known after another call.

    Args:
        known: What was known before.
        model: Who was asked.
        sent: What was sent, as we count.
        counted: The same as the provider counts.
    """
    ratio = counted / sent if sent else 0.0
    if sent < SMALLEST or not PLAUSIBLE[0] <= ratio <= PLAUSIBLE[1]:
        return known
    return {**known, model: [*known.get(model, [])[-REMEMBERED + 1 :], round(ratio, 4)]}


def calibration_of(known: Mapping[str, Any], model: str) -> TokenCalibration | None:
    """How the model's provider counts; None while too few calls say so."""
    ratios = known.get(model) or []
    if len(ratios) < ENOUGH:
        return None
    return TokenCalibration(len(ratios), min(ratios), _middle(sorted(ratios)), max(ratios))


def _middle(numbers: Sequence[float]) -> float:
    """The median, without the modules that Python's own needs."""
    half = len(numbers) // 2
    return (numbers[half] + numbers[-half - 1]) / 2
