"""Parser for the YAML of a front matter: PyYAML's safe loader, limited to strings, lists and objects."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import yaml

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexus_core.text.front_matter import FlowValue

MAX_DEPTH = 16
MAX_FIELD_VALUES = 300
"""Values inside one field of the front matter."""

NULL_WORDS = {"~", "null", "Null", "NULL"}
_MAX_COMMAS = 900
NOT_A_FIELD = "is not of the form 'name: value'"

_COLON_PROBLEM = "mapping values are not allowed here"
_FIELD_WITH_COLON = re.compile(r"( *+(?:- +)?[^\s\"'#\[{|>&*!%@`-][^:]*:) +([^\s\"'#\[{|>&*!%@`].*)")
_COMMENT = re.compile(r"\s#.*")
_FRIENDLY = (
    (r"could not find expected ':'|expected <block end>, but found '-'", NOT_A_FIELD),
    (r"expected '<document start>', but found '<block mapping start>'", "is indented less than what comes before it"),
    (r"expected <block end>, but found '<block mapping start>'", "is indented differently from its neighbours"),
    (r"expected <block end>, but found .*", "is not expected here, after the end of a value"),
    (r"found character '\\t' that cannot start any token", "is indented with a tab; use spaces"),
    (r"found character ('.') that cannot start any token", r"has a value that begins with \1; put it in quotes"),
    (r"found unexpected end of stream", "is never closed"),
    (r"expected URI, but found .*", "has a value that begins with '!'; put it in quotes"),
)
"""Frequent problems of PyYAML, in the words of a person who writes front matter."""


class YamlHeadError(ValueError):
    """Raised when the lines cannot be parsed.

    Attributes:
        line: The index of the line, from 0.
    """

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


def parse_yaml_head(lines: Sequence[str]) -> dict[str, FlowValue]:
    """Return the object in the lines between the fences.

    Raises:
        YamlHeadError: It is not an object, not YAML, nested too deep, or has too many values.
    """
    _refuse_many_commas(lines)
    try:
        return _parse_lines(lines)
    except yaml.MarkedYAMLError as error:
        if error.problem != _COLON_PROBLEM:
            raise _describe(error, lines) from None
    try:
        return _parse_lines(_quote_colons(lines))
    except yaml.MarkedYAMLError as error:
        raise _describe(error, lines) from None


def _refuse_many_commas(lines: Sequence[str]) -> None:
    """Raise for lists that no person writes, before PyYAML spends 20 milliseconds on each of them."""
    commas = 0
    for index, line in enumerate(lines):
        commas += line.count(",")
        if commas > _MAX_COMMAS:
            raise YamlHeadError(f"{_excerpt(lines, index)!r} has more than {MAX_FIELD_VALUES} values", index)


def _parse_lines(lines: Sequence[str]) -> dict[str, FlowValue]:
    text = "\n".join(lines)
    try:
        return _HeadBuilder(text, lines).document()
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position)
        raise YamlHeadError(f"{_excerpt(lines, line)!r} has a character that YAML does not allow", line) from None


class _HeadLoader(yaml.SafeLoader):
    """PyYAML's safe loader, which refuses deep brackets before it has looked ahead for their end."""

    def fetch_flow_collection_start(self, token: type[yaml.Token]) -> None:
        if self.flow_level >= MAX_DEPTH:
            raise yaml.MarkedYAMLError(problem="is nested too deep", problem_mark=self.get_mark())
        super().fetch_flow_collection_start(token)


