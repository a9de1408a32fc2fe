"""MCP servers among the merged settings, with origin and the user's decision."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from nexus_core.config.pointers import SERVERS, has_servers, pointer_to

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from nexus_core.types.layers import LayerConfig, SkippedFile
    from nexus_core.types.mcp import ActiveSetting, MCPServerConfig, MCPServerWithOrigin, TrustDecision
    from nexus_core.types.settings import SettingOrigin, Settings


def normalize_servers_if_any(
    configs: list[LayerConfig], skipped: list[SkippedFile], *, lenient: bool = False
) -> list[LayerConfig]:
    """Call `normalize_servers`, which is imported only if there are servers."""
    if not any(has_servers(config.settings) for config in configs):
        return configs
    from nexus_core.config.servers import normalize_servers

    return normalize_servers(configs, skipped, lenient=lenient)


def find_servers(
    settings: Settings, configs: Sequence[LayerConfig], active: Iterable[ActiveSetting]
) -> tuple[MCPServerWithOrigin, ...]:
    """Return the servers in the order of their layers. One is approved if it is the user's own or was allowed."""
    if not settings.value.get(SERVERS):
        return ()
    return tuple(_build_servers(settings, _ServerDecisions(configs, active)))


class _ServerDecisions:
    """The user's decisions about definitions of servers."""

    def __init__(self, configs: Sequence[LayerConfig], active: Iterable[ActiveSetting]) -> None:
        self._configs = configs
        self._own = {config.path for config in configs if config.layer is not None and config.layer.is_own}
        self._decisions = {(part.path, part.pointer): part.decision for part in active}

    def decision(self, path: Path, name: str) -> TrustDecision:
        """Return the user's decision about a server of a file."""
        if path in self._own:
            return "allowed"
        return self._decisions.get((path.resolve(), pointer_to(f"/{SERVERS}", name)), "pending")

    def shadowed(self, winner: SettingOrigin, name: str) -> SettingOrigin | None:
        """Return the position of the definition that would be used without that of `winner`."""
        found = None
        for config, index in self._definitions.get(name, ()):
            if config.path == winner.path:
                break
            if self.decision(config.path, name) == "allowed":
                line, column = config.position(pointer_to(f"/{SERVERS}", index))
                found = winner._replace(path=config.path, line=line, column=column, layer=_get_layer_name(config))
        return found

    @cached_property
    def _definitions(self) -> dict[object, list[tuple[LayerConfig, int]]]:
        """All definitions by server name, in order of precedence."""
        found: dict[object, list[tuple[LayerConfig, int]]] = {}
        for config in self._configs:
            for index, entry in enumerate(list_server_entries(config.settings)):
                found.setdefault(entry.get("name"), []).append((config, index))
        return found


def list_server_entries(settings: Mapping[str, object]) -> list[dict[str, Any]]:
    """Return the servers that the settings of a file define, or [] if they are not a list."""
    servers = settings.get(SERVERS)
    return [entry if isinstance(entry, dict) else {} for entry in servers] if isinstance(servers, list) else []


def _get_layer_name(config: LayerConfig) -> str:
    return config.layer.name if config.layer else ""


def _build_servers(settings: Settings, permissions: _ServerDecisions) -> Iterator[MCPServerWithOrigin]:
    from nexus_core.types.mcp import MCPServerWithOrigin

    for index, entry in enumerate(list_server_entries(settings.value)):
        if not isinstance(entry.get("name"), str):
            continue
        origin = settings.origins[pointer_to(f"/{SERVERS}", index)][0]
        decision = permissions.decision(origin.path, entry["name"])
        yield MCPServerWithOrigin(
            config=_build_server_config(entry),
            origin=origin.layer,
            source_path=origin.path,
            line=origin.line,
            approved=decision == "allowed",
            denied=decision == "denied",
            shadows=None if decision == "allowed" else permissions.shadowed(origin, entry["name"]),
        )


def _build_server_config(entry: dict[str, Any]) -> MCPServerConfig:
    from nexus_core.types.mcp import MCPServerConfig

    included = entry.get("include_tools")
    return MCPServerConfig(
        name=entry["name"],
        type=entry["type"],
        command=tuple(entry.get("command", ())),
        url=entry.get("url", ""),
        env=entry.get("env", {}),
        headers=entry.get("headers", {}),
        cwd=entry.get("cwd", ""),
        env_file=entry.get("env_file", ""),
        include_tools=None if included is None else tuple(included),
        exclude_tools=tuple(entry.get("exclude_tools", ())),
        start_timeout=entry.get("start_timeout"),
        call_timeout=entry.get("call_timeout"),
        enabled=entry["enabled"],
    )
