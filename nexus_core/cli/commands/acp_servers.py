"""MCP servers that an editor passes to `nexus acp` with a session."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from nexus_core.config.pointers import SERVERS
from nexus_core.hookspecs import hookimpl
from nexus_core.types.layers import LayerConfig

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nexus_core.types.layers import Layer
    from nexus_core.types.mcp import MCPServerWithOrigin
    from nexus_core.types.request import Request

FILE_PREFIX = "editor-"
"""Of the name under which the servers of an editor are listed. There is no such file: they are kept in memory."""


class EditorServers:
    """A plugin that adds the servers of an editor to the user's own layer, for one Nexus.

    The user has configured them in the editor, so they count as the user's own. A server of the project or of mcp.json
    that has the same name is neither replaced nor started in its place.

    Attributes:
        names: The names of the servers.

    Args:
        definitions: The servers, in the format of mcp.json.
    """

    def __init__(self, definitions: Sequence[dict[str, Any]]) -> None:
        self.names = tuple(str(each["name"]) for each in definitions)
        self._definitions = list(definitions)
        # Approved tools are kept by this name: another definition under the same name is another server.
        digest = sha256(json.dumps(self._definitions, sort_keys=True).encode()).hexdigest()[:16]
        self._file = f"{FILE_PREFIX}{digest}.json"

    @hookimpl
    def nexus_layer_config(self, layer: Layer, request: Request) -> list[LayerConfig]:
        """Return the servers as settings of the user's own layer."""
        # Without a global layer the defaults take its place; a home that is part of a project is not the user's.
        if not layer.is_own:
            return []
        return [LayerConfig(path=request.home / self._file, settings={SERVERS: list(self._definitions)})]

    def is_own(self, server: MCPServerWithOrigin) -> bool:
        """True if a loaded server is one of these, not another of the same name."""
        return server.source_path.name == self._file


def read_editor_servers(servers: Iterable[Any]) -> tuple[list[dict[str, Any]], list[str]]:
    """Return servers of the protocol in the format of mcp.json, and the names of those that cannot be used.

    Args:
        servers: Servers as the official package has parsed them.
    """
    found: list[dict[str, Any]] = []
    unusable: list[str] = []
    for each in servers:
        if getattr(each, "command", None):
            env = {variable.name: variable.value for variable in each.env}
            found.append({"name": each.name, "command": [each.command, *each.args], "env": env})
        elif getattr(each, "url", None):
            headers = {header.name: header.value for header in each.headers}
            found.append({"name": each.name, "type": each.type, "url": each.url, "headers": headers})
        else:
            unusable.append(str(getattr(each, "name", "")))
    return found, unusable
