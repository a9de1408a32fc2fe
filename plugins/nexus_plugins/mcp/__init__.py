"""MCP servers: their definitions, the prompt section about them, and their tools.

call.py             runs server tools in a program's agent loop (public)
_files.py           definitions of servers in files: formats, containers, reader
_other_tools.py     definitions of Codex, Gemini CLI and opencode, converted to those of Nexus
_toml.py            TOML documents with the line of each key
_references.py      references such as `${TOKEN}` in definitions
_edit.py            edits of mcp.json that keep comments and layout
_export.py          definitions in the format of another tool
_section.py         prompt section and warnings about servers
_tools.py           catalogs of server tools: stored, approved, offered to models
_tool_arguments.py  arguments of a tool, in a list for people
_diagnosis.py       findings of `nexus doctor`
_launch.py          command, environment and address of a server, once it may be started
_oauth.py           signing in to servers (OAuth), and the tokens that are stored
_transport.py       stdio and HTTP transports to servers
_connections.py     running servers: started on demand, ended together
_server.py          Nexus as an MCP server
_server_stdio.py    stdio transport of that server
_errors.py          errors of servers
_settings.py        settings under `plugins.mcp`
_cli.py             the commands `nexus mcp …`

No hook starts a server, connects to one or looks up a reference such as `${TOKEN}`; `nexus mcp` and
`nexus_plugins.mcp.call` do, and only what the user has approved.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from nexus_core import hookimpl
from nexus_core.plugin import MergePolicy, PluginSettings, SkippedFile
from nexus_core.plugin.files import file_in

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from nexus_core import Finding, Nexus, Request, Section, Tool
    from nexus_core.plugin import Command, InitFile, Layer, LayerConfig, LoadedLayers, Toolset
    from nexus_plugins.mcp.call import Servers


@hookimpl
def nexus_commands() -> list[Command]:
    """Return the command group `nexus mcp`."""
    from nexus_core.plugin import Command

    return [Command("mcp", "Manage MCP servers and call their tools.", "nexus_plugins.mcp._cli:app")]


@hookimpl
def nexus_init_files() -> list[InitFile]:
    """Return an mcp.json without servers."""
    from nexus_core.plugin import InitFile
    from nexus_core.plugin.files import defaults_directory

    return [InitFile(SERVERS_FILE, (defaults_directory() / SERVERS_FILE).read_text(encoding="utf-8"))]


@hookimpl
def nexus_settings() -> list[PluginSettings]:
    """Declare the settings under `plugins.mcp`. Only the user may set the timeouts."""
    return [PluginSettings("nexus_plugins.mcp._settings:McpSettings", protected=("start_timeout", "call_timeout"))]


@hookimpl
def nexus_merge_policies() -> list[MergePolicy]:
    """Merge servers by name. The more local of two definitions replaces the other entirely."""
    return [MergePolicy("mcp_servers", "by-name")]


@hookimpl
def nexus_layer_config(layer: Layer, request: Request) -> list[LayerConfig | SkippedFile]:
    """Return the servers of a layer as the setting `mcp_servers`, and what was skipped in their files."""
    return find_servers(layer, request)


@hookimpl
def nexus_static_sections(request: Request, loaded: LoadedLayers) -> list[Section]:
    """Return the section `## MCP Servers`: the servers, and whether each may be used."""
    if not loaded.servers:
        return []
    from nexus_plugins.mcp._section import build_server_sections

    return build_server_sections(request, loaded)


@hookimpl
def nexus_tools(request: Request, loaded: LoadedLayers) -> list[Tool]:
    """Return the tools of approved servers from their stored catalogs. No server is started."""
    if not loaded.servers:
        return []
    from nexus_plugins.mcp._tools import find_offered_tools

    return [offered.tool for offered in find_offered_tools(request, loaded)]


@hookimpl
def nexus_toolsets() -> list[Toolset]:
    """Return the tools of servers. A server is started when one of its tools is first called."""
    from nexus_core.plugin import Toolset

    return [Toolset("mcp", open=_open_servers)]


def _open_servers(nexus: Nexus) -> AbstractContextManager[Servers]:
    from nexus_plugins.mcp.call import connect

    return connect(nexus)


@hookimpl
def nexus_diagnose(request: Request, loaded: LoadedLayers) -> list[Finding]:
    """Report servers without encryption, shadowed servers, secrets in arguments, and unusable tools."""
    from nexus_plugins.mcp._diagnosis import diagnose_servers

    return list(diagnose_servers(request, loaded))


SERVERS_FILE = "mcp.json"


def find_servers(layer: Layer, request: Request) -> list[LayerConfig | SkippedFile]:
    """Return the servers of a layer's files, those of other tools first, so that mcp.json overrides them."""
    if layer.only_rules or layer.scope == "defaults":  # the defaults have no servers
        return []
    found: list[LayerConfig | SkippedFile] = []
    if layer.scope != "global" and (names := _get_other_tool_names(request)):
        from nexus_plugins.mcp._files import read_other_tools

        found += read_other_tools(layer, names)
    path = file_in(layer.directory, SERVERS_FILE)
    if not os.path.lexists(path):
        return [*found, SkippedFile(path, "not there")]
    from nexus_plugins.mcp._files import read_layer_servers

    return [*found, *read_layer_servers(layer)]


def _get_other_tool_names(request: Request) -> frozenset[str]:
    """Return the tools named in `plugins.mcp.read`. Invalid values are ignored: validation reports them."""
    names: set[str] = set()
    for table in request.plugin_tables:
        settings = table.get("mcp")
        wanted = settings.get("read") if isinstance(settings, dict) else None
        names.update(name for name in (wanted if isinstance(wanted, list) else ()) if isinstance(name, str))
    return frozenset(names)
