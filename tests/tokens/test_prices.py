"""The cost of token usage: exact, by kind of token, and unknown without a published price."""

from __future__ import annotations

from decimal import Decimal
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_core import hookimpl
from nexus_core.testing import write_files
from nexus_core.testing.fixtures import MakeNexus
from nexus_core.tokens.models import find_model
from nexus_core.tokens.prices import (
    Cost,
    PriceList,
    add_costs,
    compute_cost,
    find_price,
    format_dollars,
)
from nexus_core.types.budget import Model, ModelPrice
from nexus_core.types.messages import Usage

PRICE = ModelPrice(
    input="3", output="15", cache_read="0.30", cache_write="3.75", cache_write_1h="6", date="2026-10-10", source="x"
)
LONG = ModelPrice(input="1", output="2", long_from=1000, long=ModelPrice(input="10", output="20"), date="2026-01-02")


def test_each_kind_of_token_has_its_price() -> None:
    usage = Usage(
        input_tokens=1_000_000,
        cached_input_tokens=600_000,
        cache_write_tokens=300_000,
        cache_write_1h_tokens=100_000,
        output_tokens=10_000,
    )

    cost = compute_cost(usage, PRICE)

    assert cost == Cost(
        input=Decimal("0.3"),
        cache_read=Decimal("0.18"),
        cache_write=Decimal("1.35"),  # 200,000 at 3.75 and 100,000 at 6
        output=Decimal("0.15"),
        date="2026-10-10",
    )
    assert cost.total == Decimal("1.98")


def test_missing_cache_prices_are_those_of_input() -> None:
    usage = Usage(input_tokens=300, cached_input_tokens=100, cache_write_tokens=100)

    assert compute_cost(usage, ModelPrice(input="1", output="2")).total == Decimal("0.0003")


def test_long_call_has_other_prices() -> None:
    short, long = (compute_cost(Usage(input_tokens=tokens, output_tokens=1), LONG) for tokens in (1000, 1001))

    assert short.total == Decimal("0.001002")
    assert long.total == Decimal("0.01003")


def test_long_calls_that_were_reported_together_are_estimated() -> None:
    cost = compute_cost(Usage(input_tokens=2000), LONG, calls=3)

    assert cost.is_estimate
    assert str(cost) == "~$0.0020"


def test_cost_without_a_price_is_unknown() -> None:
    cost = compute_cost(Usage(input_tokens=1), None)

    assert str(cost) == "unknown"
    assert cost.to_json() is None
    assert str(add_costs([cost, compute_cost(Usage(input_tokens=1_000_000), PRICE)])) == "$3.00 + unknown"


def test_sum_has_the_oldest_date() -> None:
    costs = [compute_cost(Usage(output_tokens=1), price) for price in (PRICE, LONG)]

    assert add_costs(costs).date == "2026-01-02"


@given(st.lists(st.integers(0, 10**9), min_size=5, max_size=5), st.integers(1, 50))
def test_sum_of_costs_is_the_cost_of_the_sum(numbers: list[int], times: int) -> None:
    fresh, read, write, hour, output = numbers
    usage = Usage(
        input_tokens=fresh + read + write + hour,
        cached_input_tokens=read,
        cache_write_tokens=write + hour,
        cache_write_1h_tokens=hour,
        output_tokens=output,
    )
    whole = Usage(**{name: getattr(usage, name) * times for name in Usage.__slots__})

    assert add_costs([compute_cost(usage, PRICE)] * times).total == compute_cost(whole, PRICE).total


def test_negated_cost_takes_itself_out_of_a_sum() -> None:
    cost = compute_cost(Usage(input_tokens=7, output_tokens=3), PRICE)

    assert add_costs([cost, cost.negate()]).total == 0


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        ("0", "$0"),
        ("0.00001", "<$0.0001"),
        ("0.00015", "$0.0002"),
        ("0.99994", "$0.9999"),
        ("1", "$1.00"),
        ("1.005", "$1.01"),
        ("1234567.891", "$1,234,567.89"),
    ],
)
def test_amounts_are_shown_with_the_digits_that_matter(amount: str, shown: str) -> None:
    assert format_dollars(Decimal(amount)) == shown


def test_json_has_numbers() -> None:
    facts = compute_cost(Usage(input_tokens=1_000_000, output_tokens=1), PRICE).to_json()

    assert facts == {
        "total": 3.000015,
        "input": 3.0,
        "cache_read": 0.0,
        "cache_write": 0.0,
        "output": 0.000015,
        "currency": "USD",
        "estimated": False,
        "unpriced_calls": 0,
        "prices_of": "2026-10-10",
    }


