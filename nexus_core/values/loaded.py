"""What was found on disk for one request."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from nexus_core.values.settings import Settings

if TYPE_CHECKING:
    from nexus_core.values.finding import Finding
    from nexus_core.values.layer import Layer, LayerConfig, LayerText, Skipped
    from nexus_core.values.servers import MCPServerWithOrigin
    from nexus_core.values.trust import ActivePart

_NOTHING_SET = Settings()


@dataclass(frozen=True)
class Loaded:
    """What was found for a request.

    Attributes:
        layers: In order of precedence; the last one is the most local.
        texts: What the layers have to say, in the same order, made safe.
        configs: What the files of the layers set and were allowed to set, in the same order.
        settings: All of that merged, each value with where it comes from.
        servers: The MCP servers among the settings.
        active: What a project wants to start or connect to, and what the user decided about it.
        skipped: Places that were looked at and contribute nothing, and why.
        findings: What a person should know about all this.
        repeated: Texts that are not used because another one says the same, made safe.
    """

    layers: tuple[Layer, ...] = ()
    texts: tuple[LayerText, ...] = ()
    configs: tuple[LayerConfig, ...] = ()
    settings: Settings = _NOTHING_SET
    servers: tuple[MCPServerWithOrigin, ...] = ()
    active: tuple[ActivePart, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    findings: tuple[Finding, ...] = ()
    repeated: tuple[LayerText, ...] = ()

    def without_servers(self) -> Loaded:
        """The same without MCP servers, for those who get none."""
        return replace(self, servers=())

    def texts_of(self, layer: Layer) -> tuple[LayerText, ...]:
        """The texts that were found in `layer`."""
        return tuple(self._texts_by_layer.get(layer, ()))

    @cached_property
    def _texts_by_layer(self) -> dict[Layer | None, list[LayerText]]:
        found: dict[Layer | None, list[LayerText]] = {}
        for text in self.texts:
            found.setdefault(text.layer, []).append(text)
        return found
