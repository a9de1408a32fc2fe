"""Layers as directories: `.nexus3` in the user's home, above the working directory, and in it.

The text of a layer is its `NEXUS.md`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core import LayerText, hookimpl
from nexus_core.plugin import read_text
from nexus_plugins.file_layers._discovery import find_layers

if TYPE_CHECKING:
    from nexus_core import Layer, Request


@hookimpl
def nexus_layers(request: Request) -> list[Layer]:
    """The defaults or the user's own layer, then the ancestors, then the working directory's."""
    return find_layers(request)


@hookimpl
def nexus_layer_texts(layer: Layer) -> list[LayerText]:
    """The layer's NEXUS.md, if it has one."""
    path = layer.directory / "NEXUS.md"
    text = read_text(path)
    return [] if text is None else [LayerText(path, text)]
