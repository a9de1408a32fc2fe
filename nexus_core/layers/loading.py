"""Discovers layers and reads their texts through the plugins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.values.loaded import Loaded

if TYPE_CHECKING:
    from nexus_core.host.host import Host
    from nexus_core.values.layer import LayerConfig, LayerText
    from nexus_core.values.request import Request


def load_layers(host: Host, request: Request) -> Loaded:
    """What the plugins find for a request; nothing is cached, so a second call sees changed files."""
    layers, skipped = host.layers(request)
    configs: list[LayerConfig] = []
    texts: list[LayerText] = []
    for layer in layers:
        found, in_vain = host.layer_config(layer)
        configs += found
        skipped += in_vain
    for layer in layers:
        read, in_vain = host.layer_texts(layer)
        texts += read
        skipped += in_vain
    return Loaded(layers=tuple(layers), texts=tuple(texts), configs=tuple(configs), skipped=tuple(skipped))
