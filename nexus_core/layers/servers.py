"""The MCP servers among the settings, before they are merged and after."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from nexus_core.config.pointers import pointer_to
from nexus_core.config.servers import SETTING, has_servers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from nexus_core.values.layer import LayerConfig, Skipped
    from nexus_core.values.servers import MCPServerConfig, MCPServerWithOrigin
    from nexus_core.values.settings import Origin, Settings
    from nexus_core.values.trust import ActivePart, Decision


def in_one_form(configs: list[LayerConfig], skipped: list[Skipped], *, lenient: bool = False) -> list[LayerConfig]:
    """As `normalise_servers`, which is imported only where there are servers."""
    if not any(has_servers(config.settings) for config in configs):
        return configs
    from nexus_core.config.servers.normalising import normalise_servers  # noqa: PLC0415 - many directories have none

    return normalise_servers(configs, skipped, lenient=lenient)


def find_servers(
    settings: Settings, configs: Sequence[LayerConfig], active: Iterable[ActivePart]
) -> tuple[MCPServerWithOrigin, ...]:
    """The servers in the order of their layers; one is approved if it is the user's own or has been allowed."""
    if not settings.value.get(SETTING):
        return ()
    return tuple(_servers(settings, _Permissions(configs, active)))


class _Permissions:
    """Which definitions of servers may be used."""

    def __init__(self, configs: Sequence[LayerConfig], active: Iterable[ActivePart]) -> None:
        self._configs = configs
        self._own = {config.path for config in configs if config.layer is not None and config.layer.is_own}
        self._decisions = {(part.path, part.pointer): part.decision for part in active}

    def decision(self, path: Path, name: str) -> Decision:
        """What the user has decided about a server of a file."""
        if path in self._own:
            return "allowed"
        return self._decisions.get((path.resolve(), pointer_to(f"/{SETTING}", name)), "pending")

    def shadowed(self, winner: Origin, name: str) -> Origin | None:
        """Where the definition stands that would count if that of `winner` were not there."""
        found = None
        for config, index in self._definitions.get(name, ()):
            if config.path == winner.path:
                break
            if self.decision(config.path, name) == "allowed":
                line, column = config.position(pointer_to(f"/{SETTING}", index))
                found = winner._replace(path=config.path, line=line, column=column, layer=_layer(config))
        return found

    @cached_property
    def _definitions(self) -> dict[object, list[tuple[LayerConfig, int]]]:
        """All definitions by the names of the servers, in the order of precedence."""
        found: dict[object, list[tuple[LayerConfig, int]]] = {}
        for config in self._configs:
            for index, entry in enumerate(entries_in(config.settings)):
                found.setdefault(entry.get("name"), []).append((config, index))
        return found


def entries_in(settings: Mapping[str, object]) -> list[dict[str, Any]]:
    """The servers that the settings of a file define, as far as they are a list."""
    servers = settings.get(SETTING)
    return [entry if isinstance(entry, dict) else {} for entry in servers] if isinstance(servers, list) else []


def _layer(config: LayerConfig) -> str:
    return config.layer.name if config.layer else ""


def _servers(settings: Settings, permissions: _Permissions) -> Iterator[MCPServerWithOrigin]:
    from nexus_core.values.servers import MCPServerWithOrigin  # noqa: PLC0415 - many directories have no servers

    for index, entry in enumerate(entries_in(settings.value)):
        if not isinstance(entry.get("name"), str):
            continue
        origin = settings.origins[pointer_to(f"/{SETTING}", index)][0]
        decision = permissions.decision(origin.path, entry["name"])
        yield MCPServerWithOrigin(
            config=_server(entry),
            origin=origin.layer,
            source_path=origin.path,
            line=origin.line,
            approved=decision == "allowed",
            denied=decision == "denied",
            shadows=None if decision == "allowed" else permissions.shadowed(origin, entry["name"]),
        )


def _server(entry: dict[str, Any]) -> MCPServerConfig:
    from nexus_core.values.servers import MCPServerConfig  # noqa: PLC0415 - as above

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
