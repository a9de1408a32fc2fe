"""Changes one server in a file of Nexus, and nothing else in it: comments and layout stay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core import ConfigError, UnknownNameError
from nexus_core.plugin import (
    LayerConfig,
    make_directories,
    normalise_servers,
    pointer_to,
    read_json,
    remove_value,
    set_value,
    write_text_atomically,
)
from nexus_plugins.mcp._files.container import SETTING, find_container
from nexus_plugins.mcp._files.dialects import NEXUS, dialect_of

if TYPE_CHECKING:
    from pathlib import Path

NEW = '{\n  "servers": []\n}\n'
SETTINGS = "config.json"
_ALIAS = "mcpServers"


class ServerFile(NamedTuple):
    """A file with servers.

    Attributes:
        path: The file.
        text: What is in it.
        container: The JSON pointer of what holds the servers.
        is_list: Whether that is a list.
        servers: By name, the pointer of each and what is written about it.
    """

    path: Path
    text: str
    container: str
    is_list: bool
    servers: dict[str, tuple[str, dict[str, Any]]]

    def with_server(self, name: str, entry: dict[str, Any]) -> str:
        """The text with one more server; of one that is there already, with another definition.

        Raises:
            ConfigError: The entry is none that could be loaded again.
        """
        normalise_servers([LayerConfig(self.path, {SETTING: [{"name": name, **entry}]})], [])
        there = self.servers.get(name)
        pointer = there[0] if there else pointer_to(self.container, "-" if self.is_list else name)
        value = {"name": name, **entry} if self.is_list else entry
        return set_value(self.text, pointer, value, comments=self._has_comments)

    def without_server(self, name: str) -> str:
        """The text without one of its servers."""
        return remove_value(self.text, self._entry(name)[0], comments=self._has_comments)

    def switched(self, name: str, *, on: bool) -> str:
        """The text with one of its servers switched on or off."""
        pointer, entry = self._entry(name)
        key, value = ("disabled", not on) if "disabled" in entry else ("enabled", on)  # as it is written there
        return set_value(self.text, pointer_to(pointer, key), value, comments=self._has_comments)

    @property
    def _has_comments(self) -> bool:
        return self.path.name != SETTINGS

    def _entry(self, name: str) -> tuple[str, dict[str, Any]]:
        if name not in self.servers:
            raise UnknownNameError("server", name, self.servers)
        return self.servers[name]


def read_file(path: Path) -> ServerFile:
    """A file of Nexus with its servers; one that is not there has none.

    Raises:
        ConfigError: It is not JSON, or it belongs to another tool.
    """
    dialect = dialect_of(str(path))
    if dialect is not NEXUS:
        raise ConfigError(f"this file belongs to {dialect.tool}", where=str(path), hint="change it there")
    document = read_json(path, comments=path.name != SETTINGS, empty={}, quote=False)
    text = document.lines.text if document is not None and document.lines.text.strip() else NEW
    content: Any = document.value if document is not None and document.value != {} else {"servers": []}
    if not isinstance(content, dict):
        raise ConfigError("the file must hold an object", where=str(path), hint="put { … } around it")
    if path.name == SETTINGS:
        key = _ALIAS if SETTING not in content and _ALIAS in content else SETTING
        held = content.get(key, [])
    else:
        key, held, _ = find_container(content, NEXUS)
    container = f"/{key}" if key else ""
    if document is not None and document.value == {} and text != NEW:  # an object with nothing in it
        text = NEW if not text.strip("{} \t\r\n") else text
    return ServerFile(path, text, container, isinstance(held, list), _servers(held, container))


def write_file(path: Path, text: str, *, own: bool) -> None:
    """Put a text in the place of a file, whole or not at all; nobody gets to read what they could not read before."""
    make_directories(path.parent, mode=0o700 if own else 0o755)
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o600 if own else 0o644
    write_text_atomically(path, text, mode=mode)


def _servers(held: Any, container: str) -> dict[str, tuple[str, dict[str, Any]]]:  # noqa: ANN401 - any JSON value
    if isinstance(held, list):
        entries = [(each.get("name"), n, each) for n, each in enumerate(held) if isinstance(each, dict)]
    else:
        entries = [(name, name, each) for name, each in held.items() if isinstance(each, dict)]
    return {str(name): (pointer_to(container, token), entry) for name, token, entry in entries}
