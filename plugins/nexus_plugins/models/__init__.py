"""The bundled table of models: context windows, tokenizers, cached prefixes."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nexus_core import hookimpl
from nexus_core.plugin import Model

if TYPE_CHECKING:
    from collections.abc import Iterator

MODELS_FILE = Path(__file__).parent / "models.toml"


@hookimpl
def nexus_models() -> tuple[Model, ...]:
    """Return the models of `models.toml`."""
    return _read_models()


@cache
def _read_models() -> tuple[Model, ...]:
    import tomllib

    families = tomllib.loads(MODELS_FILE.read_text(encoding="utf-8")).values()
    return tuple(model for family in families for model in _build_models(**family))


def _build_models(models: dict[str, dict[str, Any]], **shared: Any) -> Iterator[Model]:  # noqa: ANN401 - TOML values
    """Return the models of a family. Fields of a model override shared ones."""
    return (Model(name=name, **{**shared, **fields}) for name, fields in models.items())
