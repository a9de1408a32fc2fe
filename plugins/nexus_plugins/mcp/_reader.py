"""Reads the mcp.json of a layer, and says where in it each server stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core import ConfigError, LayerConfig, Skipped
from nexus_core.plugin import Admission, read_json
from nexus_plugins.mcp._fields import ShapeError
from nexus_plugins.mcp._shapes import find_servers, read_servers

if TYPE_CHECKING:
    from nexus_core import Layer
    from nexus_plugins.mcp._shapes import Found

FILE = "mcp.json"
SETTING = "mcp_servers"


def read_layer(layer: Layer) -> list[LayerConfig | Skipped]:
    """The servers of a layer, sorted as in its file, and a `Skipped` for everything in it that was not used.

    Raises:
        ConfigError: The file is not JSON, or says something that cannot be meant. It names the place, the server and
            the field, but shows no line of the file: any of them may hold a password.
        FileError: The file cannot be read.
    """
    path = layer.directory / FILE
    admission = Admission(layer)
    if reason := admission.objection(path):
        return [Skipped(path, reason)]
    try:
        document = read_json(admission.resolve(path), comments=True, empty={"servers": []})
    except ConfigError as error:
        # Without its report, which shows the lines around the error.
        raise ConfigError(error.what, where=error.where, hint=error.hint) from None
    if document is None:
        return [Skipped(path, "not there")]
    try:
        found = find_servers(document.value)
    except ShapeError as error:
        line, column = document.position(error.pointer)
        raise ConfigError(
            f"{error.what} (layer {layer.name})", where=f"{path}:{line}:{column}", hint=error.hint
        ) from None
    settings: dict[str, object] = {SETTING: [server.settings for server in found.servers]}
    return [
        LayerConfig(path, settings, lambda pointer: document.position(_place(found, pointer))),
        *(Skipped(path, f"{note.text} (line {document.position(note.pointer)[0]})") for note in found.notes),
    ]


def servers_of(value: object) -> list[dict[str, object]]:
    """The servers of a setting `mcp_servers` in another file, where it is a list or an object by name.

    Raises:
        ConfigError: It cannot be used; `where` is a JSON pointer, as the file is not known here.
    """
    try:
        return [server.settings for server in read_servers(value, f"/{SETTING}").servers]
    except ShapeError as error:
        raise ConfigError(error.what, where=error.pointer, hint=error.hint) from None


def _place(found: Found, pointer: str) -> str:
    """Where in the file that stands which is at `pointer` in the settings."""
    if not pointer:
        return ""
    index, _, part = pointer.removeprefix(f"/{SETTING}").removeprefix("/").partition("/")
    if not index.isdecimal() or int(index) >= len(found.servers):
        return found.pointer
    return found.servers[int(index)].place_of(part)
