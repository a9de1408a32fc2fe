"""What was found on disk for one request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nexus_core.values.layer import Layer, LayerConfig, LayerText, Skipped


@dataclass(frozen=True, slots=True)
class Loaded:
    """What was found for a request.

    Attributes:
        layers: In order of precedence; the last one is the most local.
        texts: What the layers have to say, in the same order.
        configs: What the layers set, in the same order, before it is merged.
        skipped: Places that were looked at and contribute nothing, and why.
    """

    layers: tuple[Layer, ...] = ()
    texts: tuple[LayerText, ...] = ()
    configs: tuple[LayerConfig, ...] = ()
    skipped: tuple[Skipped, ...] = ()

    def texts_of(self, layer: Layer) -> tuple[LayerText, ...]:
        """The texts that were found in `layer`."""
        return tuple(text for text in self.texts if text.layer == layer)
