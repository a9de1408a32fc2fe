"""The README of a project, as documentation: Nexus uses it for a layer that has no instructions of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core import hookimpl
from nexus_plugins.readme_fallback._readme import read_readme

if TYPE_CHECKING:
    from nexus_core.plugin import Layer, LayerText, Settings, Skipped


@hookimpl
def nexus_layer_texts(layer: Layer, settings: Settings) -> list[LayerText | Skipped]:
    """The README of the directory that a layer of a project is about, between two lines that mark it as no order.

    Nothing where `context.instruction_files` lists the files to read.
    """
    return [] if settings.get("context.instruction_files") is not None else list(read_readme(layer))
