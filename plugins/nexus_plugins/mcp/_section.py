"""The prompt section about MCP servers, and warnings about shadowed ones."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from nexus_core import Section
from nexus_core.plugin.settings import pointer_to
from nexus_core.plugin.text import hide_secrets, visible_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nexus_core import Request
    from nexus_core.plugin import LoadedLayers
    from nexus_core.plugin.settings import MCPServerWithOrigin

SECTION_ORDER = 800
PERMITTED_LEVELS = frozenset({"yolo", "trusted"})
"""The permission levels at which servers are used."""


def build_server_sections(request: Request, loaded: LoadedLayers) -> list[Section]:
    """Return the prompt section about an agent's servers, or none if it has no servers."""
    servers = find_usable_servers(request, loaded)
    if not servers:
        return []
    if loaded.settings.get("plugins.mcp.form") == "bullets":
        return [
            Section("mcp-servers", title="Active MCP Servers", text=format_server_list(servers), order=SECTION_ORDER)
        ]
    return [Section("mcp-servers", title="MCP Servers", text=format_server_table(servers), order=SECTION_ORDER)]


def format_server_list(servers: Iterable[MCPServerWithOrigin]) -> str:
    """Return a Markdown list, a line for each server: name, origin, type or address without secrets, and status."""
    lines, shadows = [], []
    for server in servers:
        config, origin = server.config, "project" if server.origin == "local" else server.origin
        reached = hide_secrets([config.url])[0] if config.url else config.type
        lines.append(
            f"- {visible_line(config.name)} ({visible_line(origin)}): {visible_line(reached)}, {server.status}"
        )
        if server.shadows:
            shadows.append(_format_shadow(server, server.shadows.layer))
    return "\n\n".join(["\n".join(lines), *shadows])


def format_server_table(servers: Iterable[MCPServerWithOrigin]) -> str:
    """Return a Markdown table of name, type, origin and status, followed by notes on shadowed servers."""
    rows, shadows = [], []
    for server in servers:
        rows.append((server.config.name, server.config.type, server.origin, server.status))
        if server.shadows:
            shadows.append(_format_shadow(server, server.shadows.layer))
    lines = [f"| {' | '.join(map(_escape_cell, row))} |" for row in rows]
    table = "\n".join(["| Server | Type | Origin | Status |", "|--------|------|--------|--------|", *lines])
    return "\n\n".join([table, *shadows])


def _format_shadow(server: MCPServerWithOrigin, layer: str) -> str:
    """Return the prompt's note on a server that shadows one of another layer."""
    name, origin = _escape_cell(server.config.name), _escape_cell(server.origin)
    file = _escape_cell(f"{server.source_path.parent.name}/{server.source_path.name}")
    whose = "the user's own" if layer == "global" else f"that of {_escape_cell(layer)}"
    return (
        f"{name} of {file} ({origin}) takes the place of {whose}, which is off until the user decides: "
        "`nexus trust allow` or `nexus trust deny`."
    )


def find_usable_servers(request: Request, loaded: LoadedLayers) -> tuple[MCPServerWithOrigin, ...]:
    """Return the servers that the agent of a request has. Their status says whether each may be started.

    None for a worker (subagent), for permissions stricter than `trusted`, and in server mode: the clients of a server
    are not the user who approved the servers. A program that names no mode runs for that user.
    """
    is_worker = request.role == "worker" or bool(request.task)
    level = loaded.settings.get("permissions.level", "trusted")
    return loaded.servers if not is_worker and request.mode != "server" and level in PERMITTED_LEVELS else ()


def is_plain_http(url: str) -> bool:
    """Return True if a URL is unencrypted HTTP to another machine."""
    parts = urlsplit(url)
    return parts.scheme == "http" and parts.hostname not in {"localhost", "127.0.0.1", "::1"}


def _escape_cell(text: str) -> str:
    # A name may hold any character; it must not end its cell or line.
    return visible_line(text).replace("|", "\\|")


def describe_shadow(server: MCPServerWithOrigin) -> str:
    """Return the user's warning about a server that shadows another, or "" if it does not."""
    if server.shadows is None:
        return ""
    name = server.config.name
    whose = "your own" if server.shadows.layer == "global" else "that"
    command = f"nexus trust deny {quote(pointer_to('/mcp_servers', name))}"
    return (
        f"server {name!r} takes the place of {whose} in {server.shadows}, which is off until you decide; "
        f"`{command}` brings it back"
    )