class _HeadBuilder:
    """Builds values from the events of PyYAML's parser, which does not resolve tags or aliases."""

    def __init__(self, text: str, lines: Sequence[str]) -> None:
        self._events = yaml.parse(text, Loader=_HeadLoader)
        self._lines = lines
        self._line = 0
        self._values = 0

    def document(self) -> dict[str, FlowValue]:
        self._next()  # the start of the stream
        if isinstance(self._next(), yaml.StreamEndEvent):
            return {}
        event = self._next()
        if not isinstance(event, yaml.MappingStartEvent):
            raise self._error(NOT_A_FIELD)
        self._refuse_references(event)
        values = self._object(0)
        self._next()  # the end of the document
        if not isinstance(self._next(), yaml.StreamEndEvent):
            raise self._error("comes after the end of the front matter")
        return values

    def _next(self) -> yaml.Event:
        try:
            event = next(self._events)
        except (ValueError, OverflowError):  # chr() of an escape beyond the last character
            raise self._error("has an invalid escape") from None
        self._line = event.start_mark.line if event.start_mark else self._line
        return event

    def _value(self, event: yaml.Event, depth: int) -> FlowValue:
        self._refuse_references(event)
        if depth > MAX_DEPTH:
            raise self._error("is nested too deep")
        self._values += 1
        if self._values > MAX_FIELD_VALUES:
            raise self._error(f"has more than {MAX_FIELD_VALUES} values")
        if isinstance(event, yaml.MappingStartEvent):
            return self._object(depth)
        if isinstance(event, yaml.SequenceStartEvent):
            items: list[FlowValue] = []
            while not isinstance(item := self._next(), yaml.SequenceEndEvent):
                items.append(self._value(item, depth + 1))
            return items
        return _read_scalar(event) if isinstance(event, yaml.ScalarEvent) else ""

    def _object(self, depth: int) -> dict[str, FlowValue]:
        values: dict[str, FlowValue] = {}
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent):
                raise self._error("is not a name")
            self._refuse_references(event)
            name = _read_scalar(event)
            if name in values:
                raise self._error(f"repeats the key {name[:40]!r}")
            if depth == 0:
                self._values = 0
            values[name] = self._value(self._next(), depth + 1)
        return values

    def _refuse_references(self, event: yaml.Event) -> None:
        """Raise for an alias, an anchor or a tag, by which a small file could make a large value."""
        sign = ""
        if isinstance(event, yaml.AliasEvent):
            sign = "*"
        elif isinstance(event, (yaml.ScalarEvent, yaml.CollectionStartEvent)):
            sign = "&" if event.anchor else "!" if event.tag else ""
        if sign:
            raise self._error(f"has a value that begins with {sign!r}; put it in quotes")

    def _error(self, message: str) -> YamlHeadError:
        return YamlHeadError(f"{_excerpt(self._lines, self._line)!r} {message}", self._line)


def _read_scalar(event: yaml.ScalarEvent) -> str:
    if event.style is None:
        return "" if event.value in NULL_WORDS else event.value
    if event.style in "|>":
        return event.value.strip("\n")
    # JSON writes characters beyond 16 bits as surrogate pairs; a lone surrogate could not be encoded later.
    return event.value.replace("\0", "").encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _quote_colons(lines: Sequence[str]) -> list[str]:
    """Return the lines with plain values in quotes where they have a colon, on the same line numbers."""
    quoted = list(lines)
    for at, line in enumerate(lines):
        field = _FIELD_WITH_COLON.fullmatch(line)
        if field is None:
            continue
        indent = len(line) - len(line.lstrip(" "))
        end = at + 1
        while end < len(lines) and lines[end].strip() and _is_below(lines[end], indent):
            end += 1
        value = [_COMMENT.sub("", each).rstrip().replace("'", "''") for each in [field[2], *lines[at + 1 : end]]]
        if any(": " in each or each.endswith(":") for each in value):
            value[0] = f"{field[1]} '{value[0]}"
            value[-1] += "'"
            quoted[at:end] = value
    return quoted


def _is_below(line: str, indent: int) -> bool:
    """Return True if a line continues a plain value whose name is indented so far."""
    return len(line) - len(line.lstrip(" ")) > indent and not line.lstrip().startswith("#")


def _describe(error: yaml.MarkedYAMLError, lines: Sequence[str]) -> YamlHeadError:
    """Return PyYAML's error with the line that it is about, in plain words if it is a frequent one."""
    starts_open = error.context is not None and re.search("flow|quoted|simple key", error.context)
    mark = error.context_mark if starts_open else error.problem_mark
    line = min(mark.line if mark else 0, max(len(lines) - 1, 0))
    problem = error.problem or "is not YAML"
    for form, words in _FRIENDLY:
        problem = re.sub(rf"\A(?:{form})\Z", words, problem)
    return YamlHeadError(f"{_excerpt(lines, line)!r} {problem}", line)


def _excerpt(lines: Sequence[str], line: int) -> str:
    return lines[line].strip()[:40] if line < len(lines) else ""
