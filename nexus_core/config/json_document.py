"""A JSON text and what it says; where each value stands is found out when somebody asks.

A text that is small, plain and right is read by Python's own json module, many times as fast as by our parser. Whatever
the two might judge differently, and whatever is wrong, is left to ours.
"""

from __future__ import annotations

from functools import cache, cached_property
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from json import JSONDecoder

    from nexus_core.config.json_parser import Span
    from nexus_core.config.lines import Lines, Position

MAX_DEPTH = 64
MAX_VALUES = 100_000
"""How many values a document may hold: without a limit, 1 MiB of `[0,0,0,…` takes seconds and 150 MiB to remember."""
LONGEST_INTEGER = 4000
"""How many digits an integer may have; Python refuses to convert much longer ones."""

JsonValue = dict[str, "JsonValue"] | list["JsonValue"] | str | int | float | bool | None
"""What a document may hold."""

_INFINITY = float("inf")


class JsonDocument:
    """A text and its value.

    Args:
        value: What the text says.
        text: The text.
        comments: Whether comments and trailing commas are allowed in it.
        root: The span of the whole with those of all values inside, if it is known already.
    """

    def __init__(self, value: JsonValue, text: str, *, comments: bool = False, root: Span | None = None) -> None:
        self.value = value
        self._text = text
        self._comments = comments
        if root is not None:
            self.root = root

    @cached_property
    def root(self) -> Span:
        """The span of the whole with those of all values inside."""
        from nexus_core.config.json_parser import parse_json  # noqa: PLC0415 - few ask where something stands

        return parse_json(self._text, comments=self._comments).root

    @cached_property
    def lines(self) -> Lines:
        """The lines of the text."""
        from nexus_core.config.lines import Lines  # noqa: PLC0415 - as above

        return Lines(self._text)

    def span(self, pointer: str) -> Span | None:
        """Where the value of a pointer stands, or None when there is no such value."""
        span, missing = self._follow(pointer)
        return None if missing else span

    def position(self, pointer: str) -> Position:
        """The line and column of a pointer: of its key if it has one, and of what it should be in if it is missing."""
        return self.lines.position(self._follow(pointer)[0].key)

    def _follow(self, pointer: str) -> tuple[Span, bool]:
        from nexus_core.config.pointers import split_pointer  # noqa: PLC0415 - as above

        span = self.root
        for token in split_pointer(pointer):
            member = span.member(token)
            if member is None:
                return span, True
            span = member
        return span, False


def quick_json(text: str, *, comments: bool = False) -> JsonDocument | None:
    """The document in a text, or None if `parse_json` has to look at it."""
    if not _is_plain(text):
        return None
    try:
        return JsonDocument(_decoder().decode(text), text, comments=comments)
    except ValueError:
        return None


def _is_plain(text: str) -> bool:
    """Whether a text can be neither too deep nor too large, and has no half characters in it."""
    return (
        len(text) <= MAX_VALUES
        and text.count("{") + text.count("[") <= MAX_DEPTH
        and "\\ud" not in text
        and "\\uD" not in text
    )


@cache
def _decoder() -> JSONDecoder:
    from json import JSONDecoder  # noqa: PLC0415 - a directory without settings does not need it

    return JSONDecoder(object_pairs_hook=_object, parse_int=_integer, parse_float=_number, parse_constant=_refuse)


def _object(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a key is there twice")
    return members


def _integer(digits: str) -> int:
    return int(digits) if len(digits) <= LONGEST_INTEGER else _refuse(digits)


def _number(digits: str) -> float:
    number = float(digits)
    return number if -_INFINITY < number < _INFINITY else _refuse(digits)


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")
