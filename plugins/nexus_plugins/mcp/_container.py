"""What in an mcp.json holds the servers: `mcpServers`, `servers`, or the whole file with nothing around them."""

from __future__ import annotations

from typing import Any, NamedTuple

SETTING = "mcp_servers"
NAMES = ("mcpServers", "servers", SETTING)
"""Where several hold servers, the first one counts."""
LONGEST_NAME = 60  # characters of a key that a message repeats


class Container(NamedTuple):
    """What holds the servers by its key ("" is the whole), what is in it, and by key, why anything else is not used."""

    key: str
    servers: Any
    unused: dict[str, str]


def find_container(content: dict[str, Any]) -> Container:
    """What holds the servers in a whole document."""
    held = [name for name in NAMES if name in content]
    if not held:
        return Container("", content, {})
    chosen = next((name for name in held if content[name]), held[0])
    unused: dict[str, str] = {}
    for key, value in content.items():
        if key not in held and not key.startswith("_") and key != "$schema":
            unused[key] = f"unknown key {key if len(key) <= LONGEST_NAME else key[:LONGEST_NAME] + '…'!r}"
        elif key in held and key != chosen and value:
            unused[key] = f"{key!r} is not read, because {chosen!r} has servers"
    return Container(chosen, content[chosen], unused)
