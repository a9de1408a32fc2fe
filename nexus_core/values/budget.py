"""What fits, what was decided so that it fits, and who decides."""

from __future__ import annotations

from dataclasses import field
from math import ceil
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from nexus_core.values.checks import require_type, require_words
from nexus_core.values.fast_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Action = Literal["kept", "dropped", "shortened", "masked", "repaired"]


class Calibration(NamedTuple):
    """How a provider's counts compare with ours, told from the replies of a model so far.

    Attributes:
        replies: How many replies it is told from.
        low, estimate, high: The provider's count for each token of ours: the least, the usual and the most.
    """

    replies: int
    low: float
    estimate: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenBudget:
    """A model's window and what takes it up.

    Attributes:
        limit: The window.
        reserve_response: What is kept free for the answer.
        reserve_tools: What is kept free for the results of tools that the model calls next.
        used: Tokens by what they are for: `system`, `tools`, `history`, `memory`, `event`.
        margin: The part of `used["event"]` that is a safety margin, because tokens are estimated.
        bytes: How large the request is at most; 0 when nobody measured.
        byte_limit: How large it may be; 0 for what the model's API takes, or when nobody says.
        estimated: Whether any of it is an estimate.
        calibration: How the provider has counted what was sent before; None while too few replies say so.
    """

    limit: int
    reserve_response: int = 0
    reserve_tools: int = 0
    used: Mapping[str, int] = field(default_factory=dict)
    margin: int = 0
    bytes: int = 0
    byte_limit: int = 0
    estimated: bool = False
    calibration: Calibration | None = None

    def __post_init__(self) -> None:
        for name in ("limit", "reserve_response", "reserve_tools", "byte_limit"):
            require_type(getattr(self, name), f"TokenBudget.{name}", int)
            if getattr(self, name) < 0:
                raise ValueError(f"TokenBudget.{name} must not be negative, not {getattr(self, name)}")
        if self.available < 0:
            raise ValueError(
                f"TokenBudget reserves {self.limit - self.available} tokens of a limit of {self.limit}; reserve less"
            )

    @property
    def available(self) -> int:
        """What a request may use."""
        return self.limit - self.reserve_response - self.reserve_tools

    @property
    def total(self) -> int:
        """What it uses, as we count."""
        return sum(self.used.values())

    @property
    def low(self) -> int:
        """What it uses at least, as the provider counts."""
        return self.total if self.calibration is None else int(self.total * self.calibration.low)

    @property
    def estimate(self) -> int:
        """What it most likely uses, as the provider counts."""
        return self.total if self.calibration is None else round(self.total * self.calibration.estimate)

    @property
    def high(self) -> int:
        """What it uses at most, as the provider counts."""
        return self.total if self.calibration is None else ceil(self.total * self.calibration.high)

    @property
    def correction(self) -> int:
        """The provider's highest likely count minus ours; negative where the provider counts fewer."""
        return self.high - self.total

    @property
    def remaining(self) -> int:
        """What is left for certain; negative when it does not fit."""
        return self.available - self.high

    @property
    def remaining_bytes(self) -> int:
        """What is left of the bytes that a request may have; negative when it does not fit."""
        return self.byte_limit - self.bytes if self.byte_limit else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Something that was done to a conversation, and why.

    Attributes:
        action: What was done; `masked` where pictures and documents are told in words.
        rule: What decided it: the name of a truncation, or the code of a finding.
        first: The first message it is about, by its place in the list that was given.
        last: The last one.
        tokens_before: What they took; None when nobody needed to know.
        tokens_after: What they take now.
    """

    action: Action
    rule: str
    first: int
    last: int
    tokens_before: int | None = None
    tokens_after: int = 0


class GroupSizes(Protocol):
    """The sizes of the groups of a conversation, `groups[0]` the oldest. Only what is looked at is counted."""

    def __len__(self) -> int:
        """How many groups there are."""

    def __getitem__(self, index: int) -> int:
        """The tokens of a group; -1 is the newest."""

    def newest(self, budget: int, *, at_least: int = 1) -> int:
        """How many of the newest groups fit into a budget together, but never fewer than `at_least`."""


Choice = list[slice]
"""Groups to keep, as slices in ascending order: `[slice(0, 1), slice(-3, None)]`."""


@dataclass(frozen=True, slots=True)
class Truncation:
    """A way to choose what stays when a conversation does not fit.

    Attributes:
        name: What `truncation.strategy` calls it.
        choose: Given the sizes of the groups and a budget, says which groups stay. The newest always should.
        plugin: The plugin that offers it; stamped by the host.
    """

    name: str
    choose: Callable[[GroupSizes, int], Choice]
    plugin: str = field(default="", compare=False, repr=False)

    def __post_init__(self) -> None:
        require_words(self.name, "Truncation.name")
        if not callable(self.choose):
            raise ValueError("Truncation.choose must be a function")  # noqa: TRY004 - values raise ValueError only
