"""The shapes in which servers are written: a list of objects that have a name, or an object that has them by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.config.merging import is_comment
from nexus_core.config.pointers import pointer_to
from nexus_core.config.servers.entry import Note, Server, read_server
from nexus_core.config.servers.fields import ShapeError, kind, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_SERVERS = 1_000
"""How many a file may have: every one of them is looked up on disk."""

_EXAMPLE = 'Write [{"name": "…", "command": ["…"]}]'


class Found(NamedTuple):
    """The servers in the order in which they are written, and what was not used."""

    servers: list[Server]
    notes: list[Note]


def read_servers(container: object, pointer: str) -> Found:
    """The servers in a list of objects that have a `name`, or in an object that has them by name.

    Raises:
        ShapeError: It is neither, or something in it cannot be a server.
    """
    if not isinstance(container, dict | list):
        what = f"'{pointer[1:]}' must be a list or an object, not {kind(container)}"
        raise ShapeError(pointer, what, _EXAMPLE)
    if len(container) > MAX_SERVERS:
        raise ShapeError(pointer, f"more than {MAX_SERVERS:,} servers", "Remove some")
    found = Found([], [])
    names: set[str] = set()
    for name, entry, place in _entries(container, pointer):
        if name in names:
            raise ShapeError(place, f"two servers are named {quoted(name)}", "Rename or remove one of them")
        names.add(name)
        server = read_server(name, entry, place, found.notes)
        if server is not None:
            found.servers.append(server)
    return found


def _entries(container: dict[str, Any] | list[Any], pointer: str) -> Iterator[tuple[str, dict[str, object], str]]:
    """Each server's name, what is written about it, and where."""
    if isinstance(container, list):
        for index, entry in enumerate(container):
            place, which = pointer_to(pointer, index), f"server {index + 1} of the list"
            _require_object(entry, place, which)
            name = entry.get("name")
            if not isinstance(name, str) or not name.strip():
                raise ShapeError(pointer_to(place, "name"), f"{which} needs a 'name': text that is not empty")
            yield name, entry, place
        return
    for name, entry in container.items():
        place = pointer_to(pointer, name)
        if is_comment(name):
            continue
        if not name.strip():
            raise ShapeError(place, "the name of a server must not be empty")
        _require_object(entry, place, f"server {quoted(name)}")
        yield name, entry, place


def _require_object(entry: object, place: str, which: str) -> None:
    if not isinstance(entry, dict):
        raise ShapeError(place, f"{which} must be an object, not {kind(entry)}", _EXAMPLE)
