"""The bundled tables of models: context windows, tokenizers, cached prefixes, prices.

_families.py   the models, by family
prices.toml    their prices
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nexus_core import hookimpl
from nexus_core.plugin import Model, ModelPrice
from nexus_plugins.models._families import FAMILIES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nexus_plugins.models._families import ModelFamily, ModelRow

PRICES_FILE = Path(__file__).parent / "prices.toml"


@hookimpl
def nexus_models() -> tuple[Model, ...]:
    """Return the models of the bundled table."""
    return _read_models()


@cache
def _read_models() -> tuple[Model, ...]:
    return tuple(model for family in FAMILIES.values() for model in _build_models(family))


def _build_models(family: ModelFamily) -> Iterator[Model]:
    """Yield the models of a family. Fields of a model override shared ones."""
    for name, row in family["models"].items():
        fields: ModelRow = {**family["shared"], **row}
        yield Model(name=name, price=find_price, **fields)


def find_price(name: str) -> ModelPrice | None:
    """Return the price of exactly this model from `prices.toml`, which is read when the first price is needed."""
    return _read_prices().get(name)


@cache
def _read_prices() -> dict[str, ModelPrice]:
    import tomllib  # only a command that shows a cost needs it

    groups = tomllib.loads(PRICES_FILE.read_text(encoding="utf-8")).values()
    return {
        name: _build_price(**{"date": group["date"], "source": group["source"], **fields})
        for group in groups
        for name, fields in group["models"].items()
    }


def _build_price(*, long: dict[str, Any] | None = None, **fields: Any) -> ModelPrice:  # noqa: ANN401 - TOML values
    return ModelPrice(**fields, long=None if long is None else ModelPrice(**long))
