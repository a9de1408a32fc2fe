"""Models, token counters, token budgets and truncation strategies."""

from __future__ import annotations

from dataclasses import field as dataclass_field
from math import ceil
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, runtime_checkable

from nexus_core.types.base import dataclass, require_text, require_type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from nexus_core.types.messages import Message

CountBasis = Literal["exact", "cached", "estimated"]
"""The accuracy of a count: exact as the model counts, exact from the cache, or estimated."""

MESSAGE_OVERHEAD_TOKENS = 4
"""Tokens of a message besides its content: its role and its delimiters."""


class TokenCount(NamedTuple):
    """A number of tokens, and how accurate it is."""

    tokens: int
    basis: CountBasis


@runtime_checkable
class TokenCounter(Protocol):
    """A counter of tokens, exact for a model or approximate."""

    def count(self, text: str) -> int:
        """Return the tokens of a text."""

    def count_messages(self, messages: list[Message]) -> int:
        """Return the tokens of messages, including the overhead of each message."""


@runtime_checkable
class ModelCounter(TokenCounter, Protocol):
    """A `TokenCounter` with a name and an accuracy, the result of `nexus_token_counter`."""

    @property
    def name(self) -> str:
        """The tokenizer's name, such as `tiktoken:o200k_base`; a cache key, so equal names must give equal counts."""

    @property
    def exact(self) -> bool:
        """True if it counts as the model does."""

    def count_many(self, texts: Iterable[str]) -> list[int]:
        """Return the tokens of each text; faster than one call per text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """The limits and the tokenizer of a model.

    Attributes:
        name: The model's name without a date: `gpt-4o`. A trailing `*` matches any suffix. After a letter or digit
            (`gpt-4o*`), a suffix other than a date, a size or a common word (`-mini`, `-latest`) is a guess, which a
            finding reports.
        window: The context window: maximum tokens of a call, the reply included.
        encoding: The name of its tokenizer, public or not; "" if unknown.
        max_output: Maximum tokens of a reply; 0 if unknown.
        cache_minimum: Tokens of the shortest prefix that its provider caches; 0 if it caches none.
        cache_breakpoints: Maximum cache breakpoints of a call; 0 if the provider caches prefixes without any.
        api: The dialect of its provider.
        request_bytes: Maximum bytes of a request body; 0 for the limit of its API.
    """

    name: str
    window: int
    encoding: str = ""
    max_output: int = 0
    cache_minimum: int = 0
    cache_breakpoints: int = 0
    api: str = ""
    request_bytes: int = 0

    def __post_init__(self) -> None:
        require_text(self.name, "Model.name")
        for field in ("window", "max_output", "cache_minimum", "cache_breakpoints", "request_bytes"):
            require_type(getattr(self, field), f"Model.{field}", int)
        if self.window <= 0:
            raise ValueError(f"Model.window must be positive, not {self.window}")
        if self.request_bytes < 0:
            raise ValueError(f"Model.request_bytes must not be negative, not {self.request_bytes}")


DecisionAction = Literal["kept", "dropped", "shortened", "masked", "repaired"]


class TokenCalibration(NamedTuple):
    """Ratios of a provider's token counts to ours, from the replies of a model so far.

    Attributes:
        replies: The number of replies that were compared.
        low, estimate, high: The lowest, the typical and the highest ratio.
    """

    replies: int
    low: float
    estimate: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenBudget:
    """A model's context window and the tokens that a call uses of it.

    Attributes:
        limit: The context window in tokens.
        reserve_response: Tokens reserved for the reply.
        reserve_tools: Tokens reserved for the results of tools that the model calls next.
        used: Tokens by part of the call: `system`, `tools`, `history`, `memory`, `event`.
        margin: The part of `used["event"]` that is a safety margin, because tokens are estimated.
        bytes: Upper bound of the request body's size; 0 if it was not measured.
        byte_limit: Maximum bytes of the request body; 0 for the limit of the model's API, or if unknown.
        estimated: True if any of the counts is an estimate.
        calibration: How the provider counted earlier calls; None while there are too few replies.
    """

    limit: int
    reserve_response: int = 0
    reserve_tools: int = 0
    used: Mapping[str, int] = dataclass_field(default_factory=dict)
    margin: int = 0
    bytes: int = 0
    byte_limit: int = 0
    estimated: bool = False
    calibration: TokenCalibration | None = None

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
        """Tokens that a request may use."""
        return self.limit - self.reserve_response - self.reserve_tools

    @property
    def total(self) -> int:
        """Tokens that it uses, by our count."""
        return sum(self.used.values())

    @property
    def low(self) -> int:
        """Tokens that it uses at least, by the provider's count."""
        return self.total if self.calibration is None else int(self.total * self.calibration.low)

    @property
    def estimate(self) -> int:
        """Tokens that it most likely uses, by the provider's count."""
        return self.total if self.calibration is None else round(self.total * self.calibration.estimate)

    @property
    def high(self) -> int:
        """Tokens that it uses at most, by the provider's count."""
        return self.total if self.calibration is None else ceil(self.total * self.calibration.high)

    @property
    def correction(self) -> int:
        """The provider's highest likely count minus ours; negative if the provider counts fewer."""
        return self.high - self.total

    @property
    def remaining(self) -> int:
        """Tokens that are certainly left; negative if the call does not fit."""
        return self.available - self.high

    @property
    def remaining_bytes(self) -> int:
        """Bytes that are left of `byte_limit`; negative if the request body does not fit, 0 without a limit."""
        return self.byte_limit - self.bytes if self.byte_limit else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A change that was made to a range of messages, and the rule behind it.

    Attributes:
        action: The change; `masked` means that text placeholders replace images and documents.
        rule: The name of the truncation strategy, or the code of the finding.
        first: Index of the first message in the list that was given.
        last: Index of the last message.
        tokens_before: Their tokens before the change; None if they were not counted.
        tokens_after: Their tokens after the change.
    """

    action: DecisionAction
    rule: str
    first: int
    last: int
    tokens_before: int | None = None
    tokens_after: int = 0


class GroupSizes(Protocol):
    """Token sizes of a conversation's groups, oldest first. A group is counted when its size is read."""

    def __len__(self) -> int:
        """Return the number of groups."""

    def __getitem__(self, index: int) -> int:
        """Return the tokens of a group; -1 is the newest."""

    def newest(self, budget: int, *, at_least: int = 1) -> int:
        """Return how many of the newest groups fit into a budget together, never fewer than `at_least`."""


GroupChoice = list[slice]
"""Groups to keep, as slices in ascending order: `[slice(0, 1), slice(-3, None)]`."""


@dataclass(frozen=True, slots=True)
class TruncationStrategy:
    """A function that chooses the groups to keep when a conversation does not fit.

    Attributes:
        name: Its name in the setting `truncation.strategy`.
        choose: Gets the sizes of the groups and a budget in tokens, returns the groups to keep. The newest should
            always be kept.
        plugin: The plugin that offers it; set by the host.
    """

    name: str
    choose: Callable[[GroupSizes, int], GroupChoice]
    plugin: str = dataclass_field(default="", compare=False, repr=False)

    def __post_init__(self) -> None:
        require_text(self.name, "TruncationStrategy.name")
        if not callable(self.choose):
            raise ValueError("TruncationStrategy.choose must be a function")  # noqa: TRY004 - values raise ValueError only
