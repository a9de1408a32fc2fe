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

LEFT_OUT = "the server is left out"
"""How a note ends about something that cannot be a server."""

_EXAMPLE = 'Write [{"name": "…", "command": ["…"]}]'


class Found(NamedTuple):
    """The servers in the order in which they are written, and what was not used."""

    servers: list[Server]
    notes: list[Note]


def read_servers(container: object, pointer: str, *, lenient: bool = False) -> Found:
    """The servers in a list of objects that have a `name`, or in an object that has them by name.

    Args:
        container: The list or the object.
        pointer: Where it stands.
        lenient: Whether what cannot be a server is left out, and noted, rather than refused.

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
    for token, entry, place in _entries(container, pointer):
        try:
            name = _name(token, entry, place)
            _require_new(name, names, place)
            names.add(name)
            server = read_server(name, entry, place, found.notes)
        except ShapeError as error:
            if not lenient:
                raise
            found.notes.append(Note(error.pointer, f"{error.what}; {LEFT_OUT}"))
            continue
        if server is not None:
            found.servers.append(server)
    return found


def _entries(container: dict[str, Any] | list[Any], pointer: str) -> Iterator[tuple[str | int, Any, str]]:
    """What each server is found by, what is written about it, and where; comments are passed over."""
    if isinstance(container, list):
        yield from ((index, entry, pointer_to(pointer, index)) for index, entry in enumerate(container))
        return
    for name, entry in container.items():
        if not is_comment(name):
            yield name, entry, pointer_to(pointer, name)


def _name(token: str | int, entry: Any, place: str) -> str:  # noqa: ANN401 - any JSON value
    """The name of a server.

    Raises:
        ShapeError: It has none, or it is no object.
    """
    if isinstance(token, int):
        which = f"server {token + 1} of the list"
        _require_object(entry, place, which)
        name = entry.get("name")
        if not isinstance(name, str) or not name.strip():
            raise ShapeError(pointer_to(place, "name"), f"{which} needs a 'name': text that is not empty")
        return name
    if not token.strip():
        raise ShapeError(place, "the name of a server must not be empty")
    _require_object(entry, place, f"server {quoted(token)}")
    return token


def _require_new(name: str, names: set[str], place: str) -> None:
    if name in names:
        raise ShapeError(place, f"two servers are named {quoted(name)}", "Rename or remove one of them")


def _require_object(entry: object, place: str, which: str) -> None:
    if not isinstance(entry, dict):
        raise ShapeError(place, f"{which} must be an object, not {kind(entry)}", _EXAMPLE)
