"""Whose files are read besides `mcp.json`: what `plugins.mcp.read` says, before settings are merged.

Servers are settings themselves, so that this one has to be known before all of them are. It is looked up where it
counts: in the user's own config.json, and in that of the layer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core import NexusError
from nexus_core.plugin import Admission, Skipped, file_in, read_bytes

if TYPE_CHECKING:
    from nexus_core import Request
    from nexus_core.plugin import Layer

CONFIG = "config.json"
_MARK = b'"read"'


def wanted_names(layer: Layer, request: Request) -> frozenset[str]:
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
