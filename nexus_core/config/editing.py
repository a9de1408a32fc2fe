"""Changes one value in a JSON text and leaves every other byte of it as it is."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.config.json_parser import is_blank, parse_json
from nexus_core.config.pointers import array_index, join_pointer, split_pointer
from nexus_core.text.visible import visible_json

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nexus_core.config.json_document import JsonValue
    from nexus_core.config.json_parser import Span

DEFAULT_INDENT = "  "

_APPEND = "-"  # the token of a JSON pointer for the place after the last item of an array
_BYTE_ORDER_MARK = "\ufeff"
_BLANKS = re.compile(r"[ \t]*")
_LINE_END = re.compile(r"\r\n|\n|\r")
_COMMENT_OR_COMMA = re.compile(r"[ \t\n\r]*(//[^\n\r]*|/\*.*?\*/|,)", re.DOTALL)
_KINDS = {'"': "a string", "t": "a boolean", "f": "a boolean", "n": "null"}


def set_value(text: str, pointer: str, value: JsonValue, *, comments: bool = False) -> str:
    """`text` with `value` at `pointer`.

    A new member becomes the last of its object and is laid out like its neighbours; objects that are missing on the
    way are made. In an array, `-` or its length appends; a missing array is made for `-`. A blank text becomes a
    document.

    Raises:
        JsonSyntaxError: The text is not JSON.
        ValueError: The pointer leads through a value without members or past the end of an array, or the value cannot
            be written as JSON that can be read again.
    """
    tokens = split_pointer(pointer)

    def edit(body: str) -> str:
        if is_blank(body, comments=comments):
            return _new_document(body, _wrap(tokens, value))
        return _Editor(body, comments=comments).set(tokens, value)

    return _checked(text, edit, comments=comments)


def remove_value(text: str, pointer: str, *, comments: bool = False) -> str:
    """`text` without the value at `pointer`; comments beside it stay.

    Raises:
        JsonSyntaxError: The text is not JSON.
        ValueError: There is no such value, or it is the whole document.
    """
    tokens = split_pointer(pointer)

    def edit(body: str) -> str:
        if is_blank(body, comments=comments):
            raise ValueError(f"there is nothing at {pointer!r}")
        return _Editor(body, comments=comments).remove(tokens)

    return _checked(text, edit, comments=comments)


def _checked(text: str, edit: Callable[[str], str], *, comments: bool) -> str:
    """The edited text; a file is never left in a state that cannot be read again."""
    body = text.removeprefix(_BYTE_ORDER_MARK)
    edited = edit(body)
    parse_json(edited, comments=comments)
    return text[: len(text) - len(body)] + edited


class _Edit(NamedTuple):
    start: int
    end: int
    text: str = ""


class _Tail(NamedTuple):
    comma: int | None  # the offset of the comma after a member
    end: int  # of the last comment or comma after it


class _Editor:
    def __init__(self, text: str, *, comments: bool) -> None:
        self._text = text
        self._comments = comments
        self._root = parse_json(text, comments=comments).root
        self._newline = _line_end_of(text)

    def set(self, tokens: list[str], value: JsonValue) -> str:
        chain = self._follow(tokens)
        missing = tokens[len(chain) - 1 :]
        if missing:
            self._require_place(chain, tokens)
            return self._add(chain, missing[0], _wrap(missing[1:], value))
        span = chain[-1]
        old = parse_json(self._text[span.start : span.end], comments=self._comments).value
        if _dump(old) == _dump(value):
            return self._text
        indent = self._indent_of_line(span.key) if self._has_lines(chain) else None
        return self._apply(_Edit(span.start, span.end, self._layout(chain, value, indent)))

    def remove(self, tokens: list[str]) -> str:
        chain = self._follow(tokens)
        if len(chain) <= len(tokens):
            self._require_members(chain, tokens)
            raise ValueError(f"there is nothing at {join_pointer(tokens)!r}")
        if not tokens:
            raise ValueError("the whole document cannot be removed")
        container, span = chain[-2:]
        siblings = _members(container)
        inside = self._text[container.start + 1 : span.key] + self._text[span.end : container.end - 1]
        if len(siblings) == 1 and not inside.strip(" \t\r\n,"):
            return self._apply(_Edit(container.start + 1, container.end - 1))
        index = siblings.index(span)
        comma = self._tail(span.end).comma
        if comma is None and index:
            comma = self._tail(siblings[index - 1].end).comma
        if comma is None:
            return self._apply(self._cut(span.key, span.end))
        if comma > span.start and not self._text[span.end : comma].strip():
            return self._apply(self._cut(span.key, comma + 1))
        return self._apply(self._cut(span.key, span.end), _Edit(comma, comma + 1))

    def _follow(self, tokens: list[str]) -> list[Span]:
        """The values on the way, from the whole document to the last that exists."""
        chain = [self._root]
        for token in tokens:
            member = chain[-1].member(token)
            if member is None:
                break
            chain.append(member)
        return chain

    def _require_members(self, chain: Sequence[Span], tokens: list[str]) -> None:
        if chain[-1].inner is None:
            # Its kind only, because the value may be a secret.
            kind = _KINDS.get(self._text[chain[-1].start], "a number")
            there = join_pointer(tokens[: len(chain) - 1])
            raise ValueError(f"{join_pointer(tokens)!r} cannot be reached: {there!r} is {kind}, which has no members")

    def _require_place(self, chain: Sequence[Span], tokens: list[str]) -> None:
        self._require_members(chain, tokens)
        items, token = chain[-1].inner, tokens[len(chain) - 1]
        if isinstance(items, list) and token != _APPEND and array_index(token) != len(items):
            there = join_pointer(tokens[: len(chain) - 1])
            raise ValueError(
                f"{token!r} is no place in the array at {there!r}: use an index up to {len(items)}, or '-' to append"
            )

    def _add(self, chain: Sequence[Span], token: str, value: JsonValue) -> str:
        container, members = chain[-1], _members(chain[-1])
        indent = self._indent_of_members(chain) if self._has_lines(chain) else None
        member = self._layout(chain, value, indent)
        if isinstance(container.inner, dict):
            member = f"{_dump(token)}: {member}"
        after, closing = members[-1].end if members else container.start + 1, container.end - 1
        comma, end = self._tail(after)
        edits = [_Edit(after, after, ",")] if members and comma is None else []
        if comma is not None:
            member += ","
        if indent is None:
            edits.append(_Edit(end, end, f" {member}" if end > container.start + 1 else member))
        elif members or _LINE_END.search(self._text, end, closing):
            edits.append(_Edit(end, end, f"{self._newline}{indent}{member}"))
        else:
            outer = self._indent_of_line(container.start)
            edits.append(_Edit(end, closing, f"{self._newline}{indent}{member}{self._newline}{outer}"))
        return self._apply(*edits)

    def _tail(self, offset: int) -> _Tail:
        comma = None
        while found := _COMMENT_OR_COMMA.match(self._text, offset):
            offset = found.end()
            comma = offset - 1 if found[1] == "," else comma
        return _Tail(comma, offset)

    def _has_lines(self, chain: Sequence[Span]) -> bool:
        """Whether the members of the last value get lines of their own: as they have, else as those around it."""
        span = chain[-1]
        if _LINE_END.search(self._text, span.start, span.end):
            return True
        return not span.inner and (len(chain) == 1 or self._has_lines(chain[:-1]))

    def _layout(self, chain: Sequence[Span], value: JsonValue, indent: str | None) -> str:
        """A value as it is written on a line with this indent, or all in one line when that is None."""
        if indent is None:
            return _dump(value)
        return _dump(value, self._indent_unit(chain)).replace("\n", self._newline + indent)

    def _indent_unit(self, chain: Sequence[Span]) -> str:
        for span in reversed(chain):
            outer = self._indent_of_line(span.start)
            for member in _members(span)[:1]:
                indent = self._indent_before(member.key)
                if indent is not None and indent.startswith(outer) and indent != outer:
                    return indent.removeprefix(outer)
        return DEFAULT_INDENT

    def _indent_of_members(self, chain: Sequence[Span]) -> str:
        members = _members(chain[-1])
        for member in (*members[-1:], *members[:1]):
            indent = self._indent_before(member.key)
            if indent is not None:
                return indent
        return self._indent_of_line(chain[-1].start) + self._indent_unit(chain)

    def _indent_before(self, offset: int) -> str | None:
        """The blanks before an offset, or None when something else is before it in its line."""
        start = self._before_blanks(offset)
        return self._text[start:offset] if start == 0 or self._text[start - 1] in "\r\n" else None

    def _indent_of_line(self, offset: int) -> str:
        start = max(self._text.rfind("\n", 0, offset), self._text.rfind("\r", 0, offset)) + 1
        return self._text[start : self._after_blanks(start)]

    def _cut(self, start: int, end: int) -> _Edit:
        """Takes out a range with the blanks that it leaves, and its lines if nothing else is in them."""
        after = self._after_blanks(end)
        line_end = _LINE_END.match(self._text, after)
        indent = self._indent_before(start)
        if indent is not None and line_end:
            return _Edit(start - len(indent), line_end.end())
        if indent is None and (line_end or self._text[after] in "}]"):
            return _Edit(self._before_blanks(start), end)
        return _Edit(start, after)

    def _before_blanks(self, offset: int) -> int:
        while offset and self._text[offset - 1] in " \t":
            offset -= 1
        return offset

    def _after_blanks(self, offset: int) -> int:
        return _BLANKS.match(self._text, offset).end()  # type: ignore[union-attr] # it matches nothing too

    def _apply(self, *edits: _Edit) -> str:
        parts: list[str] = []
        done = 0
        # Where two are at one offset, the comma and the member after it, they stay in the order given.
        for edit in sorted(edits, key=lambda edit: edit.start):
            parts += self._text[done : edit.start], edit.text
            done = edit.end
        return "".join(parts) + self._text[done:]


def _new_document(blank: str, value: JsonValue) -> str:
    newline = _line_end_of(blank)
    comments = blank if blank.strip() else ""
    if comments and not comments.endswith(("\n", "\r")):
        comments += newline
    return comments + _dump(value, DEFAULT_INDENT).replace("\n", newline) + newline


def _wrap(tokens: Sequence[str], value: JsonValue) -> JsonValue:
    """A value inside the objects and arrays that lead to it."""
    for token in reversed(tokens):
        value = [value] if token == _APPEND else {token: value}
    return value


def _dump(value: JsonValue, indent: str | None = None) -> str:
    import json  # noqa: PLC0415 - whoever only reads does without

    try:
        return visible_json(json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent))
    except RecursionError:
        raise ValueError("the value is nested too deeply") from None


def _members(span: Span) -> list[Span]:
    return list(span.inner.values()) if isinstance(span.inner, dict) else span.inner or []


def _line_end_of(text: str) -> str:
    found = _LINE_END.search(text)
    return found[0] if found else "\n"
