"""Parser for JSON and JSON with comments that keeps the span of every value.

The wording and position of its errors are those of the json module of Python 3.13, so that users can look them up and
they do not change with the interpreter. Stricter than that module: no NaN or Infinity, no duplicate key in one object,
no lone surrogates, no number out of range, at most 64 levels and 100,000 values.
"""

from __future__ import annotations

import re
from json.decoder import JSONDecodeError, scanstring  # type: ignore[attr-defined] # typeshed leaves scanstring out
from math import isfinite
from typing import NamedTuple

from nexus_core.config.load import MAX_DEPTH, MAX_INTEGER_DIGITS, MAX_VALUES, JsonDocument, JsonValue, LineIndex
from nexus_core.config.pointers import array_index
from nexus_core.text.safety import shorten

# Few patterns, because compiling each takes a tenth of a millisecond at every start.
_BLANK = re.compile(r"[ \t\n\r]*")
_LINE = re.compile(r"[^\n\r]*")
_NUMBER = re.compile(r"(-?(?:0|[1-9][0-9]*))(\.[0-9]+)?([eE][-+]?[0-9]+)?")
# A pair of surrogates, a surrogate alone, or any other escape of a string that is known to be well-formed.
_ESCAPE_PATTERN = r"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(?P<lone>u[dD][89a-fA-F]..)|.)"
_ESCAPE_DIGITS, _HEX_DIGITS = 4, frozenset("0123456789abcdefABCDEF")
_BLANKS_AND_SLASH = frozenset(" \t\n\r/")
_LITERALS: dict[str, tuple[str, bool | None]] = {"t": ("true", True), "f": ("false", False), "n": ("null", None)}
_MAX_QUOTED_CHARACTERS = 40  # characters of a key that an error repeats


class JsonSpan(NamedTuple):
    """Offsets of a value: of its key (its own start if it has none), of its start, and of its end.

    `inner` has the spans of its members. A flat map by pointer would repeat a long key for each value below it.
    """

    key: int
    start: int
    end: int
    inner: dict[str, JsonSpan] | list[JsonSpan] | None = None

    def member(self, token: str) -> JsonSpan | None:
        """Return the span of a member by its key or index, or None if there is no such member."""
        if isinstance(self.inner, dict):
            return self.inner.get(token)
        index = array_index(token)
        if self.inner is None or index is None or index >= len(self.inner):
            return None
        return self.inner[index]


