"""Settings in nested objects, found and taken out by their dotted names: `provider.model`."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from nexus_core.config.pointers import array_index

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def copy_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The same settings; objects may be changed, but nothing in a list."""
    return {key: copy_settings(value) if isinstance(value, dict) else value for key, value in settings.items()}


def names_within(settings: Mapping[str, Any], names: Iterable[str]) -> list[str]:
    """Those names whose first word is among the settings: most have none of them."""
    return [name for name, first in _with_first_words(tuple(names)) if first in settings]


@lru_cache(maxsize=16)
def _with_first_words(names: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Return the names with the first word of each; the same few lists are asked for with every file."""
    return tuple((name, name.partition(".")[0]) for name in names)


def get_setting(settings: Any, name: str) -> Any:  # noqa: ANN401 - any JSON value
    """The value of a setting; None where it is not set, or is null."""
    return follow_keys(settings, name.split("."))


def follow_keys(settings: Any, keys: Iterable[str]) -> Any:  # noqa: ANN401 - as above
    """What some keys and indexes lead to; None where there is nothing, or null."""
    for key in keys:
        if isinstance(settings, dict):
            settings = settings.get(key)
        elif isinstance(settings, list):
            index = array_index(key)
            settings = None if index is None or index >= len(settings) else settings[index]
        else:
            return None
    return settings


def has_setting(settings: dict[str, Any], name: str) -> bool:
    """Whether a setting is there, if only to say null."""
    return name.rpartition(".")[2] in _parent(settings, name)


def take_setting(settings: dict[str, Any], name: str) -> bool:
    """Take a setting out, and say whether it was there."""
    parent, key = _parent(settings, name), name.rpartition(".")[2]
    if key not in parent:
        return False
    del parent[key]
    return True


def _parent(settings: dict[str, Any], name: str) -> dict[str, Any]:
    """What holds a setting, whether or not the setting is there."""
    path = name.rpartition(".")[0]
    parent = get_setting(settings, path) if path else settings
    return parent if isinstance(parent, dict) else {}
