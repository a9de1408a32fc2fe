"""State of a session, read from its newest step and its record.

Each step carries the calibration and the learned limits of every model on to the next step.
"""

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

MAX_CALIBRATION_SAMPLES = 8
"""Newest calls of a model that the calibration uses."""
MIN_CALIBRATION_SAMPLES = 3
"""Fewer calls are not enough for a calibration."""
MIN_CALIBRATION_TOKENS = 1000
"""In a shorter call, the tokens that a provider adds to every call distort the ratio."""
PLAUSIBLE_RATIOS = (0.5, 2.0)
"""A ratio outside this range means that the caller did not send the call as it was assembled."""
CARRIED_FIELDS = ("epoch", "view", "setup", "cut", "calibration", "windows", "request_bytes", "pins")
"""Data that each step copies from the one before, so that the newest step alone holds the session's state."""


class SessionState(NamedTuple):
    """State of a session at its newest step.

    Attributes:
        record: The session; None before its first step.
        tip: Its newest step; None before the first.
        turn: The turn of that step, open or closed.
    """

    record: SessionRecord | None
    tip: Step | None
    turn: Turn | None

    @property
    def open_turn(self) -> Turn | None:
        """The open turn; None if the newest turn is closed."""
        return self.turn if self.turn is not None and self.turn.is_open else None

    @property
    def stored_options(self) -> JSON:
        """The options stored with the session."""
        return {} if self.record is None else self.record.data

    @property
    def reloads(self) -> int:
        """How often a caller requested a new prefix."""
        reloads = self.stored_options.get("reloads")
        return reloads if isinstance(reloads, int) else 0

    @property
    def epoch(self) -> str:
        """The digest of the current prefix; "" before the first call."""
        return self._get_text("epoch")

    @property
    def sections_digest(self) -> str:
        """The digest of the sections last sent; "" before the first call."""
        return self._get_text("view")

    @property
    def settings_digest(self) -> str:
        """The digest of the settings of the last call; "" before the first."""
        return self._get_text("setup")

    @property
    def cut(self) -> TruncationPoint | None:
        """The truncation point of the last call; None if nothing was left out."""
        return read_truncation_point(self._data.get("cut"))

    @property
    def calibration_samples(self) -> CalibrationSamples:
        """Ratios of provider counts to ours, by model."""
        return read_calibration_samples(self._data.get("calibration"))

    @property
    def learned_windows(self) -> LearnedLimits:
        """Context windows that providers reported, by model."""
        return read_learned_limits(self._data.get("windows"))

    @property
    def learned_request_bytes(self) -> LearnedLimits:
        """Largest request bodies in bytes that providers accept, by model."""
        return read_learned_limits(self._data.get("request_bytes"))

    @property
    def pins(self) -> tuple[str, ...]:
        """The ids of pinned steps, which compactions keep."""
        return get_pins(self.tip)

    @property
    def event(self) -> dict[str, Any]:
        """Metadata of the event that started the open turn."""
        event = self.open_turn.steps[0].data.get("event") if self.open_turn else None
        return dict(event) if isinstance(event, dict) else {}

    @property
    def _data(self) -> JSON:
        return {} if self.tip is None else self.tip.data

    def _get_text(self, name: str) -> str:
        value = self._data.get(name)
        return value if isinstance(value, str) else ""


def get_pins(tip: Step | None) -> tuple[str, ...]:
    """Return the ids of pinned steps from the newest step."""
    pins = None if tip is None else tip.data.get("pins")
    return tuple(map(str, pins)) if isinstance(pins, list | tuple) else ()


def get_carried_fields(tip: Step | NewStep | None) -> dict[str, Any]:
    """Return the data that a step after `tip` carries on, unless it sets its own."""
    return {} if tip is None else {name: tip.data[name] for name in CARRIED_FIELDS if tip.data.get(name) is not None}


# ---- calibration ----------------------------------------------------------------------------------------------------


CalibrationSamples = dict[str, list[float]]
"""By model, the provider's count divided by ours, for each of the newest calls."""


def read_calibration_samples(value: object) -> CalibrationSamples:
    """Return the calibration samples that a step stores."""
    return {name: list(ratios) for name, ratios in value.items()} if isinstance(value, dict) else {}


def add_calibration_sample(known: CalibrationSamples, model: str, sent: int, counted: int) -> CalibrationSamples:
    """Return the samples after another call.

    A call that is too short, or whose ratio is implausible, adds none.

    Args:
        known: The samples so far.
        model: The name of the model.
        sent: Tokens of the call, by our count.
        counted: Tokens of the call, by the provider's count.
    """
    ratio = counted / sent if sent else 0.0
    if sent < MIN_CALIBRATION_TOKENS or not PLAUSIBLE_RATIOS[0] <= ratio <= PLAUSIBLE_RATIOS[1]:
        return known
    return {**known, model: [*known.get(model, [])[-MAX_CALIBRATION_SAMPLES + 1 :], round(ratio, 4)]}


def get_calibration(known: Mapping[str, Any], model: str) -> TokenCalibration | None:
    """Return how a model's provider counts; None if there are too few samples."""
    ratios = known.get(model) or []
    if len(ratios) < MIN_CALIBRATION_SAMPLES:
        return None
    return TokenCalibration(len(ratios), min(ratios), _compute_median(sorted(ratios)), max(ratios))


def _compute_median(numbers: Sequence[float]) -> float:
    """Return the median. `statistics` would import too much at startup."""
    half = len(numbers) // 2
    return (numbers[half] + numbers[-half - 1]) / 2


# ---- learned limits -------------------------------------------------------------------------------------------------


class LearnedLimit(NamedTuple):
    """A limit that a provider reported in an error.

    Attributes:
        limit: The reported limit.
        assumed: The limit by settings and plugins at that time; the reported one holds until this changes.
    """

    limit: int
    assumed: int


LearnedLimits = dict[str, LearnedLimit]
"""Learned limits, by model."""


def read_learned_limits(value: object) -> LearnedLimits:
    """Return the learned limits that a step stores."""
    rows = value.items() if isinstance(value, dict) else ()
    return {name: LearnedLimit(*row) for name, row in rows if _is_learned_limit(row)}


def _is_learned_limit(row: object) -> bool:
    return (
        isinstance(row, list | tuple)
        and len(row) == len(LearnedLimit._fields)
        and all(type(each) is int for each in row)
    )


def add_learned_limit(known: LearnedLimits, model: str, limit: int | None, assumed: int) -> LearnedLimits | None:
    """Return the limits after a refused call; None if nothing new was learned.

    Args:
        known: The limits so far.
        model: The name of the model.
        limit: The limit that the provider reported; None if it reported none.
        assumed: The limit by settings and plugins.
    """
    if limit is None or limit >= get_learned_limit(known, model, assumed):
        return None
    return {**known, model: LearnedLimit(limit, assumed)}


def get_learned_limit(known: LearnedLimits, model: str, assumed: int) -> int:
    """Return the limit of a model: the learned one, else the assumed one.

    A learned limit holds as long as the assumed one is the same.

    Args:
        known: The learned limits.
        model: The name of the model.
        assumed: The limit by settings and plugins.
    """
    learned = known.get(model)
    return assumed if learned is None or learned.assumed != assumed else learned.limit
