"""Reads a TOML file so that an error and a server know their lines."""

from __future__ import annotations

import re
import tomllib
from datetime import date, datetime, time
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.plugin import setting_error

if TYPE_CHECKING:
    from pathlib import Path

_AT = re.compile(r"\s*\(at (?:line (\d+), column (\d+)|end of document)\)$")
_HEADER = re.compile(r"\s*\[\s*mcp_servers\s*\.\s*(?:\"([^\"]*)\"|'([^']*)'|([A-Za-z0-9_-]+))")


class TomlDocument(NamedTuple):
    """What a file holds, and in which line each of its servers begins."""

    value: dict[str, Any]
    lines: dict[str, int]

    def position(self, pointer: str) -> tuple[int, int]:
        """Line and column of the server that a JSON pointer leads to; of the whole otherwise."""
        name = pointer.removeprefix("/mcp_servers/").split("/")[0].replace("~1", "/").replace("~0", "~")
        return self.lines.get(name, 1), 1


def parse_toml(path: Path, text: str) -> TomlDocument:
    """The document in a text.

    Raises:
        ConfigError: It is not TOML. No line of it is shown, because any of them may hold a password.
    """
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
    lines: dict[str, int] = {}
    for number, written in enumerate(text.splitlines(), start=1):
        if match := _HEADER.match(written):
            lines.setdefault(next(name for name in match.groups() if name is not None), number)
    return TomlDocument(_as_json(value), lines)


def _as_json(value: Any) -> Any:  # noqa: ANN401 - any TOML value
    if isinstance(value, dict):
        return {key: _as_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_as_json(item) for item in value]
    return value.isoformat() if isinstance(value, date | datetime | time) else value
