"""Validation of the arguments that callers pass."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from nexus_core.dialects.fields import describe_json_value
from nexus_core.errors import UsageError
from nexus_core.ledger.json_text import normalize_label
from nexus_core.text.safety import repair_surrogates


def read_text(value: object, name: str, hint: str | None = None) -> str:
    """Return a text as a ledger would return it, with surrogate pairs joined.

    Raises:
        UsageError: The value is not a text.
    """
    if not isinstance(value, str):
        raise UsageError(f"{name} must be text, not {describe_json_value(value)}", hint=hint)
    return value if value.isascii() else repair_surrogates(value)


def read_texts(value: object, name: str, hint: str | None = None) -> tuple[str, ...]:
    """Return the texts of any iterable, those of a set sorted.

    Args:
        value: The iterable.
        name: The argument's name, for errors.
        hint: The hint of the error for one text in place of a list; None for a default.

    Raises:
        UsageError: The value is not a list, or an element is not a text.
    """
    hint = (hint or f"{name}=[{value!a}]") if isinstance(value, str) else None
    texts = [read_text(each, f"each of {name}") for each in read_list(value, name, hint)]
    return tuple(sorted(texts) if isinstance(value, set | frozenset) else texts)


def read_list(value: object, name: str, hint: str | None = None) -> tuple[object, ...]:
    """Return the elements of an iterable.

    Raises:
        UsageError: The value is not a list; a single text is not one.
    """
    if isinstance(value, str | bytes | bytearray | Mapping) or not isinstance(value, Iterable):
        raise UsageError(f"{name} must be a list, not {describe_json_value(value)}", hint=hint or f"{name}=[…]")
    return tuple(value)


def read_flag(value: object, name: str) -> bool:
    """Return a flag.

    Raises:
        UsageError: The value is not a bool.
    """
    if not isinstance(value, bool):
        raise UsageError(f"{name} must be True or False, not {describe_json_value(value)}")
    return value


def read_label(value: object) -> str:
    """Return a session name in its stored form.

    Raises:
        UsageError: The name is not a text, is empty or is too long.
    """
    return normalize_label(read_text(value, "the name of a session", hint="give it a label such as 'release-notes'"))


def read_path(value: object, name: str) -> str | os.PathLike[str]:
    """Return a path.

    Raises:
        UsageError: The value is not a path.
    """
    if not isinstance(value, str | os.PathLike):
        raise UsageError(f"{name} must be a path, not {describe_json_value(value)}")
    return value
