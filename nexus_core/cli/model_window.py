"""Token counter and context window of the model that a command measures against."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nexus_core.text.console import format_percent
from nexus_core.text.safety import visible_line
from nexus_core.tokens.counters import find_model_finding, get_model, open_counter
from nexus_core.tokens.models import DEFAULT_WINDOW_TOKENS
from nexus_core.types.messages import Reasoning, Text, ToolCall, ToolResult, Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from nexus_core.nexus import Nexus
    from nexus_core.tokens.counters import CachingCounter
    from nexus_core.tokens.prices import Cost
    from nexus_core.types.budget import ModelPrice, TokenBudget
    from nexus_core.types.messages import Message, Part
    from nexus_core.types.settings import Settings


SMALL_REQUEST_DIVISOR = 10
"""A request that has less than this fraction of the bytes it may have is small."""


class ModelWindow(NamedTuple):
    """A model with its token counter and context window.

    Attributes:
        model: The model; "" if none is configured.
        counter: The token counter.
        window: The context window in tokens.
        is_assumed: True if the window is a default, or that of a model with a similar name.
        find_price: Returns the prices of the model, or None; most commands need none, and do not read them.
    """

    model: str
    counter: CachingCounter
    window: int
    is_assumed: bool
    find_price: Callable[[], ModelPrice | None]

    def estimate_cost(self, total: int, cached: int = 0) -> Cost:
        """Return the estimated cost of a request's input."""
        from nexus_core.tokens.prices import compute_cost

        usage = Usage(input_tokens=total, cached_input_tokens=cached)
        return compute_cost(usage, self.find_price(), is_estimate=True)

    def describe_cost(self, total: int) -> str:
        """Return a sentence about the cost of a request's input, as it is without and with the prompt cache."""
        fresh, cached = self.estimate_cost(total), self.estimate_cost(total, total)
        price = self.find_price()
        if price is None:
            return f"Cost of the input: {fresh}"
        from_cache = f", {cached} if all of it comes from the cache" if price.cache_read else ""
        date = f" (prices of {price.date})" if price.date else ""
        return f"Cost of the input: {fresh}{from_cache}{date}"

    def is_exceeded_by(self, total: int) -> bool:
        """True if the tokens exceed a known window."""
        return total > self.window and not self.is_assumed

    def describe(self, total: int, *, exact: bool = True) -> str:
        """Return a sentence with the tokens, the window, the model, the basis and the counter.

        Args:
            total: The number of tokens.
            exact: False if some tokens are of media, which are estimated.
        """
        window = f"an assumed window of {self.window:,}" if self.is_assumed else f"{self.window:,}"
        model = f" for {visible_line(self.model)}" if self.model else ""
        basis = self.counter.describe_basis(exact=exact)
        share = format_percent(total, self.window)
        return f"{total:,} tokens of {window}{model} ({share}); {basis}, by {self.counter.title}"

    def to_json(self, total: int, *, exact: bool = True) -> dict[str, object]:
        """Return the same as JSON."""
        return {
            "model": self.model,
            "counter": self.counter.name,
            "exact": exact and self.counter.exact,
            "error": self.counter.error,
            "window": self.window,
            "window_assumed": self.is_assumed,
            "total": total,
            "fits": total <= self.window,
        }


def contains_only_text(messages: Iterable[Message]) -> bool:
    """True if no message has media, unknown blocks or encrypted reasoning, which are estimated."""
    return all(_is_text_part(part) for message in messages for part in message.parts)


def _is_text_part(part: Part) -> bool:
    if isinstance(part, ToolResult):
        return all(isinstance(each, Text) for each in part.parts)
    return isinstance(part, Text | ToolCall) or (isinstance(part, Reasoning) and not part.encrypted)


def open_model_window(nexus: Nexus, settings: Settings, *names: str) -> ModelWindow:
    """Return the measure for the first of some models that is named, else for the configured one."""
    host = nexus.host  # which can still be asked for a price when the Nexus is closed
    name = settings.model_id(next(filter(None, names), ""))
    model = get_model(name, host=host, settings=settings)
    is_unnamed = not name and model.window == DEFAULT_WINDOW_TOKENS
    is_assumed = is_unnamed or find_model_finding(name, host=host, settings=settings) is not None
    counter = open_counter(name, host=host, settings=settings)

    def find_model_price() -> ModelPrice | None:
        from nexus_core.tokens.prices import find_price

        return find_price(name, host=host, settings=settings)

    return ModelWindow(name, counter, model.window, is_assumed, find_model_price)


def describe_bytes(budget: TokenBudget) -> str:
    """Return the size of a request for display; "" if it is far below the limit."""
    if budget.bytes * SMALL_REQUEST_DIVISOR < budget.byte_limit:
        return ""
    return f"Up to {budget.bytes:,} bytes of the {budget.byte_limit:,} that a request may have"
