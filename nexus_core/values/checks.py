"""Checks of what a stranger puts into a value."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection


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
