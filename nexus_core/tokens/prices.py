"""The cost of token usage, from the prices of models.

All arithmetic is exact: prices are decimal texts, and nothing is rounded before it is displayed. A cost is known for
models with a published price only. Fresh input, cached input, cache writes by lifetime and output have separate prices.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal
from operator import add
from typing import TYPE_CHECKING

from nexus_core.errors import PluginError
from nexus_core.tokens.counters import get_model
from nexus_core.tokens.models import iterate_plain_names
from nexus_core.types.budget import ModelPrice

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nexus_core.host.manager import Host
    from nexus_core.types.messages import Usage
    from nexus_core.types.settings import Settings

UNKNOWN_COST = "unknown"
MAX_PRICE_AGE_DAYS = 120
"""Providers change prices every few months."""
_TOKENS_PER_PRICE = 1_000_000
_CENT, _SMALLEST = Decimal("0.01"), Decimal("0.0001")
_JSON_DIGITS = Decimal("0.000001")
_ZERO = Decimal(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The cost of one or more calls in US dollars.

    Attributes:
        input: Fresh input, neither read from the prompt cache nor written to it.
        cache_read: Input from the prompt cache.
        cache_write: Input written to the prompt cache.
        output: Output, reasoning included.
        is_estimate: True if tokens are our own count, or calls of different prices were reported as one.
        unpriced_calls: Calls whose model has no known price; they are not in the numbers.
        date: The oldest date of the prices; "" if none has a date.
    """

    input: Decimal = _ZERO
    cache_read: Decimal = _ZERO
    cache_write: Decimal = _ZERO
    output: Decimal = _ZERO
    is_estimate: bool = False
    unpriced_calls: int = 0
    date: str = ""

    @property
    def total(self) -> Decimal:
        """All of it."""
        return self.input + self.cache_read + self.cache_write + self.output

    def negate(self) -> Cost:
        """Return what has to be added to a sum to take this cost out of it."""
        return Cost(
            input=-self.input,
            cache_read=-self.cache_read,
            cache_write=-self.cache_write,
            output=-self.output,
            unpriced_calls=-self.unpriced_calls,
        )

    def __str__(self) -> str:
        known = f"{'~' * self.is_estimate}{format_dollars(self.total)}"
        if not self.unpriced_calls:
            return known
        return f"{known} + {UNKNOWN_COST}" if self.total else UNKNOWN_COST

    def to_json(self) -> dict[str, object] | None:
        """Return the cost as numbers, to a millionth of a dollar; None if nothing of it is known."""
        if self.unpriced_calls and not self.total:
            return None
        parts = {"total": self.total, "input": self.input, "cache_read": self.cache_read}
        parts |= {"cache_write": self.cache_write, "output": self.output}
        numbers = {name: float(amount.quantize(_JSON_DIGITS, ROUND_HALF_UP)) for name, amount in parts.items()}
        facts = {"currency": "USD", "estimated": self.is_estimate, "unpriced_calls": self.unpriced_calls}
        return {**numbers, **facts, "prices_of": self.date or None}


_MAX_TOKENS = 1 << 53
"""No provider counts more; a transcript that says so is wrong."""
UNPRICED_CALL = Cost(unpriced_calls=1)


def compute_cost(usage: Usage, price: ModelPrice | None, *, calls: int = 1, is_estimate: bool = False) -> Cost:
    """Return the cost of a usage.

    Args:
        usage: Tokens as the provider reported them, or as we counted them.
        price: The prices of the model; None if they are unknown.
        calls: The number of calls that were reported together.
        is_estimate: True if the tokens are our own count.
    """
    tokens = _split_usage(usage)
    if price is None or tokens is None:
        return Cost(unpriced_calls=calls)
    is_long = _is_long(usage, price)
    rates = price.long if is_long and calls == 1 and price.long is not None else price
    return _price_tokens(tokens, rates, is_estimate=is_estimate or (is_long and calls > 1), date=price.date)


def add_costs(costs: Iterable[Cost]) -> Cost:
    """Return the sum of costs."""
    total = Cost()
    for cost in costs:
        total = Cost(
            input=total.input + cost.input,
            cache_read=total.cache_read + cost.cache_read,
            cache_write=total.cache_write + cost.cache_write,
            output=total.output + cost.output,
            is_estimate=total.is_estimate or cost.is_estimate,
            unpriced_calls=total.unpriced_calls + cost.unpriced_calls,
            date=min(filter(None, (total.date, cost.date)), default=""),
        )
    return total


