"""MCP servers as a layer names them: `mcp.json`, in any of the shapes that other tools have made common.

Nothing is started or connected here, and no reference such as `${TOKEN}` is resolved.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from nexus_core import Section, hookimpl
from nexus_core.plugin import MergePolicy, Skipped, file_in

if TYPE_CHECKING:
    from nexus_core import Finding
    from nexus_core.plugin import InitFile, InitScope, Layer, LayerConfig, Loaded

FILE = "mcp.json"
ORDER = 800


@hookimpl
def nexus_init_files(scope: InitScope) -> list[InitFile]:
    """An mcp.json without servers."""
    from nexus_plugins.mcp._templates import init_files  # noqa: PLC0415 - only `nexus init` needs it

    return init_files(scope)


@hookimpl
def nexus_merge_policies() -> list[MergePolicy]:
    """Of two servers with one name, the more local definition wins entirely."""
    return [MergePolicy("mcp_servers", "by-name")]


@hookimpl
def nexus_layer_config(layer: Layer) -> list[LayerConfig | Skipped]:
    """The servers in the layer's mcp.json as the setting `mcp_servers`, and whatever in the file was not used."""
    if layer.only_rules or layer.scope == "defaults":  # the defaults have no servers
        return []
    path = file_in(layer.directory, FILE)
    if not os.path.lexists(path):
        return [Skipped(path, "not there")]
    from nexus_plugins.mcp._reader import read_layer  # noqa: PLC0415 - most layers have no such file

    return read_layer(layer)


@hookimpl
def nexus_static_sections(loaded: Loaded) -> list[Section]:
    """The section `## MCP Servers`, a table of what there is and whether it may be used."""
    if not loaded.servers:
        return []
    from nexus_plugins.mcp._table import server_table  # noqa: PLC0415 - as above

    return [Section("mcp-servers", title="MCP Servers", text=server_table(loaded.servers), order=ORDER)]


@hookimpl
def nexus_diagnose(loaded: Loaded) -> list[Finding]:
    """Servers that everybody on the network between here and there could read along with."""
    from nexus_core import Finding  # noqa: PLC0415 - only `nexus doctor` asks
    from nexus_plugins.mcp._table import is_plain_http  # noqa: PLC0415 - as above

    return [
        Finding(
            "plain-http",
            f"server {server.config.name!r} is reached without encryption",
            server.source_path,
            server.line,
        )
        for server in loaded.servers
        if server.config.enabled and is_plain_http(server.config.url)
    ]
