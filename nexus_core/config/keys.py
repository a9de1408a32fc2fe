"""The names of all settings, and their defaults."""

from __future__ import annotations

from functools import cache
from typing import Any

from nexus_core.errors import UnknownNameError, did_you_mean

_MODELS = "models"
_OPEN = ("plugins.", f"{_MODELS}.", "provider.options.")
"""What is under these has names that somebody else gives."""


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


def keys_of(name: str) -> list[str]:
    """The keys that lead to a setting: `models.gpt-4.1.window` has three, because a model may have dots in its name."""
    first, *rest = name.split(".")
    if first != _MODELS or not rest:
        return [first, *rest]
    *words, last = rest
    return [first, ".".join(words), last] if words and last in _model_keys() else [first, ".".join(rest)]


def require_known(name: str) -> None:
    """Refuse what cannot be a setting; what plugins have under their own name is theirs to say.

    Raises:
        UnknownNameError: There is none of that name.
    """
    stem, _, last = name.rpartition(".")
    if name in _defaults() or (name.startswith(_OPEN) and all(name.split(".")) and not _is_mistyped(stem, last)):
        return
    raise UnknownNameError("setting", name, [*known_keys(), *(f"{stem}.{key}" for key in _keys_below(stem))])


def _is_mistyped(stem: str, last: str) -> bool:
    keys = _keys_below(stem)
    return last not in keys and bool(did_you_mean(last, keys))


def _keys_below(stem: str) -> list[str]:
    """What may be said of a model."""
    return _model_keys() if stem.startswith(f"{_MODELS}.") and all(stem.split(".")) else []


@cache
def _model_keys() -> list[str]:
    from nexus_core.config.schema import ModelConfig  # noqa: PLC0415 - as above

    return list(ModelConfig.model_fields)


def _flatten(value: dict[str, Any], prefix: str) -> list[tuple[str, object]]:
    found: list[tuple[str, object]] = []
    for key, item in value.items():
        found.append((prefix + key, item))
        if isinstance(item, dict):
            found += _flatten(item, f"{prefix}{key}.")
    return found
