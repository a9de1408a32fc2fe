"""Which places on disk contribute, and what each of them says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.hookspecs.markers import hookspec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nexus_core.values.layer import Layer, LayerConfig, LayerText, Skipped
    from nexus_core.values.request import Request
    from nexus_core.values.settings import Settings


@hookspec
def nexus_layers(request: Request) -> Iterable[Layer | Skipped]:
    """Find the places on disk that contribute to the prompt.

    Collects. Asked once per load. Sorted by scope (defaults, global, ancestor, local), farthest first.

    Args:
        request: The directory to work in, the user's home, and how far up to look.

    Returns:
        Layers, and `Skipped` for places where nothing usable was found, so that `nexus layers` can say why something is
        missing. Do not read any files yet: texts and settings are asked for afterwards, layer by layer.

    Example:
        from pathlib import Path

        from nexus_core import hookimpl
        from nexus_core.plugin import Layer

        @hookimpl
        def nexus_layers(request):
            policy = Path("/etc/acme-agents")
            return [Layer("global:acme", policy, "global")] if policy.is_dir() else []
    """


@hookspec
def nexus_layer_config(layer: Layer, request: Request) -> Iterable[LayerConfig | Skipped]:
    """Read the settings of one layer.

    Collects. Asked once per load for each layer, before its texts. Plugins are asked in the order of their names; later
    layers extend earlier ones.

    Args:
        layer: The place to read from.
        request: The directory to work in, and the user's home.

    Returns:
        One `LayerConfig` per file, with a function that says where each setting stands in it. Nexus merges, checks and
        guards them: settings that start programs or open connections take effect only once the user trusts them. MCP
        servers go under `mcp_servers`, in any of the shapes that other tools use.

    Example:
        from nexus_core import hookimpl
        from nexus_core.plugin import Admission, LayerConfig, Skipped, read_layer_json

        @hookimpl
        def nexus_layer_config(layer):
            path = layer.directory / "config.json"
            document = read_layer_json(path, Admission(layer), empty={})
            if isinstance(document, Skipped):
                return [document]
            return [LayerConfig(path, document.value, document.position)]
    """


@hookspec
def nexus_layer_texts(layer: Layer, settings: Settings) -> Iterable[LayerText | Skipped]:
    """Read the texts of one layer.

    Collects. Asked once per load for each layer, including those found by other plugins. Texts keep the order in
    which a plugin returns them; plugins are asked in the order of their names.

    Args:
        layer: The place to read from.
        settings: What all layers together set, not validated yet.

    Returns:
        Texts, each marked as instructions or as documentation, and `Skipped` for files that cannot be used.
        Documentation is used if a layer has no instructions, or always if the user wants it. Read files with
        `nexus_core.plugin.Admission`, which refuses anything that is not a plain text file of reasonable size, lies
        outside the project, or may have been written by a stranger.

    Example:
        from nexus_core import hookimpl
        from nexus_core.plugin import Admission, LayerText, Skipped

        @hookimpl
        def nexus_layer_texts(layer):
            path = layer.directory / "RULES.md"
            text = Admission(layer).read_text(path)
            return [text if isinstance(text, Skipped) else LayerText(path, text)]
    """
