"""Which files of a layer are read: its `mcp.json`, and those of other tools that `plugins.mcp.read` names.

Servers are settings themselves, so that this one has to be known before settings are merged. It counts in the user's
own config.json and in that of the directory one works in; ancestors have no say.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from nexus_core.plugin import Skipped, file_in

if TYPE_CHECKING:
    from nexus_core import Request
    from nexus_core.plugin import Layer, LayerConfig

FILE = "mcp.json"


def find_servers(layer: Layer, request: Request) -> list[LayerConfig | Skipped]:
    """The servers in the files of other tools that are wanted, then those in the layer's mcp.json, which thus win."""
    if layer.only_rules or layer.scope == "defaults":  # the defaults have no servers
        return []
    found: list[LayerConfig | Skipped] = []
    if layer.scope != "global" and (names := _wanted_names(request)):
        from nexus_plugins.mcp._files.reader import read_other_tools  # noqa: PLC0415 - few read them

        found += read_other_tools(layer, names)
    path = file_in(layer.directory, FILE)
    if not os.path.lexists(path):
        return [*found, Skipped(path, "not there")]
    from nexus_plugins.mcp._files.reader import read_layer  # noqa: PLC0415 - most layers have no such file

    return [*found, *read_layer(layer)]


def _wanted_names(request: Request) -> frozenset[str]:
    """The names of other tools whose files are read; what is wrong with the setting is told by those who check it."""
    names: set[str] = set()
    for table in request.plugin_tables:
        settings = table.get("mcp")
        wanted = settings.get("read") if isinstance(settings, dict) else None
        names.update(name for name in (wanted if isinstance(wanted, list) else ()) if isinstance(name, str))
    return frozenset(names)
