"""Each layer by itself, as its files have it: before merging, checking and guarding."""

from __future__ import annotations

import copy
import os
from dataclasses import field
from typing import TYPE_CHECKING, Any

from nexus_core.config.merging import deep_merge
from nexus_core.config.servers import SETTING as SERVERS
from nexus_core.values.fast_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from nexus_core.values.layer import Layer, LayerConfig
    from nexus_core.values.loaded import Loaded


@dataclass(frozen=True, slots=True)
class ContextLayer:
    """One layer by itself. What it sets is neither checked nor approved: to act on settings, use the merged ones.

    Attributes:
        name: `defaults`, `global`, `ancestor:<dirname>` or `local`.
        path: The directory that holds its files.
        prompt: What its NEXUS.md says, made safe; None when it has none, or none that is not in the prompt already.
        config: What its config.json says; None when it has none.
        mcp: What its mcp.json says; None when it has none.
    """

    name: str
    path: Path
    prompt: str | None
    config: dict[str, Any] | None = field(repr=False)  # may hold secrets, as may the servers
    mcp: dict[str, Any] | None = field(repr=False)


def context_layers(loaded: Loaded) -> tuple[ContextLayer, ...]:
    """The layers that are there, in the order of the load."""
    return tuple(
        _context_layer(layer, place, loaded) for layer in loaded.layers if (place := layer_place(layer, loaded))
    )


def layer_place(layer: Layer, loaded: Loaded) -> Path | None:
    """The directory that holds the files of a layer; None when there is nothing but workspace rules, or nothing."""
    if layer.only_rules:
        return None
    if os.path.isdir(layer.directory):  # noqa: PTH112 - never fails
        return layer.directory
    return layer.project if any(text.layer == layer and not text.title for text in loaded.texts) else None


def is_servers_file(config: LayerConfig) -> bool:
    """Whether a file is there for MCP servers and nothing else."""
    return config.settings.keys() == {SERVERS} and config.path.name != "config.json"


def _context_layer(layer: Layer, place: Path, loaded: Loaded) -> ContextLayer:
    own = [text for text in loaded.texts_of(layer) if text.purpose == "instructions" and not text.title]
    configs = [config for config in loaded.configs if config.layer == layer]
    return ContextLayer(
        name=layer.name,
        path=place,
        prompt="\n\n".join(text.text for text in own) if own else None,
        config=_content(config for config in configs if not is_servers_file(config)),
        mcp=_content(config for config in configs if is_servers_file(config)),
    )


def _content(configs: Iterable[LayerConfig]) -> dict[str, Any] | None:
    """What some files say, for whoever asks to change; they are one file, unless a plugin reads more than that."""
    merged: dict[str, Any] | None = None
    for config in configs:
        content = config.settings if config.content is None else config.content
        merged = deep_merge(merged or {}, content)
    return copy.deepcopy(merged)
