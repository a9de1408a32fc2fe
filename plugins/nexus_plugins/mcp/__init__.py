"""MCP servers as a layer names them: `mcp.json`, in any of the shapes that other tools have made common.

Nothing is started or connected here, and no reference such as `${TOKEN}` is resolved.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from nexus_core import Section, hookimpl
from nexus_core.plugin import MergePolicy, PluginSettings, Skipped, file_in
from nexus_plugins.mcp._wanted import wanted_names

if TYPE_CHECKING:
    from nexus_core import Finding, Request, Tool
    from nexus_core.plugin import Command, InitFile, InitScope, Layer, LayerConfig, Loaded

FILE = "mcp.json"
ORDER = 800


@hookimpl
def nexus_commands() -> list[Command]:
    """`nexus mcp list`, and all the rest."""
    from nexus_core.plugin import Command  # noqa: PLC0415 - a prompt needs no command

    return [Command("mcp", "List MCP servers, try them, use their tools.", "nexus_plugins.mcp._cli:app")]


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
def nexus_settings() -> list[PluginSettings]:
    """Whose files are read besides, and time limits; the last are nobody's but the user's."""
    return [PluginSettings("nexus_plugins.mcp._settings:McpSettings", protected=("start_timeout", "call_timeout"))]


@hookimpl
def nexus_layer_config(layer: Layer, request: Request) -> list[LayerConfig | Skipped]:
    """The servers in the layer's mcp.json as the setting `mcp_servers`, and whatever in the file was not used.

    Before it, those in the files of other tools, if the settings say so.
    """
    if layer.only_rules or layer.scope == "defaults":  # the defaults have no servers
        return []
    found: list[LayerConfig | Skipped] = []
    if layer.scope != "global" and (names := wanted_names(layer, request)):
        from nexus_plugins.mcp._reader import read_other_tools  # noqa: PLC0415 - few read them

        found += read_other_tools(layer, names)
    path = file_in(layer.directory, FILE)
    if not os.path.lexists(path):
        return [*found, Skipped(path, "not there")]
    from nexus_plugins.mcp._reader import read_layer  # noqa: PLC0415 - most layers have no such file

    return [*found, *read_layer(layer)]


@hookimpl
def nexus_static_sections(request: Request, loaded: Loaded) -> list[Section]:
    """The section `## MCP Servers`, a table of what there is and whether it may be used."""
    if not loaded.servers:
        return []
    from nexus_plugins.mcp._table import server_table, usable_servers  # noqa: PLC0415 - as above

    servers = usable_servers(request, loaded)
    return [Section("mcp-servers", title="MCP Servers", text=server_table(servers), order=ORDER)] if servers else []


@hookimpl
def nexus_tools(request: Request, loaded: Loaded) -> list[Tool]:
    """The tools of approved servers, as they are known; nothing is started."""
    if not loaded.servers:
        return []
    from nexus_plugins.mcp._offering import offered_tools  # noqa: PLC0415 - as above

    return [offered.tool for offered in offered_tools(request, loaded)]


@hookimpl
def nexus_diagnose(loaded: Loaded) -> list[Finding]:
    """Servers that others could listen to, and files that the tool they are for reads otherwise than Nexus."""
    if not loaded.servers:
        return []
    from nexus_plugins.mcp._diagnosis import diagnose  # noqa: PLC0415 - only `nexus doctor` asks

    return list(diagnose(loaded))
