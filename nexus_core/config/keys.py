"""The names of all settings, and their defaults."""

from __future__ import annotations

from functools import cache
from typing import Any


@cache
def _defaults() -> dict[str, object]:
    from nexus_core.config.schema import Config  # noqa: PLC0415 - pydantic is imported only where it is needed

    return dict(_flatten(Config().model_dump(), ""))


def known_keys() -> list[str]:
    """Every setting and group of settings by its dotted name, sorted."""
    return sorted(_defaults())


def default_of(key: str) -> object:
    """The value of a setting that nobody set; None for one that is not known."""
    return _defaults().get(key)


def is_known(key: str) -> bool:
    """Whether there may be a setting of that name; what plugins have under their own name is theirs to say."""
    return key in _defaults() or (key.startswith("plugins.") and all(key.split(".")))


def _flatten(value: dict[str, Any], prefix: str) -> list[tuple[str, object]]:
    found: list[tuple[str, object]] = []
    for key, item in value.items():
        found.append((prefix + key, item))
        if isinstance(item, dict):
            found += _flatten(item, f"{prefix}{key}.")
    return found
