"""What is known of models: windows, tokenisers, the shortest prefix that is cached."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from nexus_core import hookimpl
from nexus_core.plugin import Model

TABLE = Path(__file__).parent / "models.toml"


@hookimpl
def nexus_models() -> tuple[Model, ...]:
    """The models of `models.toml`."""
    return _read()


@cache
def _read() -> tuple[Model, ...]:
    import tomllib  # noqa: PLC0415 - only those who count or fit need it

    families = tomllib.loads(TABLE.read_text(encoding="utf-8")).values()
    return tuple(
        Model(name=name, **{**family, **facts}) for family in families for name, facts in family.pop("models").items()
    )
