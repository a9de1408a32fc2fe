"""Reads files with servers; Nexus brings the servers in them into one form, whatever shape they have."""

from __future__ import annotations

import os
from itertools import islice
from typing import TYPE_CHECKING

from nexus_core.plugin import Admission, LayerConfig, Skipped, pointer_to, read_layer_json, setting_error
from nexus_plugins.mcp._container import NAMES, SETTING, find_container, is_something_else
from nexus_plugins.mcp._dialects import DIALECTS, NEXUS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from nexus_core import ConfigError
    from nexus_core.plugin import JsonDocument, Layer
    from nexus_plugins.mcp._container import Container
    from nexus_plugins.mcp._dialects import Dialect
    from nexus_plugins.mcp._toml import TomlDocument

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
    return read_servers(layer.directory / FILE, layer, NEXUS)


def read_other_tools(layer: Layer, names: Collection[str]) -> Iterator[LayerConfig | Skipped]:
    """The servers in the files of other tools, each by its name; raises as `read_layer`."""
    for dialect in DIALECTS.values():
        paths = [layer.project / name for name in dialect.files] if dialect.name in names else []
        there = next((path for path in paths if os.path.lexists(path)), None)
        if there is not None:
            yield from read_servers(there, layer, dialect)
        elif paths:
            yield Skipped(paths[0], "not there")


def read_servers(path: Path, layer: Layer, dialect: Dialect) -> list[LayerConfig | Skipped]:
    """The servers in a file; raises as `read_layer`."""
    document = _document(path, layer)
    if isinstance(document, Skipped):
        return [document]
    content = document.value
    if not isinstance(content, dict):
        raise _error(path, document, dialect, "", "the file must hold an object")
    for name in {*NAMES, dialect.container}:
        if not isinstance(content.get(name, []), dict | list):
            raise _error(path, document, dialect, f"/{name}", f"{name!r} must be a list or an object")
    container = find_container(content, dialect)
    for name in ("command", "url") if container.servers is content else ():
        if name in content and not isinstance(content[name], dict):
            raise _error(path, document, dialect, f"/{name}", "this is one server, and it has no name")
    if container.servers is content and is_something_else(content):
        raise _error(path, document, dialect, "", "the file has settings in it, and no servers")
    start = f"/{container.key}" if container.key else ""

    def position(pointer: str) -> tuple[int, int]:
        inside = pointer.removeprefix(f"/{SETTING}")
        return document.position(start + inside if inside != pointer else pointer)

    servers = container.servers
    if dialect is not NEXUS:
        from nexus_plugins.mcp._foreign import translate  # noqa: PLC0415 - few read the files of other tools

        servers = translate(servers, dialect.name)
    return [
        LayerConfig(path, {SETTING: servers}, position, content=content),
        *_skipped(path, document, container),
    ]


def _document(path: Path, layer: Layer) -> JsonDocument | TomlDocument | Skipped:
    if path.suffix != ".toml":
        return read_layer_json(path, Admission(layer), comments=True, empty={"servers": []}, quote=False)
    from nexus_plugins.mcp._toml import parse_toml  # noqa: PLC0415 - as above

    text = Admission(layer).read_text(path)
    return text if isinstance(text, Skipped) else parse_toml(path, text)


def _skipped(path: Path, document: JsonDocument | TomlDocument, container: Container) -> Iterator[Skipped]:
    rest = f"{len(container.unused) - MAX_SKIPPED} more from here on"
    for number, (key, reason) in enumerate(islice(container.unused.items(), MAX_SKIPPED + 1)):
        line = document.position(pointer_to("", key))[0]
        yield Skipped(path, reason if number < MAX_SKIPPED else rest, line=line)


def _error(
    path: Path, document: JsonDocument | TomlDocument, dialect: Dialect, pointer: str, message: str
) -> ConfigError:
    return setting_error(
        path,
        None,
        document.position(pointer),
        title=f"Invalid setting in {path}",
        message=message,
        closing=f"Write {_example(dialect)} and try again.",
    )


def _example(dialect: Dialect) -> str:
    if dialect is NEXUS:
        return '{"servers": [{"name": "…", "command": ["…"]}]}'
    command = '["…"]' if dialect.command_list else '"…"'
    if dialect.name == "codex":
        return f"[{dialect.container}.NAME] and below it command = {command}"
    return f'{{"{dialect.container}": {{"…": {{"command": {command}}}}}}}'
