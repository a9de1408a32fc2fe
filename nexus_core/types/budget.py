"""Models, token counters, token budgets and truncation strategies."""

from __future__ import annotations

import re
from dataclasses import field as dataclass_field
from math import ceil
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, runtime_checkable

from nexus_core.types.base import dataclass, require_text, require_types

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from nexus_core.types.messages import Message

CountBasis = Literal["exact", "cached", "estimated"]
"""The accuracy of a count: exact as the model counts, exact from the cache, or estimated."""

MESSAGE_OVERHEAD_TOKENS = 4
"""Tokens of a message besides its content: its role and its delimiters."""

MIN_TOKEN_FACTOR, MAX_TOKEN_FACTOR = 0.1, 10
"""Factors outside this range are mistakes: no two tokenizers in use differ by as much."""


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


_PRICE_PATTERN = r"\d{1,9}(\.\d{1,9})?"
_PRICE_FIELDS = ("input", "output", "cache_read", "cache_write", "cache_write_1h")
_DATE_PATTERN = r"\d{4}-\d{2}-\d{2}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPrice:
    """Prices of a model in US dollars per million tokens, as decimal numbers in text, so that none is rounded.

    Attributes:
        input: Input tokens that are neither read from the prompt cache nor written to it.
        output: Output tokens, reasoning included.
        cache_read: Input tokens from the prompt cache; "" if they cost as much as others.
        cache_write: Input tokens written to the prompt cache for its usual lifetime; "" if they cost as much as others.
        cache_write_1h: The same for a lifetime of an hour; "" if they cost as much as `cache_write`.
        long_from: Calls with more input tokens have the prices in `long`; 0 if all calls have the same prices.
        long: Prices of long calls; None if `long_from` is 0.
        date: The newest day for which the price is known: `2026-11-17`; "" if unknown.
        source: The URL of the page that has it.
    """

    input: str
    output: str
    cache_read: str = ""
    cache_write: str = ""
    cache_write_1h: str = ""
    long_from: int = 0
    long: ModelPrice | None = None
    date: str = ""
    source: str = ""

    def __post_init__(self) -> None:
        require_types(self, long_from=int, date=str, source=str, **dict.fromkeys(_PRICE_FIELDS, str))
        for field in _PRICE_FIELDS:
            value = getattr(self, field)
            if not re.fullmatch(_PRICE_PATTERN, value) and (value or field in ("input", "output")):
                raise ValueError(f'ModelPrice.{field} must be a text like "1.25", in US dollars, not {value!r}')
        if (self.long_from > 0) != isinstance(self.long, ModelPrice):
            raise ValueError("ModelPrice.long_from and ModelPrice.long belong together")
        if self.date and not re.fullmatch(_DATE_PATTERN, self.date):
            raise ValueError(f"ModelPrice.date must be like 2026-11-17, not {self.date!r}")


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
        token_factor: The provider's tokens per token of a public tokenizer, for a model whose own is not public. Counts
            that are not exact are multiplied by it.
        tool_call_tokens: Tokens that the provider adds to each tool call of a message, where counts are not exact.
        count_error: Share by which such a count of a whole call may differ from the provider's, 0.1 for 10 %; 0 if
            unknown.
        count_source: Where these three numbers come from.
        price: Its price, or a function that returns the price of exactly the model with a name, called when a price is
            needed. A price applies to models with another date or provider in their name, but not to other variants,
            unless the pattern ends in a sign (`acme-*`). None if unknown.
    """

    name: str
    window: int
    encoding: str = ""
    max_output: int = 0
    cache_minimum: int = 0
    cache_breakpoints: int = 0
    api: str = ""
    request_bytes: int = 0
    token_factor: float = 1.0
    tool_call_tokens: int = 0
    count_error: float = 0.0
    count_source: str = ""
    price: ModelPrice | Callable[[str], ModelPrice | None] | None = None

    def __post_init__(self) -> None:
        require_text(self.name, "Model.name")
        require_types(self, window=int, max_output=int, cache_minimum=int, cache_breakpoints=int, request_bytes=int)
        require_types(self, token_factor=(float, int), tool_call_tokens=int, count_error=(float, int), count_source=str)
        if self.price is not None and not isinstance(self.price, ModelPrice) and not callable(self.price):
            raise ValueError(f"Model.price must be a ModelPrice or a function, not {type(self.price).__name__}")
        if self.window <= 0:
            raise ValueError(f"Model.window must be positive, not {self.window}")
        if self.request_bytes < 0:
            raise ValueError(f"Model.request_bytes must not be negative, not {self.request_bytes}")
        if not MIN_TOKEN_FACTOR <= self.token_factor <= MAX_TOKEN_FACTOR:
            raise ValueError(
                f"Model.token_factor must be from {MIN_TOKEN_FACTOR} to {MAX_TOKEN_FACTOR}, not {self.token_factor}"
            )
        if self.tool_call_tokens < 0:
            raise ValueError(f"Model.tool_call_tokens must not be negative, not {self.tool_call_tokens}")
        if not 0 <= self.count_error < 1:
            raise ValueError(f"Model.count_error must be a share from 0 to below 1, not {self.count_error}")


DecisionAction = Literal["kept", "dropped", "shortened", "masked", "repaired", "added"]


class TokenCalibration(NamedTuple):
    """Relation of a provider's token counts to ours, from the replies of a model so far.

    The provider counts for the next call what it counted for the last one, and some tokens for each that is new.

    Attributes:
        replies: The number of replies that were compared; 0 if only the error of the model table is known.
        low, estimate, high: Tokens that the provider counts for each of ours: at least, typically, at most.
        sent: Tokens of the last call by our count; 0 if there is none to start from.
        counted: Tokens of the last call by the provider's count.
    """

    replies: int
    low: float
    estimate: float
    high: float
    sent: int = 0
    counted: int = 0

    def predict_low(self, tokens: int) -> int:
        """Return the fewest tokens that the provider may count for a call of so many by our count."""
        new = tokens - self.sent
        return max(int(self.counted + new * (self.low if new >= 0 else self.high)), 0)

    def predict(self, tokens: int) -> int:
        """Return the tokens that the provider most likely counts."""
        return max(round(self.counted + (tokens - self.sent) * self.estimate), 0)

    def predict_high(self, tokens: int) -> int:
        """Return the most tokens that the provider may count."""
        new = tokens - self.sent
        return max(ceil(self.counted + new * (self.high if new >= 0 else self.low)), 0)

    def compute_available(self, available: int) -> int:
        """Return the tokens of a call by our count of which the provider counts at most `available`."""
        left = available - self.counted
        return max(int(self.sent + left / (self.high if left >= 0 else self.low)), 0)


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
        calibration: How the provider counted earlier calls; None before the first reply, if counts are exact or their
            error is unknown.
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
        require_types(self, limit=int, reserve_response=int, reserve_tools=int, byte_limit=int)
        for name in ("limit", "reserve_response", "reserve_tools", "byte_limit"):
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
        return self.total if self.calibration is None else self.calibration.predict_low(self.total - self.margin)

    @property
    def estimate(self) -> int:
        """Tokens that it most likely uses, by the provider's count."""
        return self.total if self.calibration is None else self.calibration.predict(self.total - self.margin)

    @property
    def high(self) -> int:
        """Tokens that it uses at most, by the provider's count."""
        return self.total if self.calibration is None else self.calibration.predict_high(self.total)

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
        action: The change; `masked` means that text placeholders replace images and documents, `added` that a message
            was put in front of these.
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
