"""Reads files with servers; Nexus brings the servers in them into one form, whatever shape they have."""

from __future__ import annotations

import os
from itertools import islice
from typing import TYPE_CHECKING, Any

from nexus_core.plugin import (
    Admission,
    LayerConfig,
    Skipped,
    pointer_to,
    read_layer_json,
    read_layer_text,
    setting_error,
)
from nexus_plugins.mcp._files.container import NAMES, SETTING, find_container, is_something_else
from nexus_plugins.mcp._files.dialects import CLAUDE_HOME, DIALECTS, NEXUS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from pathlib import Path

    from nexus_core import ConfigError
    from nexus_core.plugin import JsonDocument, Layer
    from nexus_plugins.mcp._files.container import Container
    from nexus_plugins.mcp._files.dialects import Dialect
    from nexus_plugins.mcp._files.toml import TomlDocument

FILE = "mcp.json"
MAX_BYTES = 1024 * 1024
LARGEST_HOME = 32 * 1024 * 1024
"""Bytes of a file in which Claude Code keeps much else, such as what was said in years."""
MAX_SKIPPED = 100
"""How many keys that are not used are listed; the rest is counted."""


def read_layer(layer: Layer) -> list[LayerConfig | Skipped]:
    """The servers of a layer as its file has them, and a `Skipped` for everything beside them that is not used.

    Raises:
        ConfigError: The file is not JSON, or not what it must be. No value in it is shown, because any of them may be
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


def read_servers(
    path: Path, layer: Layer, dialect: Dialect, within: tuple[str, ...] = ()
) -> list[LayerConfig | Skipped]:
    """The servers in a file; raises as `read_layer`.

    Args:
        path: The file.
        layer: On whose behalf it is read.
        dialect: Whose file it is.
        within: The keys of what is read of it, from the outermost on, where that is not all of it.
    """
    document = _document(path, layer, LARGEST_HOME if dialect is CLAUDE_HOME else MAX_BYTES)
    if isinstance(document, Skipped):
        return [document]
    content, beginning = _inside(document.value, within)

    def fault(pointer: str, message: str) -> ConfigError:
        return _error(path, document, dialect, beginning + pointer, message)

    container = _container(content, dialect, fault)
    start = f"{beginning}/{container.key}" if container.key else beginning

    def position(pointer: str) -> tuple[int, int]:
        inside = pointer.removeprefix(f"/{SETTING}")
        return document.position(start + inside if inside != pointer else pointer)

    servers = container.servers
    if dialect is not NEXUS:
        from nexus_plugins.mcp._files.foreign import translate  # noqa: PLC0415 - few read the files of other tools

        servers = translate(servers, dialect.name, content)
    return [
        LayerConfig(path, {SETTING: servers}, position, content=content),
        *_skipped(path, document, container),
    ]


def _inside(content: Any, keys: tuple[str, ...]) -> tuple[Any, str]:  # noqa: ANN401 - any JSON value
    """What stands under keys in keys, an empty object where there is nothing; and its JSON pointer."""
    pointer = ""
    for key in keys:
        content, pointer = content.get(key, {}) if isinstance(content, dict) else {}, pointer_to(pointer, key)
    return content, pointer


def _container(content: Any, dialect: Dialect, fault: Callable[[str, str], ConfigError]) -> Container:  # noqa: ANN401 - as above
    """What holds the servers.

    Raises:
        ConfigError: It cannot be that; as `fault` makes it, of a JSON pointer and a message.
    """
    if not isinstance(content, dict):
        raise fault("", "the file must hold an object")
    for name in dict.fromkeys((*NAMES, dialect.container)):
        if not isinstance(content.get(name, []), dict | list):
            raise fault(f"/{name}", f"{name!r} must be a list or an object")
    container = find_container(content, dialect)
    for name in ("command", "url") if container.servers is content else ():
        if name in content and not isinstance(content[name], dict):
            raise fault(f"/{name}", "this is one server, and it has no name")
    if container.servers is content and is_something_else(content):
        raise fault("", "the file has settings in it, and no servers")
    return container


def _document(path: Path, layer: Layer, largest: int) -> JsonDocument | TomlDocument | Skipped:
    if path.suffix != ".toml":
        empty: Any = {"servers": []}
        return read_layer_json(path, Admission(layer), comments=True, empty=empty, quote=False, max_bytes=largest)
    from nexus_plugins.mcp._files.toml import parse_toml  # noqa: PLC0415 - as above

    text = read_layer_text(path, Admission(layer), quote=False)
    return text if isinstance(text, Skipped) else parse_toml(path, text)


def _skipped(path: Path, document: JsonDocument | TomlDocument, container: Container) -> Iterator[Skipped]:
    rest = f"{len(container.unused) - MAX_SKIPPED} more from here on"
    for number, (key, reason) in enumerate(islice(container.unused.items(), MAX_SKIPPED + 1)):
        line = document.position(pointer_to("", key))[0]
        is_mistake = number < MAX_SKIPPED
        yield Skipped(path, reason if is_mistake else rest, line=line, is_mistake=is_mistake)


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
