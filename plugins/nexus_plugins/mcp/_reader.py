"""Reads the mcp.json of a layer; Nexus brings the servers in it into one form, whatever shape they have."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from nexus_core.plugin import Admission, LayerConfig, Skipped, pointer_to, read_layer_json, setting_error
from nexus_plugins.mcp._container import NAMES, SETTING, find_container

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from nexus_core import ConfigError
    from nexus_core.plugin import JsonDocument, Layer
    from nexus_plugins.mcp._container import Container

FILE = "mcp.json"
MAX_SKIPPED = 100
"""How many keys that are not used are listed; the rest is counted."""


def read_layer(layer: Layer) -> list[LayerConfig | Skipped]:
    """The servers of a layer as its file has them, and a `Skipped` for everything beside them that is not used.

    Raises:
        ConfigError: The file is not JSON, or not what it must be. No line of it is shown, because any of them may hold
            a password.
        FileError: The file cannot be read.
    """
    path = layer.directory / FILE
    document = read_layer_json(path, Admission(layer), comments=True, empty={"servers": []}, quote=False)
    if isinstance(document, Skipped):
        return [document]
    content = document.value
    if not isinstance(content, dict):
        raise _error(path, document, "", "the file must hold an object")
    for name in NAMES:
        if not isinstance(content.get(name, []), dict | list):
            raise _error(path, document, f"/{name}", f"{name!r} must be a list or an object")
    container = find_container(content)
    start = f"/{container.key}" if container.key else ""

    def position(pointer: str) -> tuple[int, int]:
        return document.position(start + pointer.removeprefix(f"/{SETTING}") if pointer else "")

    config = LayerConfig(path, {SETTING: container.servers}, position, content=content)
    return [config, *_skipped(path, document, container)]


def _skipped(path: Path, document: JsonDocument, container: Container) -> Iterator[Skipped]:
    rest = f"{len(container.unused) - MAX_SKIPPED} more from here on"
    for number, (key, reason) in enumerate(islice(container.unused.items(), MAX_SKIPPED + 1)):
        line = document.position(pointer_to("", key)).line
        yield Skipped(path, reason if number < MAX_SKIPPED else rest, line=line)


def _error(path: Path, document: JsonDocument, pointer: str, message: str) -> ConfigError:
    return setting_error(
        path,
        None,
        document.position(pointer),
        title=f"Invalid setting in {path}",
        message=message,
        closing='Write {"servers": [{"name": "…", "command": ["…"]}]} and try again.',
    )
