"""How a provider counts, told from what it said about earlier calls; carried from step to step, for each model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.history.items import read_truncation_point
from nexus_core.types.budget import TokenCalibration

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nexus_core.history.items import TruncationPoint
    from nexus_core.thread.turns import Turn
    from nexus_core.types.ledger import NewStep, SessionRecord, Step
    from nexus_core.types.messages import JSON

MAX_CALIBRATED_MODELS = 8
"""The newest calls of a model that count."""
MAX_CALIBRATION_SAMPLES = 3
"""Fewer say too little."""
MIN_CALIBRATION_TOKENS = 1000
"""Tokens. In a short call, what a provider adds to every call weighs too much."""
PLAUSIBLE_RATIOS = (0.5, 2.0)
"""Beyond this, something else was sent than we put together."""

CalibrationSamples = dict[str, list[float]]
"""By model, how the provider's counts of the newest calls compare with ours."""


def read_calibration_samples(value: object) -> CalibrationSamples:
    """What a step says about models."""
    return {name: list(ratios) for name, ratios in value.items()} if isinstance(value, dict) else {}


def add_calibration_sample(known: CalibrationSamples, model: str, sent: int, counted: int) -> CalibrationSamples:
    """What is known after another call.

    Args:
        known: What was known before.
        model: Who was asked.
        sent: What was sent, as we count.
        counted: The same as the provider counts.
    """
    ratio = counted / sent if sent else 0.0
    if sent < MIN_CALIBRATION_TOKENS or not PLAUSIBLE_RATIOS[0] <= ratio <= PLAUSIBLE_RATIOS[1]:
        return known
    return {**known, model: [*known.get(model, [])[-MAX_CALIBRATED_MODELS + 1 :], round(ratio, 4)]}


def get_calibration(known: Mapping[str, Any], model: str) -> TokenCalibration | None:
    """How the model's provider counts; None while too few calls say so."""
    ratios = known.get(model) or []
    if len(ratios) < MAX_CALIBRATION_SAMPLES:
        return None
    return TokenCalibration(len(ratios), min(ratios), _middle(sorted(ratios)), max(ratios))


def _middle(numbers: Sequence[float]) -> float:
    """The median, without the modules that Python's own needs."""
    half = len(numbers) // 2
    return (numbers[half] + numbers[-half - 1]) / 2


class LearnedLimit(NamedTuple):
    """A window that a provider named.

    Attributes:
        limit: What it said.
        assumed: What we thought then.
    """

    limit: int
    assumed: int


LearnedLimits = dict[str, LearnedLimit]
"""By model."""


def read_learned_limits(value: object) -> LearnedLimits:
    """What a step says about models."""
    rows = value.items() if isinstance(value, dict) else ()
    return {name: LearnedLimit(*row) for name, row in rows if _is_row(row)}


def add_learned_limit(known: LearnedLimits, model: str, limit: int | None, thought: int) -> LearnedLimits | None:
    """What is known after a provider refused a call; None where that is nothing new.

    Args:
        known: What was known before.
        model: Who was asked.
        limit: How many tokens it reads; None when the provider did not say.
        thought: How many it reads as far as settings and plugins know.
    """
    if limit is None or limit >= get_learned_limit(known, model, thought):
        return None
    return {**known, model: LearnedLimit(limit, thought)}


def get_learned_limit(known: LearnedLimits, model: str, thought: int) -> int:
    """How many tokens a model reads, as far as anybody knows.

    Args:
        known: What providers have named.
        model: The model.
        thought: How many it reads as far as settings and plugins know.
    """
    named = known.get(model)
    return thought if named is None or named.assumed != thought else named.limit


def _is_row(row: object) -> bool:
    return (
        isinstance(row, list | tuple)
        and len(row) == len(LearnedLimit._fields)
        and all(type(each) is int for each in row)
    )


CARRIED_FIELDS = ("epoch", "view", "setup", "cut", "calibration", "windows", "request_bytes", "pins")
"""What goes on from step to step, so that the newest one alone says where a session stands."""


class SessionState(NamedTuple):
    """Where a session stands.

    Attributes:
        record: The session; None before anything was said.
        tip: Its newest step.
        turn: The turn of that step, open or not.
    """

    record: SessionRecord | None
    tip: Step | None
    turn: Turn | None

    @property
    def open_turn(self) -> Turn | None:
        """The turn that is open."""
        return self.turn if self.turn is not None and self.turn.is_open else None

    @property
    def stored_options(self) -> JSON:
        """What the session remembers."""
        return {} if self.record is None else self.record.data

    @property
    def reloads(self) -> int:
        """How often it was told to read everything again."""
        reloads = self.stored_options.get("reloads")
        return reloads if isinstance(reloads, int) else 0

    @property
    def epoch(self) -> str:
        """The epoch so far, by its digest; "" before the first."""
        return self._text("epoch")

    @property
    def sections_digest(self) -> str:
        """What the model was told last, by its digest."""
        return self._text("view")

    @property
    def settings_digest(self) -> str:
        """What the settings said about calls when something was last sent, by its digest."""
        return self._text("setup")

    @property
    def cut(self) -> TruncationPoint | None:
        """Where the history begins."""
        return read_truncation_point(self._data.get("cut"))

    @property
    def calibration_samples(self) -> CalibrationSamples:
        """How providers have counted."""
        return read_calibration_samples(self._data.get("calibration"))

    @property
    def learned_windows(self) -> LearnedLimits:
        """The windows that providers named."""
        return read_learned_limits(self._data.get("windows"))

    @property
    def learned_request_bytes(self) -> LearnedLimits:
        """The sizes of requests that were refused as too large, less one."""
        return read_learned_limits(self._data.get("request_bytes"))

    @property
    def pins(self) -> tuple[str, ...]:
        """The steps that stay as they are when others are summarised."""
        return get_pins(self.tip)

    @property
    def event(self) -> dict[str, Any]:
        """What is known about the occasion of the open turn."""
        event = self.open_turn.steps[0].data.get("event") if self.open_turn else None
        return dict(event) if isinstance(event, dict) else {}

    @property
    def _data(self) -> JSON:
        return {} if self.tip is None else self.tip.data

    def _text(self, name: str) -> str:
        value = self._data.get(name)
        return value if isinstance(value, str) else ""


def get_pins(tip: Step | None) -> tuple[str, ...]:
    """The steps that are pinned, as the newest step says."""
    pins = None if tip is None else tip.data.get("pins")
    return tuple(map(str, pins)) if isinstance(pins, list | tuple) else ()


def get_carried_fields(tip: Step | NewStep | None) -> dict[str, Any]:
    """What a step behind another says, unless it knows better."""
    return {} if tip is None else {name: tip.data[name] for name in CARRIED_FIELDS if tip.data.get(name) is not None}
