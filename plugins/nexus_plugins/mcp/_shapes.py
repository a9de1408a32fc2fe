"""The shapes in which a file holds MCP servers: a list, an object by name, or the same with nothing around it.

Nothing here knows about files: places are JSON pointers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nexus_plugins.mcp._fields import ShapeError, is_comment, kind, member, quoted
from nexus_plugins.mcp._server import Note, Server, read_server

if TYPE_CHECKING:
    from collections.abc import Iterator

_CONTAINERS = ("mcpServers", "servers")  # where both hold servers, the first one counts
_EXAMPLE = 'write {"servers": [{"name": "…", "command": ["…"]}]}'


class Found(NamedTuple):
    """The place that holds the servers, the servers in their order, and what was not used."""

    pointer: str
    servers: list[Server]
    notes: list[Note]


def find_servers(document: object) -> Found:
    """The servers in a whole document: under `mcpServers`, under `servers`, or with nothing around them.

    Raises:
        ShapeError: It is not an object, or holds something that cannot be a server.
    """
    if not isinstance(document, dict):
        raise ShapeError("", f"the file must hold an object, not {kind(document)}", _EXAMPLE)
    present = [key for key in _CONTAINERS if key in document]
    if not present:
        return read_servers(document, "")
    for key in present:
        _require_container(document[key], member("", key))
    chosen = next((key for key in present if document[key]), present[-1])
    found = read_servers(document[chosen], member("", chosen))
    for key, value in document.items():
        if key not in present and not is_comment(key):
            found.notes.append(Note(member("", key), f"unknown key {quoted(key)}"))
        elif key in present and key != chosen and value:
            found.notes.append(Note(member("", key), f"'{key}' is not read, because '{chosen}' has servers"))
    return found


def read_servers(container: object, pointer: str) -> Found:
    """The servers in a list of objects that have a `name`, or in an object that has them by name.

    Raises:
        ShapeError: It is neither, or something in it cannot be a server.
    """
    _require_container(container, pointer)
    found = Found(pointer, [], [])
    names: set[str] = set()
    for name, entry, place in _entries(container, pointer):
        if name in names:
            raise ShapeError(place, f"two servers are named {quoted(name)}", "rename or remove one of them")
        names.add(name)
        server = read_server(name, entry, place, found.notes)
        if server is not None:
            found.servers.append(server)
    return found


def _require_container(value: object, pointer: str) -> None:
    if not isinstance(value, dict | list):
        raise ShapeError(pointer, f"'{pointer[1:]}' must be a list or an object, not {kind(value)}", _EXAMPLE)


def _entries(container: object, pointer: str) -> Iterator[tuple[str, dict[str, object], str]]:
    """Each server's name, what is written about it, and where."""
    if isinstance(container, list):
        for index, entry in enumerate(container):
            place, which = member(pointer, index), f"server {index + 1} of the list"
            _require_object(entry, place, which)
            name = entry.get("name")
            if not isinstance(name, str) or not name.strip():
                raise ShapeError(member(place, "name"), f"{which} needs a 'name': text that is not empty")
            yield name, entry, place
    elif isinstance(container, dict):
        for name, entry in container.items():
            place = member(pointer, name)
            if is_comment(name):
                continue
            if not name.strip():
                raise ShapeError(place, "the name of a server must not be empty")
            _require_object(entry, place, f"server {quoted(name)}")
            yield name, entry, place


def _require_object(entry: object, place: str, which: str) -> None:
    if not isinstance(entry, dict):
        raise ShapeError(place, f"{which} must be an object, not {kind(entry)}", _EXAMPLE)