class JsonSyntaxError(ValueError):
    """Raised when a text is not JSON. Has a message and an offset."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset


def parse_json(text: str, *, comments: bool = False) -> JsonDocument:
    """Parse a text. With `comments`, `//`, `/* */` and trailing commas are allowed.

    Raises:
        JsonSyntaxError: The text is not JSON, or has comments that are not allowed.
    """
    value, root = _JsonParser(text, comments=comments).parse()
    return JsonDocument(value, text, comments=comments, root=root)


def is_blank(text: str, *, comments: bool = False) -> bool:
    """Return True if a text holds nothing at all, or with `comments` nothing but comments."""
    return _JsonParser(text, comments=comments).skip(0) == len(text)


class _JsonParser:
    def __init__(self, text: str, *, comments: bool) -> None:
        self._text = text
        self._comments = comments
        self._values = 0

    def parse(self) -> tuple[JsonValue, JsonSpan]:
        start = self.skip(0)
        value, span = self._value(start, start, 0)
        rest = self.skip(span.end)
        if rest < len(self._text):
            raise JsonSyntaxError("Extra data", rest)
        return value, span

    def skip(self, offset: int) -> int:
        """Return the offset of the next character that is neither blank nor comment."""
        while self._text[offset : offset + 1] in _BLANKS_AND_SLASH:
            offset = _BLANK.match(self._text, offset).end()  # type: ignore[union-attr] # it also matches ""
            if not self._comments or not self._text.startswith(("//", "/*"), offset):
                return offset
            offset = self._comment_end(offset)
        return offset

    def _comment_end(self, opening: int) -> int:
        if self._text.startswith("//", opening):
            return _LINE.match(self._text, opening).end()  # type: ignore[union-attr] # it also matches ""
        closing = self._text.find("*/", opening + 2)
        if closing < 0:
            raise JsonSyntaxError("Unterminated comment starting at", opening)
        return closing + 2

    def _value(self, offset: int, key: int, depth: int) -> tuple[JsonValue, JsonSpan]:
        value: JsonValue
        self._values += 1
        if self._values > MAX_VALUES:
            raise JsonSyntaxError(f"More than {MAX_VALUES} values", offset)
        first = self._text[offset : offset + 1]
        if first in ("{", "[") and depth >= MAX_DEPTH:
            raise JsonSyntaxError(f"Nested deeper than {MAX_DEPTH} levels", offset)
        if first == "{":
            value, end, members = self._object(offset, depth + 1)
            return value, JsonSpan(key, offset, end, members)
        if first == "[":
            value, end, items = self._array(offset, depth + 1)
            return value, JsonSpan(key, offset, end, items)
        value, end = self._string(offset) if first == '"' else self._scalar(offset)
        return value, JsonSpan(key, offset, end)

    def _object(self, opening: int, depth: int) -> tuple[dict[str, JsonValue], int, dict[str, JsonSpan]]:
        members: dict[str, JsonValue] = {}
        spans: dict[str, JsonSpan] = {}
        offset = self.skip(opening + 1)
        if self._text.startswith("}", offset):
            return members, offset + 1, spans
        while True:
            key_offset = offset
            key, offset = self._key(offset, spans)
            members[key], spans[key] = self._value(offset, key_offset, depth)
            offset, closed = self._after_member(spans[key].end, "}", "object")
            if closed:
                return members, offset, spans

    def _key(self, offset: int, known: dict[str, JsonSpan]) -> tuple[str, int]:
        """Return a key, and the offset of its value."""
        if not self._text.startswith('"', offset):
            raise JsonSyntaxError("Expecting property name enclosed in double quotes", offset)
        key, end = self._string(offset)
        if key in known:
            first = LineIndex(self._text).position(known[key].key).line
            raise JsonSyntaxError(
                f"Duplicate key {shorten(key, _MAX_QUOTED_CHARACTERS)!r}, already on line {first}", offset
            )
        colon = self.skip(end)
        if not self._text.startswith(":", colon):
            raise JsonSyntaxError("Expecting ':' delimiter", colon)
        return key, self.skip(colon + 1)

    def _array(self, opening: int, depth: int) -> tuple[list[JsonValue], int, list[JsonSpan]]:
        items: list[JsonValue] = []
        spans: list[JsonSpan] = []
        offset = self.skip(opening + 1)
        if self._text.startswith("]", offset):
            return items, offset + 1, spans
        while True:
            item, span = self._value(offset, offset, depth)
            items.append(item)
            spans.append(span)
            offset, closed = self._after_member(span.end, "]", "array")
            if closed:
                return items, offset, spans

    def _after_member(self, end: int, closing: str, kind: str) -> tuple[int, bool]:
        """Return the offset after the comma or closing bracket of a member, and True for the bracket."""
        offset = self.skip(end)
        found = self._text[offset : offset + 1]
        if found == closing:
            return offset + 1, True
        if found != ",":
            raise JsonSyntaxError("Expecting ',' delimiter", offset)
        after = self.skip(offset + 1)
        if not self._text.startswith(closing, after):
            return after, False
        if not self._comments:
            raise JsonSyntaxError(f"Illegal trailing comma before end of {kind}", offset)
        return after + 1, True

    def _string(self, opening: int) -> tuple[str, int]:
        try:
            value, end = scanstring(self._text, opening + 1)
        except JSONDecodeError as error:
            # scanstring calls a valid escape invalid if the text ends with it.
            last = self._text[error.pos + 1 :] if "\\uXXXX" in error.msg else ""
            if len(last) == _ESCAPE_DIGITS and _HEX_DIGITS.issuperset(last):
                raise JsonSyntaxError("Unterminated string starting at", opening) from None
            raise JsonSyntaxError(error.msg, error.pos) from None
        if not value.isascii():
            self._refuse_lone_surrogates(value, opening, end)
        return value, end

    def _refuse_lone_surrogates(self, value: str, opening: int, end: int) -> None:
        """Raise for the first escape of a string that stands for half of a character."""
        try:
            value.encode()
        except UnicodeEncodeError:
            for escape in re.compile(_ESCAPE_PATTERN).finditer(self._text, opening, end):
                if escape["lone"]:
                    raise JsonSyntaxError("Lone surrogate in \\uXXXX escape", escape.start()) from None

    def _scalar(self, offset: int) -> tuple[JsonValue, int]:
        word, value = _LITERALS.get(self._text[offset : offset + 1], ("", None))
        if word and self._text.startswith(word, offset):
            return value, offset + len(word)
        match = _NUMBER.match(self._text, offset)
        if match is None:
            raise JsonSyntaxError("Expecting value", offset)
        return self._number(match), match.end()

    def _number(self, match: re.Match[str]) -> int | float:
        whole, fraction, exponent = match.groups()
        if fraction is None and exponent is None:
            # The length first: Python's own limit may be switched off, and then a long integer takes minutes.
            if len(whole) <= MAX_INTEGER_DIGITS:
                try:
                    return int(whole)
                except ValueError:  # Python's limit is set lower than its default
                    pass
        elif isfinite(number := float(match[0])):
            return number
        raise JsonSyntaxError("Number out of range", match.start())
