"""Where a session stands: what its newest step and its record say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.assembly.calibration import read_ratios
from nexus_core.assembly.cut import read_cut
from nexus_core.assembly.named_windows import read_windows

if TYPE_CHECKING:
    from nexus_core.assembly.calibration import Ratios
    from nexus_core.assembly.cut import Cut
    from nexus_core.assembly.named_windows import Windows
    from nexus_core.session.steps.turns import Turn
    from nexus_core.types.ledger import NewStep, SessionRecord, Step
    from nexus_core.types.messages import JSON

CARRIED = ("epoch", "view", "setup", "cut", "calibration", "windows", "request_bytes", "pins")
"""What goes on from step to step, so that the newest one alone says where a session stands."""


class State(NamedTuple):
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
    def kept(self) -> JSON:
        """What the session remembers."""
        return {} if self.record is None else self.record.data

    @property
    def reloads(self) -> int:
        """How often it was told to read everything again."""
        reloads = self.kept.get("reloads")
        return reloads if isinstance(reloads, int) else 0

    @property
    def epoch(self) -> str:
        """The epoch so far, by its digest; "" before the first."""
        return self._text("epoch")

    @property
    def view(self) -> str:
        """What the model was told last, by its digest."""
        return self._text("view")

    @property
    def setup(self) -> str:
        """What the settings said about calls when something was last sent, by its digest."""
        return self._text("setup")

    @property
    def cut(self) -> Cut | None:
        """Where the history begins."""
        return read_cut(self._data.get("cut"))

    @property
    def ratios(self) -> Ratios:
        """How providers have counted."""
        return read_ratios(self._data.get("calibration"))

    @property
    def windows(self) -> Windows:
        """The windows that providers named."""
        return read_windows(self._data.get("windows"))

    @property
    def request_bytes(self) -> Windows:
        """The sizes of requests that were refused as too large, less one."""
        return read_windows(self._data.get("request_bytes"))

    @property
    def pins(self) -> tuple[str, ...]:
        """The steps that stay as they are when others are summarised."""
        return pins_of(self.tip)

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


def pins_of(tip: Step | None) -> tuple[str, ...]:
    """The steps that are pinned, as the newest step says."""
    pins = None if tip is None else tip.data.get("pins")
    return tuple(map(str, pins)) if isinstance(pins, list | tuple) else ()


def carried(tip: Step | NewStep | None) -> dict[str, Any]:
    """What a step behind another says, unless it knows better."""
    return {} if tip is None else {name: tip.data[name] for name in CARRIED if tip.data.get(name) is not None}
