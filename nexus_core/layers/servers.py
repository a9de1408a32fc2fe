"""The MCP servers among the merged settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core.config.json_parser import pointer_to

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from nexus_core.values.layer import LayerConfig
    from nexus_core.values.servers import MCPServerConfig, MCPServerWithOrigin
    from nexus_core.values.settings import Settings
    from nexus_core.values.trust import ActivePart


def find_servers(
    settings: Settings, configs: Iterable[LayerConfig], active: Iterable[ActivePart]
) -> tuple[MCPServerWithOrigin, ...]:
    """The servers in the order of their layers; one is approved if it is the user's own or has been allowed."""
    if not settings.value.get("mcp_servers"):
        return ()
    own = {config.path for config in configs if config.layer is not None and config.layer.is_own}
    allowed = {(part.path, part.pointer) for part in active if part.decision == "allowed"}
    return tuple(_servers(settings, own, allowed))


def _servers(settings: Settings, own: set[Path], allowed: set[tuple[Path, str]]) -> Iterator[MCPServerWithOrigin]:
    from nexus_core.values.servers import MCPServerWithOrigin  # noqa: PLC0415 - many directories have no servers

    entries = settings.value.get("mcp_servers", [])
    for index, entry in enumerate(entries if isinstance(entries, list) else []):
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            continue
        origin = settings.origins[pointer_to("/mcp_servers", index)][0]
        key = (origin.path.resolve(), pointer_to("/mcp_servers", entry["name"]))
        yield MCPServerWithOrigin(
            config=_server(entry),
            origin=origin.layer,
            source_path=origin.path,
            line=origin.line,
            approved=origin.path in own or key in allowed,
        )


def _server(entry: dict[str, Any]) -> MCPServerConfig:
    from nexus_core.values.servers import MCPServerConfig  # noqa: PLC0415 - as above

    command = entry.get("command", ())
    words = (command, *entry.get("args", ())) if isinstance(command, str) else tuple(command)
    return MCPServerConfig(
        name=entry["name"],
        type=entry.get("type", "stdio" if words else "http"),
        command=words,
        url=entry.get("url", ""),
        env=entry.get("env", {}),
        headers=entry.get("headers", {}),
        cwd=entry.get("cwd", ""),
        enabled=entry.get("enabled", True),
    )
