"""Reads the config.json of a layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.plugin import Admission, LayerConfig, Skipped, file_in, read_layer_json, setting_error
from nexus_plugins.file_layers._discovery import SETTINGS, is_replaced

if TYPE_CHECKING:
    from nexus_core.plugin import Layer


def read_settings(layer: Layer) -> LayerConfig | Skipped:
    """What a layer's config.json says, or why it says nothing.

    Raises:
        ConfigError: It is not JSON, or not a JSON object; the report shows where.
        FileError: It is larger than 1 MiB, not a regular file, or cannot be read.
    """
    path = file_in(layer.directory, SETTINGS)
    if is_replaced(layer, SETTINGS):
        return Skipped(path, f"your own {SETTINGS} takes its place")
    document = read_layer_json(path, Admission(layer), empty={})
    if isinstance(document, Skipped):
        return document
    if not isinstance(document.value, dict):
        raise setting_error(
            path,
            document.lines,
            document.position(""),
            title=f"Invalid configuration in {path}",
            message="a configuration must be a JSON object",
            closing="Write { … } around the settings and try again.",
        )
    return LayerConfig(path, document.value, document.position)
