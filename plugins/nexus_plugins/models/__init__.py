"""What is known of models: windows, tokenisers, the shortest prefix that is cached."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nexus_core import hookimpl
from nexus_core.plugin import Model

if TYPE_CHECKING:
    from collections.abc import Iterator

TABLE = Path(__file__).parent / "models.toml"


@hookimpl
def nexus_models() -> tuple[Model, ...]:
    """The models of `models.toml`."""
    return _read()


@cache
def _read() -> tuple[Model, ...]:
    import tomllib  # noqa: PLC0415 - only those who count or fit need it

    families = tomllib.loads(TABLE.read_text(encoding="utf-8")).values()
    return tuple(model for family in families for model in _models(**family))


def _models(models: dict[str, dict[str, Any]], **shared: Any) -> Iterator[Model]:  # noqa: ANN401 - as the table has it
    """The models of a family; what one says of itself goes before what they share."""
    return (Model(name=name, **{**shared, **facts}) for name, facts in models.items())