def find_price(name: str, *, host: Host, settings: Settings) -> ModelPrice | None:
    """Return the price of a model; None if it is unknown.

    Raises:
        PluginError: A plugin's price is of another type.
    """
    price = get_model(name, host=host, settings=settings).price if name else None
    if price is None or isinstance(price, ModelPrice):
        return price
    for plain in dict.fromkeys(iterate_plain_names(settings.model_id(name))):
        found = price(plain)
        if found is not None:
            if not isinstance(found, ModelPrice):
                raise PluginError(f"the price of {name!r} is not a ModelPrice", plugin="", hook="nexus_models")
            return found
    return None


@dataclass(slots=True)
class PriceList:
    """Prices of models, each looked up once.

    Attributes:
        host: The plugins.
        settings: The user's settings, which override what plugins say.
    """

    host: Host
    settings: Settings
    _prices: dict[str, ModelPrice | None] = field(default_factory=dict)

    def find(self, model: str) -> ModelPrice | None:
        """Return the price of a model; None if it is unknown."""
        if model not in self._prices:
            self._prices[model] = find_price(model, host=self.host, settings=self.settings)
        return self._prices[model]

    def compute(self, model: str, usage: Usage, *, calls: int = 1, is_estimate: bool = False) -> Cost:
        """Return the cost of a usage. Arguments as for `compute_cost`."""
        return compute_cost(usage, self.find(model), calls=calls, is_estimate=is_estimate)

    def sum(self, calls: Iterable[tuple[str, Usage, int]]) -> Cost:
        """Return the cost of many calls, the same as `add_costs` of each.

        Tokens of one price are added up first, so that thousands of calls take few multiplications.

        Args:
            calls: Model, usage and number of calls of each, as for `compute`.
        """
        sums: dict[str, tuple[ModelPrice, list[int]]] = {}
        others: list[Cost] = []
        for model, usage, count in calls:
            price, tokens = self.find(model), _split_usage(usage)
            if price is None or tokens is None or _is_long(usage, price):
                others.append(compute_cost(usage, price, calls=count))
                continue
            found = sums.get(model)
            if found is None:
                sums[model] = price, [*tokens]
            else:
                found[1][:] = map(add, found[1], tokens)
        return add_costs([*others, *(_price_tokens(tokens, price, date=price.date) for price, tokens in sums.values())])


def format_dollars(amount: Decimal) -> str:
    """Return an amount for display: four digits below a dollar, otherwise two."""
    if not amount:
        return "$0"
    if amount < _SMALLEST:
        return f"<${_SMALLEST}"
    return f"${amount.quantize(_SMALLEST if amount < 1 else _CENT, ROUND_HALF_UP):,f}"


def describe_prices(cost: Cost) -> str:
    """Return what a cost rests on, for display; "" if nothing of it is known."""
    return f"prices of {cost.date}" if cost.date else ""


def get_price_age_days(date: str) -> int:
    """Return the age of a price in days."""
    return (get_today() - dt.date.fromisoformat(date)).days


def get_today() -> dt.date:
    """Return the date of today in UTC."""
    return dt.datetime.now(dt.UTC).date()


def _split_usage(usage: Usage) -> tuple[int, int, int, int, int] | None:
    """Return fresh input, input from the cache, writes to it by lifetime, and output; None for impossible numbers."""
    cached, written, output = usage.cached_input_tokens, usage.cache_write_tokens, usage.output_tokens
    if max(usage.input_tokens, cached, written, output) > _MAX_TOKENS:
        return None
    hour = min(usage.cache_write_1h_tokens, written)
    return max(usage.input_tokens - cached - written, 0), cached, written - hour, hour, output


def _is_long(usage: Usage, price: ModelPrice) -> bool:
    return price.long is not None and usage.input_tokens > price.long_from


def _price_tokens(tokens: Sequence[int], rates: ModelPrice, *, date: str, is_estimate: bool = False) -> Cost:
    fresh, cached, write, hour, output = tokens
    write_price = rates.cache_write or rates.input
    return Cost(
        input=_multiply(fresh, rates.input),
        cache_read=_multiply(cached, rates.cache_read or rates.input),
        cache_write=_multiply(write, write_price) + _multiply(hour, rates.cache_write_1h or write_price),
        output=_multiply(output, rates.output),
        is_estimate=is_estimate,
        date=date,
    )


def _multiply(tokens: int, price: str) -> Decimal:
    return Decimal(price) * tokens / _TOKENS_PER_PRICE
