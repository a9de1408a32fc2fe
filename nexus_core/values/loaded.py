"""What was found on disk for one request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nexus_core.values.layer import Layer, LayerText


@dataclass(frozen=True, slots=True)
class Loaded:
    """The layers of a request in order of precedence (the last one is the most local), and their texts."""

    layers: tuple[Layer, ...] = ()
    texts: tuple[LayerText, ...] = ()

    def texts_of(self, layer: Layer) -> tuple[LayerText, ...]:
        """The texts that were found in `layer`."""
        return tuple(text for text in self.texts if text.layer == layer)
