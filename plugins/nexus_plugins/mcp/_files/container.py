"""What in a file holds the servers: `mcpServers`, `servers`, or the whole file with nothing around them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from nexus_plugins.mcp._files.dialects import Dialect

SETTING = "mcp_servers"
NAMES = ("mcpServers", "servers", SETTING)
"""Where several hold servers, the first one counts."""
LONGEST_NAME = 60  # characters of a key that a message repeats

_TARGETS = frozenset({"command", "url", "httpUrl", "serverUrl", "transport"})
# Files that hold all the settings of a tool: whatever is not about servers is none of Nexus's business.
_WHOLE_SETTINGS = frozenset({"claude-home", "codex", "gemini", "opencode"})


class Container(NamedTuple):
    """What holds the servers by its key ("" is the whole), what is in it, and by key, why anything else is not used."""

    key: str
    servers: Any
    unused: dict[str, str]


def find_container(content: dict[str, Any], dialect: Dialect) -> Container:
    """What holds the servers in a whole document."""
    if dialect.name in _WHOLE_SETTINGS:
        servers = content.get(dialect.container, {})
        if dialect.name == "opencode" and _is_nested(servers):
            return Container(f"{dialect.container}/servers", servers["servers"], {})
        return Container(dialect.container, servers, {})
    held = [name for name in NAMES if name in content]
    if not held:
        return Container("", content, {})
    chosen = next((name for name in held if content[name]), held[0])
    unused: dict[str, str] = {}
    for key, value in content.items():
        if key not in held and not _is_known(key, dialect):
            unused[key] = f"unknown key {key if len(key) <= LONGEST_NAME else key[:LONGEST_NAME] + '…'!r}"
        elif key in held and key != chosen and value:
            unused[key] = f"{key!r} is not read, because {chosen!r} has servers"
    return Container(chosen, content[chosen], unused)


def is_something_else(content: dict[str, Any]) -> bool:
    """Whether a document without a key for servers is not about servers at all, but say the settings of an editor."""
    values = [value for key, value in content.items() if not key.startswith("_") and key != "$schema"]
    looks = any(isinstance(each, dict) and not _TARGETS.isdisjoint(each) for each in values)
    return len(values) > 1 and not looks and not all(isinstance(each, dict) for each in values)


def _is_nested(servers: Any) -> bool:  # noqa: ANN401 - any JSON value
    """Whether opencode 2 wrote it, which has them one level deeper; before, a server could be called `servers`."""
    inner = servers.get("servers") if isinstance(servers, dict) else None
    return isinstance(inner, dict) and not {"command", "url", "enabled"} & inner.keys()


def _is_known(key: str, dialect: Dialect) -> bool:
    return key.startswith("_") or key == "$schema" or (key == "inputs" and dialect.name == "vscode")
