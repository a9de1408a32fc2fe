"""TOML documents with the line of each key.

Separate, so that `tomllib` is imported only where a TOML file is read.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from datetime import date, datetime, time
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.plugin.settings import pointer_to, setting_error

if TYPE_CHECKING:
    from pathlib import Path

_ERROR_POSITION = re.compile(r"(?<!\s)\s*+\(at (?:line (\d+), column (\d+)|end of document)\)$")
_KEY_PART_PATTERN = r"(?:\"[^\"]*\"|'[^']*'|[A-Za-z0-9_-]+)"
_DOTTED_KEY = rf"{_KEY_PART_PATTERN}(?:[ \t]*\.[ \t]*{_KEY_PART_PATTERN})*"
_TABLE_HEADER = re.compile(rf"\s*\[(\[)?[ \t]*({_DOTTED_KEY})[ \t]*\]")
_MULTILINE_QUOTES = re.compile("\"\"\"|'''")
_ASSIGNED_KEY = re.compile(rf"\s*({_DOTTED_KEY})[ \t]*=")


class TomlDocument(NamedTuple):
    """A parsed TOML file, and the line of each key, by JSON pointer."""

    value: dict[str, Any]
    lines: dict[str, int]

    def position(self, pointer: str) -> tuple[int, int]:
        """Return line and column of the value at a JSON pointer, or of its nearest parent."""
        while pointer and pointer not in self.lines:
            pointer = pointer.rpartition("/")[0]
        return self.lines.get(pointer, 1), 1


def parse_toml(path: Path, text: str) -> TomlDocument:
    """Parse a TOML text.

    Raises:
        ConfigError: The text is not TOML. No line of it is shown, because any of them may hold a password.
    """
    text = text.replace("\r\n", "\n")
    try:
        value = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        match = _ERROR_POSITION.search(str(error))
        line, column = (int(match[1]), int(match[2])) if match and match[1] else (text.count("\n") + 1, 1)
        raise setting_error(
            path,
            None,
            (line, column),
            title=f"Invalid TOML in {path}",
            message="this is not TOML",  # Python's message may repeat a value
            closing="Fix the TOML syntax error and try again.",
        ) from None
    plain = _to_json_types(value)
    return TomlDocument(plain, _find_key_lines(text, plain))


def _find_key_lines(text: str, value: dict[str, Any]) -> dict[str, int]:
    """Return the line of each key that starts a line, by JSON pointer."""
    lines: dict[str, int] = {}
    tables: Counter[str] = Counter()
    table = quotes = ""
    for number, written in enumerate(text.split("\n"), start=1):
        was_inside = bool(quotes)  # in a multi-line string, whose lines may look like keys
        for each in _MULTILINE_QUOTES.findall(written):
            quotes = each if not quotes else "" if each == quotes else quotes
        if was_inside:
            continue
        header, key = _TABLE_HEADER.match(written), _ASSIGNED_KEY.match(written)
        if header:
            table = _build_pointer("", header[2])
            if header[1]:  # `[[name]]` appends to an array of tables
                tables[table] += 1
                table = pointer_to(table, tables[table] - 1)
        found = table if header else _build_pointer(table, key[1]) if key else ""
        while found and found not in lines and _has_value(value, found):
            lines[found] = number
            found = found.rpartition("/")[0]
    return lines


def _build_pointer(table: str, path: str) -> str:
    for word in re.findall(_KEY_PART_PATTERN, path):
        table = pointer_to(table, word[1:-1] if word[0] in "\"'" else word)
    return table


def _has_value(value: Any, pointer: str) -> bool:  # noqa: ANN401 - any JSON value
    for token in pointer[1:].split("/"):
        name = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        elif isinstance(value, dict) and name in value:
            value = value[name]
        else:
            return False
    return True


def _to_json_types(value: Any) -> Any:  # noqa: ANN401 - any TOML value
    if isinstance(value, dict):
        return {key: _to_json_types(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_to_json_types(item) for item in value]
    return value.isoformat() if isinstance(value, date | datetime | time) else value
