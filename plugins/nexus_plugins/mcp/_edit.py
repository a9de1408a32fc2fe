"""Edits of one server in a file of Nexus that keep comments and layout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core import ConfigError, UnknownNameError
from nexus_core.plugin import LayerConfig, read_json
from nexus_core.plugin.files import make_directories, write_text_atomically
from nexus_core.plugin.settings import normalize_servers, pointer_to, remove_value, set_value
from nexus_plugins.mcp._files import NEXUS_FORMAT, SERVERS_SETTING, detect_format, find_container

if TYPE_CHECKING:
    from pathlib import Path

EMPTY_FILE = '{\n  "servers": []\n}\n'
SETTINGS_FILE = "config.json"
_SETTING_ALIAS = "mcpServers"


class ServerDefinitionFile(NamedTuple):
    """A file with server definitions.

    Attributes:
        path: The file.
        text: Its content.
        container: The JSON pointer of the list or object that holds the servers.
        is_list: True if the container is a list.
        servers: The JSON pointer and the definition of each server, by name.
    """

    path: Path
    text: str
    container: str
    is_list: bool
    servers: dict[str, tuple[str, dict[str, Any]]]

    def with_server(self, name: str, entry: dict[str, Any]) -> str:
        """Return the text with a server added or replaced.

        Raises:
            ConfigError: The definition is invalid, so that it could not be loaded again.
        """
        normalize_servers([LayerConfig(self.path, {SERVERS_SETTING: [{"name": name, **entry}]})], [])
        existing = self.servers.get(name)
        pointer = existing[0] if existing else pointer_to(self.container, "-" if self.is_list else name)
        value = {"name": name, **entry} if self.is_list else entry
        return set_value(self.text, pointer, value, comments=self._has_comments)

    def without_server(self, name: str) -> str:
        """Return the text without one of its servers."""
        return remove_value(self.text, self._entry(name)[0], comments=self._has_comments)

    def with_enabled(self, name: str, *, on: bool) -> str:
        """Return the text with one of its servers enabled or disabled."""
        pointer, entry = self._entry(name)
        key, value = ("disabled", not on) if "disabled" in entry else ("enabled", on)  # the key that the file uses
        return set_value(self.text, pointer_to(pointer, key), value, comments=self._has_comments)

    @property
    def _has_comments(self) -> bool:
        return self.path.name != SETTINGS_FILE

    def _entry(self, name: str) -> tuple[str, dict[str, Any]]:
        if name not in self.servers:
            raise UnknownNameError("server", name, self.servers)
        return self.servers[name]


def read_server_file(path: Path) -> ServerDefinitionFile:
    """Read a server file of Nexus. A missing file has no servers.

    Raises:
        ConfigError: The file is not JSON, or belongs to another tool.
    """
    dialect = detect_format(str(path))
    if dialect is not NEXUS_FORMAT:
        raise ConfigError(f"this file belongs to {dialect.tool}", where=str(path), hint="change it there")
    document = read_json(path, comments=path.name != SETTINGS_FILE, empty={}, quote=False)
    text = document.lines.text if document is not None and document.lines.text.strip() else EMPTY_FILE
    content: Any = document.value if document is not None and document.value != {} else {"servers": []}
    if not isinstance(content, dict):
        raise ConfigError("the file must hold an object", where=str(path), hint="put { … } around it")
    if path.name == SETTINGS_FILE:
        key = _SETTING_ALIAS if SERVERS_SETTING not in content and _SETTING_ALIAS in content else SERVERS_SETTING
        servers = content.get(key, [])
    else:
        key, servers, _ = find_container(content, NEXUS_FORMAT)
    container = f"/{key}" if key else ""
    if document is not None and document.value == {} and text != EMPTY_FILE:  # an object with nothing in it
        text = EMPTY_FILE if not text.strip("{} \t\r\n") else text
    return ServerDefinitionFile(path, text, container, isinstance(servers, list), _index_servers(servers, container))


def write_server_file(path: Path, text: str, *, own: bool) -> None:
    """Write a server file atomically. It keeps its permissions, and a new one of the user is private (0600)."""
    make_directories(path.parent, mode=0o700 if own else 0o755)
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o600 if own else 0o644
    write_text_atomically(path, text, mode=mode)


def _index_servers(servers: Any, container: str) -> dict[str, tuple[str, dict[str, Any]]]:  # noqa: ANN401 - any JSON value
    if isinstance(servers, list):
        entries = [(each.get("name"), n, each) for n, each in enumerate(servers) if isinstance(each, dict)]
    else:
        entries = [(name, name, each) for name, each in servers.items() if isinstance(each, dict)]
    return {str(name): (pointer_to(container, token), entry) for name, token, entry in entries}
