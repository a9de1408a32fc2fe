"""JSON pointers and dotted names of settings, and access by them."""

from __future__ import annotations

from functools import lru_cache, reduce
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_MAX_INDEX_DIGITS = 9  # digits


def pointer_to(parent: str, key: str | int) -> str:
    """Return the JSON pointer of a member of `parent`."""
    token = str(key)
    if "~" in token or "/" in token:
        token = token.replace("~", "~0").replace("/", "~1")
    return f"{parent}/{token}"


def join_pointer(tokens: Iterable[str | int]) -> str:
    """Return the JSON pointer of some keys and indexes."""
    return reduce(pointer_to, tokens, "")


def dotted_to_pointer(dotted: str) -> str:
    """Return the JSON pointer of a setting: `/provider/model` for `provider.model`."""
    return join_pointer(dotted.split("."))


def split_pointer(pointer: str) -> list[str]:
    """Return the keys and indexes of a JSON pointer, or raise ValueError if it is not valid."""
    if not pointer:
        return []
    if not pointer.startswith("/") or pointer.count("~") != pointer.count("~0") + pointer.count("~1"):
        raise ValueError(f"not a JSON pointer: {pointer!r}")
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer[1:].split("/")]


def array_index(token: str) -> int | None:
    """Return the array index that a token of a pointer denotes, or None."""
    is_plain = token.isascii() and token.isdecimal() and len(token) < _MAX_INDEX_DIGITS
    return int(token) if is_plain and str(int(token)) == token else None


SERVERS = "mcp_servers"
"""The name of the setting with the MCP servers."""
SERVERS_ALIAS = "mcpServers"
"""The name of that setting in most other tools."""


def has_servers(settings: Mapping[str, object]) -> bool:
    """Return True if the settings of a file have anything about MCP servers."""
    return SERVERS_ALIAS in settings or settings.get(SERVERS, []) != []


def copy_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy in which objects may be changed, but nothing inside lists."""
    return {key: copy_settings(value) if isinstance(value, dict) else value for key, value in settings.items()}


def filter_present_names(settings: Mapping[str, Any], names: Iterable[str]) -> list[str]:
    """Return the names whose first key is in the settings, a fast filter because most settings have none."""
    return [name for name, first in _split_first_words(tuple(names)) if first in settings]


@lru_cache(maxsize=16)
def _split_first_words(names: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Return the names with the first key of each. Cached, because the same few lists are used for every file."""
    return tuple((name, name.partition(".")[0]) for name in names)


def get_setting(settings: Any, name: str) -> Any:  # noqa: ANN401 - any JSON value
    """Return the value of a setting, or None if it is not set or null."""
    return follow_keys(settings, name.split("."))


def follow_keys(settings: Any, keys: Iterable[str]) -> Any:  # noqa: ANN401 - any JSON value
    """Return the value at some keys and indexes, or None if there is none or it is null."""
    for key in keys:
        if isinstance(settings, dict):
            settings = settings.get(key)
        elif isinstance(settings, list):
            index = array_index(key)
            settings = None if index is None or index >= len(settings) else settings[index]
        else:
            return None
    return settings


def has_setting(settings: dict[str, Any], name: str) -> bool:
    """Return True if a setting exists, even with the value null."""
    return name.rpartition(".")[2] in _get_parent(settings, name)


def pop_setting(settings: dict[str, Any], name: str) -> bool:
    """Remove a setting. Return True if it existed."""
    parent, key = _get_parent(settings, name), name.rpartition(".")[2]
    if key not in parent:
        return False
    del parent[key]
    return True


def _get_parent(settings: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the object that would hold a setting, or {} if there is none."""
    path = name.rpartition(".")[0]
    parent = get_setting(settings, path) if path else settings
    return parent if isinstance(parent, dict) else {}
