"""What callers hand over, checked before anything is done with it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from nexus_core.dialects.fields import describe_json_value
from nexus_core.errors import UsageError
from nexus_core.ledger.json_text import normalize_label
from nexus_core.text.safety import repair_surrogates


def read_text(given: object, name: str, hint: str | None = None) -> str:
    """A text as it comes back from a ledger, with halves of characters joined.

    Raises:
        UsageError: It is something else.
    """
    if not isinstance(given, str):
        raise UsageError(f"{name} must be text, not {describe_json_value(given)}", hint=hint)
    return given if given.isascii() else repair_surrogates(given)


def read_texts(given: object, name: str, hint: str | None = None) -> tuple[str, ...]:
    """A list of texts, whatever it is kept in; the words of a set in the order of the alphabet.

    Args:
        given: The list.
        name: What it is called.
        hint: What to say to somebody who gave one text in place of a list.

    Raises:
        UsageError: It is something else.
    """
    hint = (hint or f"{name}=[{given!a}]") if isinstance(given, str) else None
    texts = [read_text(each, f"each of {name}") for each in read_list(given, name, hint)]
    return tuple(sorted(texts) if isinstance(given, set | frozenset) else texts)


def read_list(given: object, name: str, hint: str | None = None) -> tuple[object, ...]:
    """What a list holds.

    Raises:
        UsageError: It is something else, such as one word in place of a list.
    """
    if isinstance(given, str | bytes | bytearray | Mapping) or not isinstance(given, Iterable):
        raise UsageError(f"{name} must be a list, not {describe_json_value(given)}", hint=hint or f"{name}=[…]")
    return tuple(given)


def read_flag(given: object, name: str) -> bool:
    """True or False.

    Raises:
        UsageError: It is something else.
    """
    if not isinstance(given, bool):
        raise UsageError(f"{name} must be True or False, not {describe_json_value(given)}")
    return given


def read_label(given: object) -> str:
    """The name of a session as it is kept.

    Raises:
        UsageError: It is no text, empty or too long.
    """
    return normalize_label(read_text(given, "the name of a session", hint="give it a label such as 'release-notes'"))


def read_path(given: object, name: str) -> str | os.PathLike[str]:
    """A path.

    Raises:
        UsageError: It is something else.
    """
    if not isinstance(given, str | os.PathLike):
        raise UsageError(f"{name} must be a path, not {describe_json_value(given)}")
    return given
