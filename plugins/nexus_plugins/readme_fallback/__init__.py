"""The README of a project, for layers without instructions of their own.

_readme.py    search for the README
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core import hookimpl
from nexus_plugins.readme_fallback._readme import read_readme

if TYPE_CHECKING:
    from nexus_core.plugin import Layer, LayerText, Settings, SkippedFile


@hookimpl
def nexus_layer_texts(layer: Layer, settings: Settings) -> list[LayerText | SkippedFile]:
    """Return the README of a project's layer as documentation, which the prompt marks as not being instructions.

    Nothing if `context.instruction_files` lists the files to read.
    """
    return [] if settings.get("context.instruction_files") is not None else list(read_readme(layer))
