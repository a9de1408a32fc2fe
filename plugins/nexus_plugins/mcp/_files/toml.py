"""Reads a TOML file so that an error and a server know their lines."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from datetime import date, datetime, time
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.plugin import pointer_to, setting_error

if TYPE_CHECKING:
    from pathlib import Path

_AT = re.compile(r"\s*\(at (?:line (\d+), column (\d+)|end of document)\)$")
_WORD = r"(?:\"[^\"]*\"|'[^']*'|[A-Za-z0-9_-]+)"
_PATH = rf"{_WORD}(?:[ \t]*\.[ \t]*{_WORD})*"
_HEADER = re.compile(rf"\s*\[(\[)?[ \t]*({_PATH})[ \t]*\]")
_QUOTES = re.compile("\"\"\"|'''")
_KEY = re.compile(rf"\s*({_PATH})[ \t]*=")


class TomlDocument(NamedTuple):
    """What a file holds, and by JSON pointer, in which line the keys in it stand."""

    value: dict[str, Any]
    lines: dict[str, int]

    def position(self, pointer: str) -> tuple[int, int]:
        """Line and column of what a JSON pointer leads to, or of what it should be in."""
        while pointer and pointer not in self.lines:
            pointer = pointer.rpartition("/")[0]
        return self.lines.get(pointer, 1), 1


def parse_toml(path: Path, text: str) -> TomlDocument:
    """The document in a text.

    Raises:
        ConfigError: It is not TOML. No line of it is shown, because any of them may hold a password.
    """
    text = text.replace("\r\n", "\n")
    try:
        value = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        match = _AT.search(str(error))
        line, column = (int(match[1]), int(match[2])) if match and match[1] else (text.count("\n") + 1, 1)
        raise setting_error(
            path,
            None,
            (line, column),
            title=f"Invalid TOML in {path}",
            message="this is not TOML",  # what Python says of it may repeat a value
            closing="Fix the TOML syntax error and try again.",
        ) from None
    plain = _as_json(value)
    return TomlDocument(plain, _lines(text, plain))


def _lines(text: str, value: dict[str, Any]) -> dict[str, int]:
    """The lines of all keys that begin one."""
    lines: dict[str, int] = {}
    tables: Counter[str] = Counter()
    table = quotes = ""
    for number, written in enumerate(text.split("\n"), start=1):
        was_inside = bool(quotes)  # of a text of several lines, where something may look like a key
        for each in _QUOTES.findall(written):
            quotes = each if not quotes else "" if each == quotes else quotes
        if was_inside:
            continue
        header, key = _HEADER.match(written), _KEY.match(written)
        if header:
            table = _pointer("", header[2])
            if header[1]:  # one more of a list of tables
                tables[table] += 1
                table = pointer_to(table, tables[table] - 1)
        found = table if header else _pointer(table, key[1]) if key else ""
        while found and found not in lines and _is_there(value, found):
            lines[found] = number
            found = found.rpartition("/")[0]
    return lines


def _pointer(table: str, path: str) -> str:
    for word in re.findall(_WORD, path):
        table = pointer_to(table, word[1:-1] if word[0] in "\"'" else word)
    return table


def _is_there(value: Any, pointer: str) -> bool:  # noqa: ANN401 - any JSON value
    for token in pointer[1:].split("/"):
        name = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        elif isinstance(value, dict) and name in value:
            value = value[name]
        else:
            return False
    return True


def _as_json(value: Any) -> Any:  # noqa: ANN401 - any TOML value
    if isinstance(value, dict):
        return {key: _as_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_as_json(item) for item in value]
    return value.isoformat() if isinstance(value, date | datetime | time) else value