@pytest.mark.parametrize(
    ("name", "price"),
    [
        ("claude-sonnet-4-5", "3"),
        ("claude-sonnet-4-5-20250929", "3"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "3"),
        ("openrouter/anthropic/claude-sonnet-4.5", "3"),
        ("gpt-4o-2024-08-06", "2.50"),
        ("gpt-4o-2024-05-13", "5"),
        ("gpt-5.3-codex", "1.75"),
        ("openai/gpt-5.4", "2.50"),
        ("gemini-3.1-pro-preview", "2"),
        ("claude-sonnet-4-5-fast", None),
        ("claude-opus-5-9", None),
        ("gpt-4o-audio-preview", None),
        ("gpt-5-pro", None),
        ("acme-1", None),
        ("", None),
    ],
)
def test_price_is_of_exactly_that_model(make_nexus: MakeNexus, name: str, price: str | None) -> None:
    nexus = make_nexus()

    found = find_price(name, host=nexus.host, settings=nexus.load().settings)

    assert (found and found.input) == price


def test_price_of_a_prefix_is_not_that_of_its_variants() -> None:
    models = {name: Model(name=name, window=10, price=PRICE) for name in ("acme*", "bolt-*")}

    assert find_model("acme", models).price == PRICE
    assert find_model("acme-20250101", models).price == PRICE
    assert find_model("acme-mini", models).price is None
    assert find_model("bolt-mini", models).price == PRICE  # a family, as its author says


def test_settings_replace_a_price(make_nexus: MakeNexus, nexus_home: Path) -> None:
    config = '{"models": {"gpt-4o": {"price": {"input": 0.1, "output": 1e-6, "date": "2026-11-01"}}}}'
    write_files(nexus_home, {"config.json": config})
    nexus = make_nexus()

    price = find_price("gpt-4o-2024-08-06", host=nexus.host, settings=nexus.load().settings)

    assert price == ModelPrice(input="0.1", output="0.000001", date="2026-11-01")


class PricePlugin:
    """Prices for a model of its own, by value and by function."""

    @hookimpl
    def nexus_models(self) -> list[Model]:
        def find(name: str) -> ModelPrice | None:
            return LONG if name == "acme-2" else None

        return [Model(name="acme-1*", window=10, price=PRICE), Model(name="acme-2*", window=10, price=find)]


def test_plugin_adds_prices(make_nexus: MakeNexus) -> None:
    nexus = make_nexus(plugins=[PricePlugin()])
    prices = PriceList(nexus.host, nexus.load().settings)

    assert [prices.find(name) for name in ("acme-1-20250101", "acme-2", "acme-2-mini")] == [PRICE, LONG, None]


@pytest.mark.parametrize("calls", [1, 3])
def test_cost_of_many_calls_is_the_sum_of_their_costs(make_nexus: MakeNexus, calls: int) -> None:
    nexus = make_nexus(plugins=[PricePlugin()])
    prices = PriceList(nexus.host, nexus.load().settings)
    numbers = (0, 1, 999, 1001, 1 << 60)  # of the last, nobody believes that a provider has counted it
    fields = ("input_tokens", "output_tokens", "cached_input_tokens", "cache_write_tokens", "cache_write_1h_tokens")
    usages = [Usage(**dict(zip(fields, each, strict=True))) for each in product(*[numbers] * 4, (0, 7))]
    made = [(model, usage, calls) for model in ("acme-1", "acme-2", "acme-2-mini") for usage in usages]

    found = prices.sum(made)

    assert found == add_costs(prices.compute(model, usage, calls=calls) for model, usage, _ in made)


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"input": "1,5", "output": "1"}, "ModelPrice.input"),
        ({"input": "", "output": "1"}, "ModelPrice.input"),
        ({"input": "-1", "output": "1"}, "ModelPrice.input"),
        ({"input": 1.5, "output": "1"}, "ModelPrice.input"),
        ({"input": "1", "output": "1", "date": "May"}, "ModelPrice.date"),
        ({"input": "1", "output": "1", "long_from": 5}, "ModelPrice.long"),
    ],
)
def test_mistakes_in_a_price_are_named(fields: dict[str, object], what: str) -> None:
    with pytest.raises(ValueError, match=what):
        ModelPrice(**fields)  # type: ignore[arg-type] # that is the mistake
