"""One MCP server: what is written about it becomes the one form that Nexus uses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.config.merging import is_comment
from nexus_core.config.pointers import pointer_to
from nexus_core.config.servers.fields import FIELDS, PassedOver, ShapeError, quoted
from nexus_core.config.servers.unheeded import FOR_READERS, UNHEEDED
from nexus_core.errors import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator


_LONGEST_FIELD = 60  # characters; for whatever is longer, no name is near
_OPTIONAL = ("env", "headers", "cwd", "env_file", "include_tools", "exclude_tools", "start_timeout", "call_timeout")


_TARGETS = ("command", "httpUrl", "serverUrl", "url")


class Note(NamedTuple):
    """A part of a file that has no effect.

    Attributes:
        pointer: Its JSON pointer.
        text: Why, in a few words.
        is_mistake: True if nobody writes that on purpose: a misspelt field, arguments that are never passed.
    """

    pointer: str
    text: str
    is_mistake: bool = False


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
    if not fields.keys() & {"command", "url"}:
        raise _without_target(entry, owner, pointer)
    target = _target(fields, owner, pointer)
    if target is None:
        notes.append(Note(pointer, f"{owner} is left out, because its command or url is empty"))
        return None
    arguments = fields.get("args", ())
    if arguments and (reason := _why_unused(entry, pointer, target)):
        fields["args"] = ()
        notes.append(Note(places["args"], f"'args' of {owner} is not used, because {reason}", is_mistake=True))
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
        if key not in FIELDS:
            notes += _unused(key, value, owner, place)
            continue
        if key == "name" and value != name:  # where the key is the server's name, this is a second one
            notes.append(Note(place, f"'name' of {owner} has no effect: its key is its name", is_mistake=True))
            continue
        field, convert = FIELDS[key]
        try:
            converted = convert(value, f"'{key}' of {owner}", place)
        except PassedOver as reason:
            notes.append(Note(place, f"'{key}' of {owner} has no effect: {reason}"))
            continue
        if fields.setdefault(field, converted) != converted:
            other = places[field].rpartition("/")[2]
            raise ShapeError(place, f"'{key}' of {owner} contradicts its '{other}'", "Keep one of them")
        places.setdefault(field, place)
    if "env_passthrough" in fields:
        _pass_through(fields, places)
    return fields, places


def _why_unused(entry: dict[str, object], pointer: str, target: str) -> str:
    """Return why the arguments of a server have no effect, "" if they follow its command."""
    if target == "url":
        return "there is no command"
    written = {key: value for key, _, value in _written(entry, pointer)}
    return "the command is a list, which has its own arguments" if isinstance(written["command"], list) else ""


def _unused(key: str, value: object, owner: str, place: str) -> Iterator[Note]:
    """What there is to say about a field that Nexus does not use."""
    if key in UNHEEDED:
        if value:  # `"trust": false` asks for nothing
            yield Note(place, f"'{key}' of {owner} has no effect: {UNHEEDED[key]}")
    elif key not in FOR_READERS:
        nearest = did_you_mean(key, FIELDS) if len(key) <= _LONGEST_FIELD else ""
        yield Note(place, f"unknown key {quoted(key)} of {owner}{nearest and '; '}{nearest}", is_mistake=True)


def _pass_through(fields: dict[str, Any], places: dict[str, str]) -> None:
    """In the one form, a variable that is passed through is one that refers to itself, and need not be set."""
    passed = {name: number for number, name in enumerate(fields["env_passthrough"])}
    for name, number in passed.items():
        if name not in fields.get("env", {}):
            places[pointer_to("env", name)] = pointer_to(places["env_passthrough"], number)
    fields["env"] = {name: f"${{{name}:-}}" for name in passed} | fields.get("env", {})


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
    filled = [field for field in ("command", "url") if fields.get(field)]
    if len(filled) > 1:
        raise ShapeError(pointer, f"{owner} has both 'command' and 'url'", "Keep one of them")
    return filled[0] if filled else None


def _without_target(entry: dict[str, object], owner: str, pointer: str) -> ShapeError:
    """What is wrong with a server that has neither of command and url: most often, something is misspelt."""
    what = f"{owner} has neither 'command' nor 'url'"
    if _holds_servers(entry):
        return ShapeError(pointer, f"{what}, but servers inside it", "Call it 'mcpServers', or move them one level up")
    for key in entry:
        nearest = did_you_mean(key, _TARGETS) if key not in FIELDS and len(key) <= _LONGEST_FIELD else ""
        if nearest:
            return ShapeError(pointer_to(pointer, key), f"{what}, but {quoted(key)}; {nearest}", "Correct the name")
    return ShapeError(pointer, what, "Give it one of them")


def _holds_servers(value: object, depth: int = 2) -> bool:
    """Whether servers are in it, or in something in it: somebody wrote `mcpServer`, or `{"mcp": {"servers": …}}`."""
    inner = [each for each in value.values() if isinstance(each, dict)] if isinstance(value, dict) else []
    return depth > 0 and any("command" in each or "url" in each or _holds_servers(each, depth - 1) for each in inner)


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
    settings |= {field: fields[field] for field in _OPTIONAL if field in fields}
    settings["enabled"] = fields.get("enabled", True)
    return settings
