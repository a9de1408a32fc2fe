"""One MCP server: what is written about it becomes the one form that Nexus uses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.config.merging import is_comment
from nexus_core.config.pointers import pointer_to
from nexus_core.config.servers.fields import FIELDS, ShapeError, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator


class Note(NamedTuple):
    """Something that was not used, and where it stands."""

    pointer: str
    text: str


class Server(NamedTuple):
    """A server in the one form, where it stands, and where what is in it stands that is not found by its own name."""

    settings: dict[str, object]
    pointer: str
    places: dict[str, str]

    def place_of(self, part: str) -> str:
        """The JSON pointer of a part, such as `env/TOKEN`, in the file."""
        whole, rest = part, ""
        while whole and whole not in self.places:
            whole, _, last = whole.rpartition("/")
            rest = f"/{last}{rest}"
        return self.places.get(whole, self.pointer) + rest


def read_server(name: str, entry: dict[str, object], pointer: str, notes: list[Note]) -> Server | None:
    """The server, or None for one that is yet to be filled in; what is not used of it is added to `notes`.

    Raises:
        ShapeError: A field has a value of the wrong kind, or two of them contradict each other.
    """
    owner = f"server {quoted(name)}"
    fields, places = _fields(name, entry, pointer, notes)
    target = _target(fields, owner, pointer)
    if target is None:
        notes.append(Note(pointer, f"{owner} is left out, because its command or url is empty"))
        return None
    arguments = fields.get("args", ())
    if arguments and target == "url":
        notes.append(Note(places["args"], f"'args' of {owner} is not used, because there is no command"))
    elif arguments:
        # In the one form, the arguments follow the command in the same list.
        first = len(fields["command"])
        places |= {f"command/{first + n}": pointer_to(places["args"], n) for n in range(len(arguments))}
    return Server(_settings(fields, target, owner, places.get("type", pointer)), pointer, places)


def _fields(
    name: str, entry: dict[str, object], pointer: str, notes: list[Note]
) -> tuple[dict[str, Any], dict[str, str]]:
    """The values and the places of the fields, by the names they have in Nexus."""
    owner = f"server {quoted(name)}"
    fields: dict[str, Any] = {"name": name}
    places: dict[str, str] = {}
    for key, place, value in _written(entry, pointer):
        # Where the key is the server's name, another name in it would be a second one.
        if key not in FIELDS or (key == "name" and value != name):
            notes.append(Note(place, f"unknown key {quoted(key)} of {owner}"))
            continue
        field, convert = FIELDS[key]
        converted = convert(value, f"'{key}' of {owner}", place)
        if fields.setdefault(field, converted) != converted:
            other = places[field].rpartition("/")[2]
            raise ShapeError(place, f"'{key}' of {owner} contradicts its '{other}'", "Keep one of them")
        places.setdefault(field, place)
    return fields, places


def _written(entry: dict[str, object], pointer: str) -> Iterator[tuple[str, str, object]]:
    """Key, place and value of all that is said about a server; null says nothing."""
    for key, value in entry.items():
        place = pointer_to(pointer, key)
        if key == "transport" and isinstance(value, dict):
            yield from _written(value, place)
        elif value is not None and not is_comment(key):
            yield key, place, value


def _target(fields: dict[str, Any], owner: str, pointer: str) -> str | None:
    """Which of command and url the server has; None if what it has is empty."""
    said = [field for field in ("command", "url") if field in fields]
    filled = [field for field in said if fields[field]]
    if not said:
        raise ShapeError(pointer, f"{owner} has neither 'command' nor 'url'", "Give it one of them")
    if len(filled) > 1:
        raise ShapeError(pointer, f"{owner} has both 'command' and 'url'", "Keep one of them")
    return filled[0] if filled else None


def _settings(fields: dict[str, Any], target: str, owner: str, type_place: str) -> dict[str, object]:
    """The one form, its keys in a fixed order; of what is optional, only what was said."""
    usual = "stdio" if target == "command" else "http"
    transport = fields.get("type", usual)
    if (transport == "stdio") != (usual == "stdio"):
        raise ShapeError(
            type_place, f"{owner} has '{target}', but its type is {transport}", "Change or remove the type"
        )
    settings: dict[str, object] = {"name": fields["name"], "type": transport}
    if target == "command":
        settings["command"] = [*fields["command"], *fields.get("args", ())]
    else:
        settings["url"] = fields["url"]
    settings |= {field: fields[field] for field in ("env", "headers", "cwd") if field in fields}
    settings["enabled"] = fields.get("enabled", True)
    return settings
