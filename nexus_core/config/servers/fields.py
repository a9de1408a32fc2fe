"""The fields of an MCP server: the names they go by in the files of different tools, and what their values may be.

What is said about a field names it and its server, never its value, because a value may be a password.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core.config.pointers import pointer_to
from nexus_core.config.servers.unheeded import ASKING

if TYPE_CHECKING:
    from collections.abc import Callable

_KINDS = {dict: "an object", list: "a list", str: "text", bool: "true or false", int: "a number", float: "a number"}
_TYPES = {
    "stdio": "stdio",
    "local": "stdio",
    "http": "http",
    "remote": "http",
    "streamablehttp": "http",
    "sse": "sse",
}
_LONGEST_NAME = 60  # characters of a name that a message repeats
_ALL = "*"  # instead of the names of tools
LONGEST_WAIT = 24 * 3600
"""Seconds; whoever says more does not mean a limit."""
_BEYOND = 10**12


class ShapeError(Exception):
    """Raised when something cannot be meant; says where (a JSON pointer), what is wrong and what to do."""

    def __init__(self, pointer: str, what: str, advice: str = "Correct the setting") -> None:
        super().__init__(what)
        self.pointer = pointer
        self.what = what
        self.advice = advice


class PassedOver(Exception):  # noqa: N818 - no error: something is not used, and this says why
    """Raised when a value is none to use although nothing is wrong with the server."""


def quoted(name: str) -> str:
    """A name from a file as messages show it: in quotes, in one line, not too long."""
    return repr(name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…")


def kind(value: object) -> str:
    """What sort of value it is, in words."""
    return _KINDS.get(type(value), "null")


# ---- values: each function gets what is written, what to call it, and where it stands ---------------------


def _text(value: object, what: str, place: str) -> str:
    if not isinstance(value, str):
        raise ShapeError(place, f"{what} must be text, not {kind(value)}")
    return value


def _word(value: object, what: str, place: str) -> str:
    # Ports and switches are often written as numbers and booleans; a program gets them as JSON spells them.
    if isinstance(value, bool | int | float):
        return str(value).lower()
    return _text(value, what, place)


def _words(value: object, what: str, place: str) -> list[str]:
    if not isinstance(value, list):
        raise ShapeError(place, f"{what} must be a list, not {kind(value)}")
    return [_word(item, f"item {n} in {what}", pointer_to(place, n - 1)) for n, item in enumerate(value, start=1)]


def _command(value: object, what: str, place: str) -> list[str]:
    # Text is the name of one program, blanks and all: to split it would be to guess at the rules of a shell.
    if isinstance(value, str):
        return [value] if value.strip() else []
    if not isinstance(value, list):
        raise ShapeError(place, f"{what} must be a list or text, not {kind(value)}")
    words = _words(value, what, place)
    return words if words and words[0].strip() else []


def _address(value: object, what: str, place: str) -> str:
    return _text(value, what, place).strip()


def _table(value: object, what: str, place: str) -> dict[str, str]:
    if not isinstance(value, dict):
        raise ShapeError(place, f"{what} must be an object, not {kind(value)}")
    written = ((name, each) for name, each in value.items() if each is not None)
    return {name: _word(each, f"{quoted(name)} in {what}", pointer_to(place, name)) for name, each in written}


def _flag(value: object, what: str, place: str) -> bool:
    if not isinstance(value, bool):
        raise ShapeError(place, f"{what} must be true or false, not {kind(value)}")
    return value


def _opposite(value: object, what: str, place: str) -> bool:
    return not _flag(value, what, place)


def _type(value: object, what: str, place: str) -> str:
    # `streamable-http`, `streamableHttp` and `streamable_http` are all in use.
    word = _text(value, what, place).lower().replace("-", "").replace("_", "")
    if word not in _TYPES:
        raise ShapeError(place, f"{what} is not a known type", "Write stdio, http or sse")
    return _TYPES[word]


def _names(value: object, what: str, place: str) -> list[str]:
    if not isinstance(value, list):
        raise ShapeError(place, f"{what} must be a list, not {kind(value)}")
    return [_text(item, f"item {n} in {what}", pointer_to(place, n - 1)) for n, item in enumerate(value, start=1)]


def _chosen(value: object, what: str, place: str) -> list[str]:
    # As Copilot writes it; Codex has under this name what may be done without a question.
    if isinstance(value, dict):
        raise PassedOver(ASKING)
    names = _names(value, what, place)
    if _ALL in names:
        raise PassedOver("all tools are offered anyway")
    return names


def _number(value: object, what: str, place: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ShapeError(place, f"{what} must be a number, not {kind(value)}")
    return min(value, _BEYOND)  # an integer may be larger than any float


def _seconds(value: object, what: str, place: str) -> float:
    seconds = _number(value, what, place)
    if not 0 < seconds <= LONGEST_WAIT:
        raise PassedOver(f"it must be above 0 and at most {LONGEST_WAIT:,} seconds")
    return seconds


def _milliseconds(value: object, what: str, place: str) -> float:
    # Some tools mean seconds by the same word: less than one second is what nobody means.
    seconds = _number(value, what, place) / 1000
    if not 1 <= seconds <= LONGEST_WAIT:
        raise PassedOver(f"it is in milliseconds, and must be 1,000 to {LONGEST_WAIT * 1000:,}")
    return seconds


FIELDS: dict[str, tuple[str, Callable[[object, str, str], Any]]] = {
    "name": ("name", _text),
    "type": ("type", _type),
    "transport": ("type", _type),
    "command": ("command", _command),
    "args": ("args", _words),
    "url": ("url", _address),
    "httpUrl": ("url", _address),
    "serverUrl": ("url", _address),
    "env": ("env", _table),
    "environment": ("env", _table),
    "headers": ("headers", _table),
    "http_headers": ("headers", _table),
    "cwd": ("cwd", _text),
    "env_file": ("env_file", _text),
    "envFile": ("env_file", _text),
    "env_passthrough": ("env_passthrough", _names),
    "env_vars": ("env_passthrough", _names),
    "include_tools": ("include_tools", _names),
    "includeTools": ("include_tools", _names),
    "enabled_tools": ("include_tools", _names),
    "enabledTools": ("include_tools", _names),
    "tools": ("include_tools", _chosen),
    "exclude_tools": ("exclude_tools", _names),
    "excludeTools": ("exclude_tools", _names),
    "disabled_tools": ("exclude_tools", _names),
    "disabledTools": ("exclude_tools", _names),
    "start_timeout": ("start_timeout", _seconds),
    "startup_timeout_sec": ("start_timeout", _seconds),
    "startup_timeout_ms": ("start_timeout", _milliseconds),
    "call_timeout": ("call_timeout", _seconds),
    "tool_timeout_sec": ("call_timeout", _seconds),
    "timeout": ("call_timeout", _milliseconds),
    "enabled": ("enabled", _flag),
    "disabled": ("enabled", _opposite),
}
"""By the name in a file: the name in Nexus, and what makes the value of it."""
