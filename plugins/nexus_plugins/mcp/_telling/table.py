"""The servers as the model reads about them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core import Section
from nexus_core.plugin import hide_secrets, visible_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nexus_core import Request
    from nexus_core.plugin import Loaded, MCPServerWithOrigin

ORDER = 800
PERMITTED = frozenset({"yolo", "trusted"})
"""The permission levels at which servers are used."""


def server_sections(request: Request, loaded: Loaded) -> list[Section]:
    """What an agent in these circumstances is told of its servers; nothing if it has none."""
    servers = usable_servers(request, loaded)
    if not servers:
        return []
    if loaded.settings.get("plugins.mcp.form") == "bullets":
        return [Section("mcp-servers", title="Active MCP Servers", text=list_servers(servers), order=ORDER)]
    return [Section("mcp-servers", title="MCP Servers", text=server_table(servers), order=ORDER)]


def list_servers(servers: Iterable[MCPServerWithOrigin]) -> str:
    """Return a Markdown list, a line for each server: name, origin, type or address without secrets, and status."""
    lines, shadows = [], []
    for server in servers:
        config, origin = server.config, "project" if server.origin == "local" else server.origin
        reached = hide_secrets([config.url])[0] if config.url else config.type
        lines.append(
            f"- {visible_line(config.name)} ({visible_line(origin)}): {visible_line(reached)}, {server.status}"
        )
        if server.shadows:
            shadows.append(_shadow(server, server.shadows.layer))
    return "\n\n".join(["\n".join(lines), *shadows])


def server_table(servers: Iterable[MCPServerWithOrigin]) -> str:
    """A Markdown table: server, type, origin and status, in the order of the layers; and which of them hide others."""
    rows, shadows = [], []
    for server in servers:
        rows.append((server.config.name, server.config.type, server.origin, server.status))
        if server.shadows:
            shadows.append(_shadow(server, server.shadows.layer))
    lines = [f"| {' | '.join(map(_cell, row))} |" for row in rows]
    table = "\n".join(["| Server | Type | Origin | Status |", "|--------|------|--------|--------|", *lines])
    return "\n\n".join([table, *shadows])


def _shadow(server: MCPServerWithOrigin, layer: str) -> str:
    """What is told about a server that takes the place of one of another layer."""
    name, origin = _cell(server.config.name), _cell(server.origin)
    file = _cell(f"{server.source_path.parent.name}/{server.source_path.name}")
    whose = "the user's own" if layer == "global" else f"that of {_cell(layer)}"
    return (
        f"{name} of {file} ({origin}) takes the place of {whose}, which is off until the user decides: "
        "`nexus trust allow` or `nexus trust deny`."
    )


def usable_servers(request: Request, loaded: Loaded) -> tuple[MCPServerWithOrigin, ...]:
    """The servers that an agent in these circumstances has; whether each of them may be started is another question.

    A worker has none, nor has an agent whose permissions are tighter than `trusted`, nor one that a server drives: the
    clients of a server are not the user who approved these. A program that names no mode runs for that user.
    """
    is_worker = request.role == "worker" or bool(request.task)
    level = loaded.settings.get("permissions.level", "trusted")
    return loaded.servers if not is_worker and request.mode != "server" and level in PERMITTED else ()


def is_plain_http(url: str) -> bool:
    """Whether an address goes over the network unencrypted; to this machine itself does not count."""
    from urllib.parse import urlsplit  # noqa: PLC0415 - only `nexus doctor` asks

    parts = urlsplit(url)
    return parts.scheme == "http" and parts.hostname not in {"localhost", "127.0.0.1", "::1"}


def _cell(text: str) -> str:
    # A name may hold anything; it must not end its cell or its line.
    return visible_line(text).replace("|", "\\|")
