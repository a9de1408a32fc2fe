"""Layers as directories: `.nexus3` in the user's home, above the working directory, and in it.

The texts of a layer are its `NEXUS.md`, its persona (`SOUL.md`, `IDENTITY.md`) and the workspace rules that other tools
read (`AGENTS.md`, `CLAUDE.md`, `GEMINI.md`), or the first file of `context.instruction_files`; its settings are in its
`config.json`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core import hookimpl
from nexus_plugins.file_layers._discovery import find_layers
from nexus_plugins.file_layers._settings import read_settings
from nexus_plugins.file_layers._texts import read_texts

if TYPE_CHECKING:
    from nexus_core import Finding, Request
    from nexus_core.plugin import InitFile, InitScope, Layer, LayerConfig, LayerText, Loaded, Settings, Skipped


@hookimpl
def nexus_init_files(scope: InitScope) -> list[InitFile]:
    """NEXUS.md and config.json: templates for a project, the defaults for the user's own directory."""
    from nexus_plugins.file_layers._templates import init_files  # noqa: PLC0415 - only `nexus init` needs it

    return init_files(scope)


@hookimpl
def nexus_layers(request: Request) -> list[Layer | Skipped]:
    """The defaults where they are needed, the user's own layer, the ancestors, and the working directory."""
    return list(find_layers(request))


@hookimpl
def nexus_layer_config(layer: Layer) -> list[LayerConfig | Skipped]:
    """What the layer's config.json says."""
    return [] if layer.only_rules else [read_settings(layer)]


@hookimpl
def nexus_layer_texts(layer: Layer, settings: Settings) -> list[LayerText | Skipped]:
    """The layer's NEXUS.md, its persona, and the rules of the directory that it is about."""
    return list(read_texts(layer, settings.get("context.instruction_files")))


@hookimpl
def nexus_diagnose(loaded: Loaded) -> list[Finding]:
    """Workspace rules that were passed over although they say something of their own."""
    from nexus_plugins.file_layers._diagnosis import passed_over  # noqa: PLC0415 - only `nexus doctor` asks

    return list(passed_over(loaded))
