"""MCP servers: read from `mcp.json` and the files of other tools, shown to the model, their tools offered.

No hook starts a server, connects to one or looks up a reference such as `${TOKEN}`; `nexus mcp` and
`nexus_plugins.mcp.call` do, and only what the user has approved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core import hookimpl
from nexus_core.plugin import MergePolicy, PluginSettings
from nexus_plugins.mcp._files.finding import find_servers

if TYPE_CHECKING:
    from nexus_core import Finding, Request, Section, Tool
    from nexus_core.plugin import Command, InitFile, InitScope, Layer, LayerConfig, Loaded, Skipped


@hookimpl
def nexus_commands() -> list[Command]:
    """`nexus mcp list`, and all the rest."""
    from nexus_core.plugin import Command  # noqa: PLC0415 - a prompt needs no command

    return [Command("mcp", "List MCP servers, try them, use their tools.", "nexus_plugins.mcp._cli:app")]


@hookimpl
def nexus_init_files(scope: InitScope) -> list[InitFile]:
    """An mcp.json without servers."""
    from nexus_plugins.mcp._files.templates import init_files  # noqa: PLC0415 - only `nexus init` needs it

    return init_files(scope)


@hookimpl
def nexus_settings() -> list[PluginSettings]:
    """Whose files are read besides, and time limits; the last are nobody's but the user's."""
    return [PluginSettings("nexus_plugins.mcp._settings:McpSettings", protected=("start_timeout", "call_timeout"))]


@hookimpl
def nexus_merge_policies() -> list[MergePolicy]:
    """Of two servers with one name, the more local definition wins entirely."""
    return [MergePolicy("mcp_servers", "by-name")]


@hookimpl
def nexus_layer_config(layer: Layer, request: Request) -> list[LayerConfig | Skipped]:
    """The servers of a layer as the setting `mcp_servers`, and whatever in their files was not used."""
    return find_servers(layer, request)


@hookimpl
def nexus_static_sections(request: Request, loaded: Loaded) -> list[Section]:
    """The section `## MCP Servers`, a table of what there is and whether it may be used."""
    if not loaded.servers:
        return []
    from nexus_plugins.mcp._telling.table import server_sections  # noqa: PLC0415 - most directories have no servers

    return server_sections(request, loaded)


@hookimpl
def nexus_tools(request: Request, loaded: Loaded) -> list[Tool]:
    """The tools of approved servers, as they are known; nothing is started."""
    if not loaded.servers:
        return []
    from nexus_plugins.mcp._telling.offering import offered_tools  # noqa: PLC0415 - as above

    return [offered.tool for offered in offered_tools(request, loaded)]


@hookimpl
def nexus_diagnose(request: Request, loaded: Loaded) -> list[Finding]:
    """Servers that others could listen to or that hide your own, bad tools, and files that tools read otherwise."""
    from nexus_plugins.mcp._telling.diagnosis import diagnose  # noqa: PLC0415 - only `nexus doctor` asks

    return list(diagnose(request, loaded))
