"""Layers as directories named `.nexus3`, from the user's home to the project.

_discovery.py    search for layers
_files.py        texts and settings of a layer
_imports.py      imports such as `@docs/style.md` in texts
_diagnosis.py    findings of `nexus doctor`

The texts of a layer are its `NEXUS.md`, its persona (`SOUL.md`, `IDENTITY.md`) and the workspace rules that other
tools read (`AGENTS.md`, `CLAUDE.md`, `GEMINI.md`), or the first file of `context.instruction_files`. Its settings are
in its `config.json`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core import hookimpl
from nexus_plugins.file_layers._discovery import SETTINGS_FILE, TEXT_FILE, find_layers
from nexus_plugins.file_layers._files import read_layer_settings, read_layer_texts

if TYPE_CHECKING:
    from nexus_core import Finding, Request
    from nexus_core.plugin import (
        InitFile,
        InitScope,
        Layer,
        LayerConfig,
        LayerText,
        LoadedLayers,
        Settings,
        SkippedFile,
    )


@hookimpl
def nexus_init_files(scope: InitScope) -> list[InitFile]:
    """Return NEXUS.md and config.json: templates for a project, the defaults for the user's own directory."""
    from nexus_core.plugin import InitFile
    from nexus_core.plugin.files import defaults_directory

    source = defaults_directory() / "templates" if scope == "local" else defaults_directory()
    return [InitFile(name, (source / name).read_text(encoding="utf-8")) for name in (TEXT_FILE, SETTINGS_FILE)]


@hookimpl
def nexus_layers(request: Request) -> list[Layer | SkippedFile]:
    """Return the layers: defaults that the user has not replaced, the user's, ancestors, working directory."""
    return list(find_layers(request))


@hookimpl
def nexus_layer_config(layer: Layer) -> list[LayerConfig | SkippedFile]:
    """Return the settings in the layer's config.json."""
    return [] if layer.only_rules else [read_layer_settings(layer)]


@hookimpl
def nexus_layer_texts(layer: Layer, settings: Settings) -> list[LayerText | SkippedFile]:
    """Return the layer's NEXUS.md, its persona, and the workspace rules of its directory."""
    return list(read_layer_texts(layer, settings.get("context.instruction_files")))


@hookimpl
def nexus_diagnose(loaded: LoadedLayers) -> list[Finding]:
    """Report workspace rules that another file overrides although their text differs."""
    from nexus_plugins.file_layers._diagnosis import find_passed_over_rules

    return list(find_passed_over_rules(loaded))
