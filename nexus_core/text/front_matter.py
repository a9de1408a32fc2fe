"""Reads the head of a guide: the part of YAML that people write there, and nothing that could do harm.

Objects and lists by indentation or in brackets; texts plain, quoted, folded (`>`) or as they stand (`|`); comments.
Colons in a plain text are part of it, although YAML would refuse them: many a description has some. Anchors, aliases
and tags are refused.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from nexus_core.text.flow_values import DEEPEST, NOTHING, FlowError, FlowValue, scan_value

FENCE = "---"
WRONG_FORM = "is not of the form 'name: value'"
MOST_LINES = 200
MAX_HEAD_CHARACTERS = 8 * 1024

_BLOCK = re.compile(r"[|>][-+0-9]{0,2}(?:\s+#.*)?")
_COMMENT = re.compile(r"\s#")
_RESERVED = "&*!%@`"


class FrontMatterError(ValueError):
    """The head of a guide cannot be read.

    Attributes:
        line: Where, from 1.
    """

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


class FrontMatter(NamedTuple):
    """The head of a guide as an object, and the guide itself."""

    values: dict[str, FlowValue]
    body: str


def read_front_matter(text: str) -> FrontMatter:
    """Split a guide into its head, between two lines `---`, and its body.

    Raises:
        FrontMatterError: It has no head, or one that cannot be read.
    """
    first, _, rest = text.partition("\n")
    if first.rstrip() != FENCE:
        raise FrontMatterError("does not start with a '---' line", 1)
    lines = rest[:MAX_HEAD_CHARACTERS].split("\n")[:MOST_LINES]
    end = next((at for at, line in enumerate(lines) if line.rstrip() in {FENCE, "..."}), None)
    if end is None:
        raise FrontMatterError("the '---' line that ends its front matter is missing or too far down", 1)
    return FrontMatter(_Reader(lines[:end]).document(), "\n".join(rest.split("\n")[end + 1 :]))


class _Row(NamedTuple):
    indent: int
    content: str


class _Reader:
    """Reads lines from the top down; `_at` is the line that comes next."""

    def __init__(self, lines: list[str]) -> None:
        self._rows = [_Row(len(line) - len(line.lstrip(" ")), line.strip()) for line in lines]
        self._tabbed = {number for number, line in enumerate(lines) if line.lstrip(" ").startswith("\t")}
        self._lines = lines
        self._at = 0

    def document(self) -> dict[str, FlowValue]:
        row = self._next()
        if row is None:
            return {}
        values = self._object(row.indent, 0)
        if (row := self._next()) is not None:
            raise self._error(WRONG_FORM if _is_item(row) else "is indented less than what comes before it")
        return values

    def _object(self, indent: int, depth: int) -> dict[str, FlowValue]:
        values: dict[str, FlowValue] = {}
        while (row := self._next()) is not None and row.indent >= indent and not _is_item(row):
            if row.indent > indent:
                raise self._error("is indented more than what comes before it")
            named = _named(row.content)
            if named is None:
                raise self._error(WRONG_FORM)
            key, rest = named
            if key in values:
                raise self._error(f"{key[:40]!r} is there twice")
            self._at += 1
            values[key] = self._value(rest, indent, depth + 1)
        return values

    def _list(self, indent: int, depth: int) -> list[FlowValue]:
        items: list[FlowValue] = []
        while (row := self._next()) is not None and row.indent == indent and _is_item(row):
            rest = row.content[1:].strip()
            inner = indent + len(row.content) - len(rest)
            if rest and rest[0] not in "[{\"'" and _named(rest) is not None:
                self._rows[self._at] = _Row(inner, rest)  # an object that begins in the line of its item
                items.append(self._object(inner, depth + 1))
            else:
                self._at += 1
                items.append(self._value(rest, indent, depth + 1))
        return items

    def _value(self, rest: str, indent: int, depth: int) -> FlowValue:
        """What follows a name or the hyphen of an item: in its line, or below it and further in."""
        if depth > DEEPEST:
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
            return self._list(row.indent, depth)  # which may stand as far out as its name
        if row.indent == indent:
            return ""
        if row.content[0] in "[{\"'" and (row.content[0] in "[{" or _named(row.content) is None):
            self._at += 1
            return self._in_brackets(row.content, indent)
        if _named(row.content) is not None:
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
            value, left = scan_value(rest, more)
        except FlowError as error:
            raise FrontMatterError(str(error), begun + 2) from None
        if left.strip() and not left.strip().startswith("#"):
            raise FrontMatterError(f"{left.strip()[:20]!r} comes after the end of a value", begun + 2)
        return value

    def _plain(self, rest: str, indent: int) -> str:
        if rest[0] in _RESERVED:
            raise self._error(f"begins with {rest[0]!r}; put it in quotes", back=1)
        words = [_without_comment(rest)]
        while self._at < len(self._rows) and (row := self._rows[self._at]).indent > indent:
            if not row.content or row.content.startswith("#"):
                break
            words.append(_without_comment(row.content))
            self._at += 1
        text = " ".join(words)
        return "" if text in NOTHING else text

    def _next(self) -> _Row | None:
        """The next line that says something."""
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


def _is_item(row: _Row) -> bool:
    return row.content == "-" or row.content.startswith("- ")


def _named(content: str) -> tuple[str, str] | None:
    """A line as name and value, unless it is none of that form."""
    if content[0] in "\"'":
        try:
            name, rest = scan_value(content, lambda: None)
        except FlowError:
            return None
        rest = rest.lstrip()
        return (str(name), rest[1:].strip()) if rest.startswith(":") else None
    if content.endswith(":") and ": " not in content:
        return content[:-1].rstrip(), ""
    name, colon, rest = content.partition(": ")
    return (name.rstrip(), rest.strip()) if colon and name.strip() else None


def _without_comment(text: str) -> str:
    found = _COMMENT.search(text)
    return text[: found.start()].rstrip() if found else text
