"""Reads one value in quotes or brackets: a text, a list, an object, as JSON or as YAML writes them in a line."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

FlowValue = str | list["FlowValue"] | dict[str, "FlowValue"]
"""Everything is a text, or made of texts: `no`, `1.10` and `2024-01-01` mean what they say."""

DEEPEST = 16
MOST_VALUES = 300
NOTHING = {"~", "null", "Null", "NULL"}

_BLANK = re.compile(r"\s*+")
_PLAIN = re.compile(r"(?:[^,\[\]{}:\n]|:(?![\s\"'\[{]))++")
_SINGLE = re.compile(r"'((?:[^']|'')*+)'")
_DOUBLE = re.compile(r'"((?:[^"\\]|\\.)*+)"', re.DOTALL)
_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "0": "", "\n": " "}


class FlowError(ValueError):
    """What a text begins with is no value; the message says why."""


def scan_value(text: str, more: Callable[[], str | None]) -> tuple[FlowValue, str]:
    """The value that a text begins with, and what follows it.

    Args:
        text: The line with the beginning of the value.
        more: Gives the next line, None when there is none.

    Raises:
        FlowError: It is no value, or it does not end.
    """
    scanner = _Scanner(text, more)
    value = scanner.value(0)
    return value, scanner.rest


class _Scanner:
    def __init__(self, text: str, more: Callable[[], str | None]) -> None:
        self._text = text
        self._more = more
        self._at = 0
        self._values = 0

    @property
    def rest(self) -> str:
        return self._text[self._at :]

    def value(self, depth: int) -> FlowValue:
        self._values += 1
        if depth > DEEPEST or self._values > MOST_VALUES:
            raise FlowError("nested too deep" if depth > DEEPEST else f"has more than {MOST_VALUES} values")
        opening = self._peek()
        if opening == "[":
            return self._list(depth)
        return self._object(depth) if opening == "{" else self._scalar()

    def _list(self, depth: int) -> FlowValue:
        items: list[FlowValue] = []
        while self._goes_on("]", is_first=not items):
            items.append(self.value(depth + 1))
        return items

    def _object(self, depth: int) -> FlowValue:
        found: dict[str, FlowValue] = {}
        while self._goes_on("}", is_first=not found):
            key = self._scalar()
            if key in found:
                raise FlowError(f"{key[:40]!r} is there twice")
            found[key] = ""
            if self._peek() == ":":
                self._at += 1
                if self._peek() not in ",}":
                    found[key] = self.value(depth + 1)
        return found

    def _goes_on(self, closing: str, *, is_first: bool) -> bool:
        """Step over the opening bracket or a comma; False at the end, which is stepped over too."""
        if is_first or self._peek() == ",":
            self._at += 1
        elif self._peek() != closing:
            raise FlowError(f"a comma or {closing!r} is missing before {self._text[self._at :][:20]!r}")
        if self._peek() != closing:
            return True
        self._at += 1
        return False

    def _scalar(self) -> str:
        opening = self._peek()
        if opening in "\"'":
            return self._quoted(opening)
        found = _PLAIN.match(self._text, self._at)
        if found is None:
            raise FlowError(f"{self._text[self._at :][:20]!r} is not expected here")
        self._at = found.end()
        word = found[0].strip()
        return "" if word in NOTHING else word

    def _quoted(self, quote: str) -> str:
        form = _DOUBLE if quote == '"' else _SINGLE
        while (found := form.match(self._text, self._at)) is None:
            self._continue()
        self._at = found.end()
        words = " ".join(line.strip() for line in found[1].split("\n")) if "\n" in found[1] else found[1]
        return _unescaped(words) if quote == '"' else words.replace("''", "'")

    def _peek(self) -> str:
        """The next character that is not blank."""
        while True:
            blank = _BLANK.match(self._text, self._at)
            self._at = blank.end() if blank else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            self._continue()

    def _continue(self) -> None:
        line = self._more()
        if line is None:
            raise FlowError(f"{self._text[:20]!r} is never closed")
        self._text += f"\n{line}"


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    plain = _ESCAPE.sub(_character, text)
    # JSON writes what lies beyond 16 bits in two halves; half a character would stop whoever writes it down.
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _character(escape: re.Match[str]) -> str:
    if escape[4] is not None:
        return _ESCAPED.get(escape[4], escape[4])
    code = int(escape[1] or escape[2] or escape[3], 16)
    return chr(code) if code <= 0x10FFFF else "\N{REPLACEMENT CHARACTER}"  # noqa: PLR2004 - the last there is
