"""Discovers layers and reads their texts through the plugins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.values.loaded import Loaded

if TYPE_CHECKING:
    from nexus_core.host.host import Host
    from nexus_core.values.request import Request


def load_layers(host: Host, request: Request) -> Loaded:
    """What the plugins find for a request; nothing is cached, so a second call sees changed files."""
    layers = host.layers(request)
    texts = tuple(text for layer in layers for text in host.layer_texts(layer))
    return Loaded(layers=layers, texts=texts)
