"""Places on disk that contribute to the prompt, and the texts found there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from pathlib import Path

    from nexus_core.values.source import Source

Scope = Literal["defaults", "global", "ancestor", "local"]
"""How near a layer is to the work; later ones extend earlier ones."""

Purpose = Literal["instructions", "documentation"]
"""Whether a text tells the agent what to do, or merely describes something."""

SCOPES: tuple[Scope, ...] = get_args(Scope)


@dataclass(frozen=True, slots=True)
class Layer:
    """A directory that contributes texts and settings.

    Attributes:
        name: `defaults`, `global`, `ancestor:<dirname>`, `local`, or a name of your own.
        directory: The directory that holds the layer's files, absolute.
        scope: How near it is to the work; it decides the order.
        distance: How many levels above the working directory it lies; the farthest ancestor comes first.
        plugin: The plugin that found it; stamped by the host.
    """

    name: str
    directory: Path
    scope: Scope
    distance: int = 0
    plugin: str = ""

    def __post_init__(self) -> None:
        if self.scope not in SCOPES:
            raise ValueError(f"Layer.scope must be one of {', '.join(SCOPES)}, not {self.scope!r}")
        if not self.name:
            raise ValueError("Layer.name must not be empty")

    @property
    def sort_key(self) -> tuple[int, int, str, str, str]:
        """The order of a load: by scope, farthest first, then by name, place and plugin."""
        return SCOPES.index(self.scope), -self.distance, self.name, str(self.directory), self.plugin


@dataclass(frozen=True, slots=True)
class LayerText:
    """A text file of a layer.

    Attributes:
        path: The file, absolute.
        text: Its content, decoded.
        purpose: Whether it instructs or documents.
        layer: The layer it belongs to; stamped by the host.
        source: Where it comes from; stamped by the host.
    """

    path: Path
    text: str
    purpose: Purpose = "instructions"
    layer: Layer | None = None
    source: Source | None = None
