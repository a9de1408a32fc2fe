"""The MCP servers among the settings, before they are merged and after."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core.config.pointers import pointer_to
from nexus_core.config.servers import SETTING, has_servers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from nexus_core.values.layer import LayerConfig, Skipped
    from nexus_core.values.servers import MCPServerConfig, MCPServerWithOrigin
    from nexus_core.values.settings import Settings
    from nexus_core.values.trust import ActivePart


def in_one_form(configs: list[LayerConfig], skipped: list[Skipped], *, lenient: bool = False) -> list[LayerConfig]:
    """As `normalise_servers`, which is imported only where there are servers."""
    if not any(has_servers(config.settings) for config in configs):
        return configs
    from nexus_core.config.servers.normalising import normalise_servers  # noqa: PLC0415 - many directories have none

    return normalise_servers(configs, skipped, lenient=lenient)


def find_servers(
    settings: Settings, configs: Iterable[LayerConfig], active: Iterable[ActivePart]
) -> tuple[MCPServerWithOrigin, ...]:
    """The servers in the order of their layers; one is approved if it is the user's own or has been allowed."""
    if not settings.value.get(SETTING):
        return ()
    own = {config.path for config in configs if config.layer is not None and config.layer.is_own}
    allowed = {(part.path, part.pointer) for part in active if part.decision == "allowed"}
    return tuple(_servers(settings, own, allowed))


def _servers(settings: Settings, own: set[Path], allowed: set[tuple[Path, str]]) -> Iterator[MCPServerWithOrigin]:
    from nexus_core.values.servers import MCPServerWithOrigin  # noqa: PLC0415 - many directories have no servers

    entries = settings.value.get(SETTING, [])
    for index, entry in enumerate(entries if isinstance(entries, list) else []):
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            continue
        origin = settings.origins[pointer_to(f"/{SETTING}", index)][0]
        key = (origin.path.resolve(), pointer_to(f"/{SETTING}", entry["name"]))
        yield MCPServerWithOrigin(
            config=_server(entry),
            origin=origin.layer,
            source_path=origin.path,
            line=origin.line,
            approved=origin.path in own or key in allowed,
        )


def _server(entry: dict[str, Any]) -> MCPServerConfig:
    from nexus_core.values.servers import MCPServerConfig  # noqa: PLC0415 - as above

    return MCPServerConfig(
        name=entry["name"],
        type=entry["type"],
        command=tuple(entry.get("command", ())),
        url=entry.get("url", ""),
        env=entry.get("env", {}),
        headers=entry.get("headers", {}),
        cwd=entry.get("cwd", ""),
        enabled=entry["enabled"],
    )
