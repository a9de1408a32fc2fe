"""Parser for the front matter of a Markdown file, a safe subset of YAML.

Objects and lists by indentation or in brackets. Strings plain, quoted, folded (`>`) or literal (`|`). Comments. Every
scalar is a string: `no`, `1.10` and `2024-01-01` stay as written. Colons in a plain string are part of it, although
YAML would refuse them, because many descriptions have some. Anchors, aliases and tags are refused.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

FlowValue = str | list["FlowValue"] | dict[str, "FlowValue"]
"""A string, or a list or object of strings: `no`, `1.10` and `2024-01-01` stay strings."""

MAX_DEPTH = 16
MAX_VALUES = 300
NULL_WORDS = {"~", "null", "Null", "NULL"}

_BLANK = re.compile(r"\s*+")
_PLAIN = re.compile(r"(?>(?:[^,\[\]{}:\n]|:(?![\s\"'\[{]))+)")
_SINGLE = re.compile(r"'((?>(?:[^']|'')*))'")
_DOUBLE = re.compile(r'"((?>(?:[^"\\]|\\.)*))"', re.DOTALL)
_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_ESCAPE_CODES = {"n": "\n", "t": "\t", "r": "\r", "0": "", "\n": " "}


class FlowError(ValueError):
    """Raised when a text does not begin with a value. The message says why."""


def parse_flow_value(text: str, more: Callable[[], str | None]) -> tuple[FlowValue, str]:
    """Return the value that a text begins with, and the rest of the text.

    Args:
        text: The line with the beginning of the value.
        more: Returns the next line, or None at the end.

    Raises:
        FlowError: It is not a value, or it does not end.
    """
    scanner = _FlowParser(text, more)
    value = scanner.value(0)
    return value, scanner.rest


class _FlowParser:
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
        if depth > MAX_DEPTH or self._values > MAX_VALUES:
            raise FlowError("nested too deep" if depth > MAX_DEPTH else f"has more than {MAX_VALUES} values")
        opening = self._peek()
        if opening == "[":
            return self._list(depth)
        return self._object(depth) if opening == "{" else self._scalar()

    def _list(self, depth: int) -> FlowValue:
        items: list[FlowValue] = []
        while self._has_next("]", is_first=not items):
            items.append(self.value(depth + 1))
        return items

    def _object(self, depth: int) -> FlowValue:
        found: dict[str, FlowValue] = {}
        while self._has_next("}", is_first=not found):
            key = self._scalar()
            if key in found:
                raise FlowError(f"duplicate key {key[:40]!r}")
            found[key] = ""
            if self._peek() == ":":
                self._at += 1
                if self._peek() not in ",}":
                    found[key] = self.value(depth + 1)
        return found

    def _has_next(self, closing: str, *, is_first: bool) -> bool:
        """Skip the opening bracket or a comma. Return False at the closing bracket, which is skipped too."""
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
        return "" if word in NULL_WORDS else word

    def _quoted(self, quote: str) -> str:
        form = _DOUBLE if quote == '"' else _SINGLE
        while (found := form.match(self._text, self._at)) is None:
            self._continue()
        self._at = found.end()
        words = " ".join(line.strip() for line in found[1].split("\n")) if "\n" in found[1] else found[1]
        return _unescape(words) if quote == '"' else words.replace("''", "'")

    def _peek(self) -> str:
        """Return the next character that is not blank."""
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


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    plain = _ESCAPE.sub(_decode_escape, text)
    # JSON writes characters beyond 16 bits as surrogate pairs; a lone surrogate could not be encoded later.
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _decode_escape(escape: re.Match[str]) -> str:
    if escape[4] is not None:
        return _ESCAPE_CODES.get(escape[4], escape[4])
    code = int(escape[1] or escape[2] or escape[3], 16)
    return chr(code) if code <= 0x10FFFF else "\N{REPLACEMENT CHARACTER}"  # noqa: PLR2004 - the last code point


FRONT_MATTER_FENCE = "---"
NOT_A_FIELD = "is not of the form 'name: value'"
MAX_HEAD_LINES = 200
MAX_HEAD_CHARACTERS = 8 * 1024

_BLOCK = re.compile(r"[|>][-+0-9]{0,2}(?:\s+#.*)?")
_COMMENT = re.compile(r"\s#")
_RESERVED = "&*!%@`"


class FrontMatterError(ValueError):
    """Raised when the front matter of a file cannot be parsed.

    Attributes:
        line: The line of the error, from 1.
    """

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


class FrontMatter(NamedTuple):
    """The front matter of a file as an object, and the body."""

    values: dict[str, FlowValue]
    body: str


def read_front_matter(text: str) -> FrontMatter:
    """Split a file into its front matter, between two lines `---`, and its body.

    Raises:
        FrontMatterError: It has no front matter, or one that cannot be parsed.
    """
    first, _, rest = text.partition("\n")
    if first.rstrip() != FRONT_MATTER_FENCE:
        raise FrontMatterError("does not start with a '---' line", 1)
    lines = rest[:MAX_HEAD_CHARACTERS].split("\n")[:MAX_HEAD_LINES]
    end = next((at for at, line in enumerate(lines) if line.rstrip() in {FRONT_MATTER_FENCE, "..."}), None)
    if end is None:
        raise FrontMatterError("the '---' line that ends its front matter is missing or too far down", 1)
    return FrontMatter(_FrontMatterParser(lines[:end]).document(), "\n".join(rest.split("\n")[end + 1 :]))


class _IndentedLine(NamedTuple):
    indent: int
    content: str


class _FrontMatterParser:
    """Parses lines from the top down. `_at` is the index of the next line."""

    def __init__(self, lines: list[str]) -> None:
        self._rows = [_IndentedLine(len(line) - len(line.lstrip(" ")), line.strip()) for line in lines]
        self._tabbed = {number for number, line in enumerate(lines) if line.lstrip(" ").startswith("\t")}
        self._lines = lines
        self._at = 0

    def document(self) -> dict[str, FlowValue]:
        row = self._next()
        if row is None:
            return {}
        values = self._object(row.indent, 0)
        if (row := self._next()) is not None:
            raise self._error(NOT_A_FIELD if _is_item(row) else "is indented less than what comes before it")
        return values

    def _object(self, indent: int, depth: int) -> dict[str, FlowValue]:
        values: dict[str, FlowValue] = {}
        while (row := self._next()) is not None and row.indent >= indent and not _is_item(row):
            if row.indent > indent:
                raise self._error("is indented more than what comes before it")
            named = _split_field(row.content)
            if named is None:
                raise self._error(NOT_A_FIELD)
            key, rest = named
            if key in values:
                raise self._error(f"repeats the key {key[:40]!r}")
            self._at += 1
            values[key] = self._value(rest, indent, depth + 1)
        return values

    def _list(self, indent: int, depth: int) -> list[FlowValue]:
        items: list[FlowValue] = []
        while (row := self._next()) is not None and row.indent == indent and _is_item(row):
            rest = row.content[1:].strip()
            inner = indent + len(row.content) - len(rest)
            if rest and rest[0] not in "[{\"'" and _split_field(rest) is not None:
                self._rows[self._at] = _IndentedLine(inner, rest)  # an object that begins on the line of its item
                items.append(self._object(inner, depth + 1))
            else:
                self._at += 1
                items.append(self._value(rest, indent, depth + 1))
        return items

    def _value(self, rest: str, indent: int, depth: int) -> FlowValue:
        """Return the value after a name or the hyphen of an item: on its line, or below it and further indented."""
        if depth > MAX_DEPTH:
            raise self._error("is nested too deep", back=1)
        if not rest or rest.startswith("#"):
            return self._below(indent, depth)
        if _BLOCK.fullmatch(rest):
            return self._block(indent, is_folded=rest.startswith(">"))
        if rest[0] in "[{\"'":
            return self._in_brackets(rest, indent)
        return self._plain(rest, indent)

    def _below(self, indent: int, depth: int) -> FlowValue:
        row = self._next()
        if row is None or row.indent < indent:
            return ""
        if _is_item(row):
            return self._list(row.indent, depth)  # it may be indented as little as its name
        if row.indent == indent:
            return ""
        if row.content[0] in "[{\"'" and (row.content[0] in "[{" or _split_field(row.content) is None):
            self._at += 1
            return self._in_brackets(row.content, indent)
        if _split_field(row.content) is not None:
            return self._object(row.indent, depth)
        self._at += 1
        return self._plain(row.content, indent)

    def _block(self, indent: int, *, is_folded: bool) -> str:
        start = self._at
        while self._at < len(self._rows) and (self._rows[self._at].indent > indent or not self._rows[self._at].content):
            self._at += 1
        lines = self._lines[start : self._at]
        margin = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
        lines = [line[margin:].rstrip() for line in lines]
        if not is_folded:
            return "\n".join(lines).strip("\n")
        return "\n".join(" ".join(part.split("\n")) for part in re.split(r"\n{2,}", "\n".join(lines).strip("\n")))

    def _in_brackets(self, rest: str, indent: int) -> FlowValue:
        begun = self._at - 1

        def more() -> str | None:
            row = self._rows[self._at] if self._at < len(self._rows) else None
            if row is None or (row.content and row.indent <= indent and row.content[0] not in "]}"):
                return None
            self._at += 1
            return row.content

        try:
            value, left = parse_flow_value(rest, more)
        except FlowError as error:
            raise FrontMatterError(str(error), begun + 2) from None
        if left.strip() and not left.strip().startswith("#"):
            raise FrontMatterError(f"{left.strip()[:20]!r} comes after the end of a value", begun + 2)
        return value

    def _plain(self, rest: str, indent: int) -> str:
        if rest[0] in _RESERVED:
            raise self._error(f"begins with {rest[0]!r}; put it in quotes", back=1)
        words = [_strip_comment(rest)]
        while self._at < len(self._rows) and (row := self._rows[self._at]).indent > indent:
            if not row.content or row.content.startswith("#"):
                break
            words.append(_strip_comment(row.content))
            self._at += 1
        text = " ".join(words)
        return "" if text in NULL_WORDS else text

    def _next(self) -> _IndentedLine | None:
        """Return the next line that is neither blank nor a comment."""
        while self._at < len(self._rows):
            row = self._rows[self._at]
            if row.content and not row.content.startswith("#"):
                if self._at in self._tabbed:
                    raise self._error("is indented with a tab; use spaces")
                return row
            self._at += 1
        return None

    def _error(self, message: str, *, back: int = 0) -> FrontMatterError:
        line = self._at - back
        return FrontMatterError(f"{self._rows[line].content[:40]!r} {message}", line + 2)  # after the fence; from 1


def _is_item(row: _IndentedLine) -> bool:
    return row.content == "-" or row.content.startswith("- ")


def _split_field(content: str) -> tuple[str, str] | None:
    """Split a line into name and value, or return None."""
    if content[0] in "\"'":
        try:
            name, rest = parse_flow_value(content, lambda: None)
        except FlowError:
            return None
        rest = rest.lstrip()
        return (str(name), rest[1:].strip()) if rest.startswith(":") else None
    if content.endswith(":") and ": " not in content:
        return content[:-1].rstrip(), ""
    name, colon, rest = content.partition(": ")
    return (name.rstrip(), rest.strip()) if colon and name.strip() else None


def _strip_comment(text: str) -> str:
    found = _COMMENT.search(text)
    return text[: found.start()].rstrip() if found else text
