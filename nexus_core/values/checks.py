"""Checks of what a stranger puts into a value."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

_DEEPEST = 32  # levels of a JSON value


def require_type(value: object, field: str, *kinds: type) -> None:
    """Refuse a value of another type; a ValueError names the field."""
    # bool is an int to Python, but never what is meant by a number here.
    if not isinstance(value, kinds) or (type(value) is bool and bool not in kinds):
        names = " or ".join("None" if kind is type(None) else kind.__name__ for kind in kinds)
        raise ValueError(f"{field} must be {names}, not {type(value).__name__}")


def require_one_of(value: object, field: str, allowed: Collection[str]) -> None:
    """Refuse a word that means nothing; a ValueError lists those that do."""
    if value not in allowed:
        raise ValueError(f"{field} must be one of {', '.join(allowed)}, not {value!r}")


def require_words(value: object, field: str) -> None:
    """Refuse what is not text, or is empty."""
    if not value or not isinstance(value, str):
        require_type(value, field, str)
        raise ValueError(f"{field} must not be empty")


def require_absolute(value: object, field: str) -> None:
    """Refuse a path that means something else in another directory."""
    if not isinstance(value, Path) or not value.is_absolute():
        require_type(value, field, Path)
        raise ValueError(f"{field} must be an absolute path, not {str(value)!r}")


def require_json(value: object, field: str) -> None:
    """Refuse what is not a JSON object, or could not be written as one."""
    if value == {}:  # as most are
        return
    require_type(value, field, dict)
    if not _is_json(value, _DEEPEST):
        raise ValueError(f"{field} must be JSON: texts, numbers, lists and objects, not too deep")


def _is_json(value: object, depth: int) -> bool:
    if isinstance(value, dict):
        return depth > 0 and all(isinstance(key, str) and _is_json(each, depth - 1) for key, each in value.items())
    if isinstance(value, list):
        return depth > 0 and all(_is_json(each, depth - 1) for each in value)
    if isinstance(value, float):
        return value - value == 0  # neither infinite nor no number at all
    return value is None or isinstance(value, str | int)
