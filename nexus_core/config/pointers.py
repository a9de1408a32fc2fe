"""JSON pointers: how a place inside a document is named."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_LONGEST_INDEX = 9  # digits


def pointer_to(parent: str, key: str | int) -> str:
    """The JSON pointer of a member of `parent`."""
    token = str(key)
    if "~" in token or "/" in token:
        token = token.replace("~", "~0").replace("/", "~1")
    return f"{parent}/{token}"


def join_pointer(tokens: Iterable[str | int]) -> str:
    """The JSON pointer that goes through some keys and indexes."""
    return reduce(pointer_to, tokens, "")


def pointer_of(dotted: str) -> str:
    """The JSON pointer of a setting: `/provider/model` for `provider.model`."""
    return join_pointer(dotted.split("."))


def split_pointer(pointer: str) -> list[str]:
    """The keys and indexes that a JSON pointer goes through; raises ValueError when it is none."""
    if not pointer:
        return []
    if not pointer.startswith("/") or pointer.count("~") != pointer.count("~0") + pointer.count("~1"):
        raise ValueError(f"not a JSON pointer: {pointer!r}")
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer[1:].split("/")]


def array_index(token: str) -> int | None:
    """The index that a token of a pointer means in an array, or None when it means none."""
    is_plain = token.isascii() and token.isdecimal() and len(token) < _LONGEST_INDEX
    return int(token) if is_plain and str(int(token)) == token else None
