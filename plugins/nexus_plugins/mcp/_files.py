"""Which files of a layer are read: its `mcp.json`, and those of other tools that `plugins.mcp.read` names.

Servers are settings themselves, so that this one has to be known before settings are merged. It is looked up where it
counts: in the user's own config.json, and in that of the layer.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from nexus_core import NexusError
from nexus_core.plugin import Admission, Skipped, file_in, read_bytes

if TYPE_CHECKING:
    from nexus_core import Request
    from nexus_core.plugin import Layer, LayerConfig

FILE = "mcp.json"
CONFIG = "config.json"
_MARK = b'"read"'


def find_servers(layer: Layer, request: Request) -> list[LayerConfig | Skipped]:
    """The servers in the files of other tools that are wanted, then those in the layer's mcp.json, which thus win."""
    if layer.only_rules or layer.scope == "defaults":  # the defaults have no servers
        return []
    found: list[LayerConfig | Skipped] = []
    if layer.scope != "global" and (names := _wanted_names(layer, request)):
        from nexus_plugins.mcp._reader import read_other_tools  # noqa: PLC0415 - few read them

        found += read_other_tools(layer, names)
    path = file_in(layer.directory, FILE)
    if not os.path.lexists(path):
        return [*found, Skipped(path, "not there")]
    from nexus_plugins.mcp._reader import read_layer  # noqa: PLC0415 - most layers have no such file

    return [*found, *read_layer(layer)]


def _wanted_names(layer: Layer, request: Request) -> frozenset[str]:
    """The names of other tools whose files in the directory of a layer are read."""
    # What is wrong with a file or with the setting is told by those who read and check it.
    try:
        own = read_bytes(file_in(request.home, CONFIG))
        project = Admission(layer).read_bytes(file_in(layer.directory, CONFIG))
    except NexusError:
        return frozenset()
    return frozenset((*_named(own or b""), *_named(b"" if isinstance(project, Skipped) else project)))


def _named(data: bytes) -> list[str]:
    if _MARK not in data:  # most files say nothing about it
        return []
    import json  # noqa: PLC0415 - as above

    try:
        value: Any = json.loads(data)
    except (ValueError, RecursionError):
        return []
    for key in ("plugins", "mcp", "read"):
        value = value.get(key) if isinstance(value, dict) else None
    return [name for name in value if isinstance(name, str)] if isinstance(value, list) else []
