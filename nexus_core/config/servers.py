"""MCP servers in the formats of many tools, normalized to one.

A file has them as a list of objects with a name, or as an object by name, under `mcp_servers` or `mcpServers`. Fields
have different names in different tools, and some have no effect in Nexus. Messages name the server and the field, never
the value, because a value may be a password. The module is imported only if there are servers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.config.durations import is_duration
from nexus_core.config.load import setting_error
from nexus_core.config.merge import REMOVE_KEY, REPLACE_KEY, is_comment, is_list_edit
from nexus_core.config.pointers import SERVERS, SERVERS_ALIAS, has_servers, pointer_to
from nexus_core.errors import did_you_mean
from nexus_core.types.layers import SkippedFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from nexus_core.types.layers import LayerConfig

_APPROVAL_REASON = "what runs without asking is your decision, not a file's"
_LOGIN_REASON = "Nexus does not sign in; put a token into 'headers', as ${NAME}"
_SANDBOX_REASON = "Nexus has no sandbox: the server runs with all your rights"
_FAILURE_REASON = "a server that fails stops nothing else"
_ENVIRONMENT_REASON = "servers are started on this machine"
_DEVELOPMENT_REASON = "Nexus neither watches nor debugs servers"
_LOADING_REASON = "Nexus offers all tools from the start"
_PARALLEL_REASON = "calls to a server run as they come"

UNSUPPORTED_FIELDS = {
    "alwaysAllow": _APPROVAL_REASON,
    "always_allow": _APPROVAL_REASON,
    "approval_mode": _APPROVAL_REASON,
    "autoApprove": _APPROVAL_REASON,
    "auto_approve": _APPROVAL_REASON,
    "default_tools_approval_mode": _APPROVAL_REASON,
    "trust": _APPROVAL_REASON,
    "auth": _LOGIN_REASON,
    "authProviderType": _LOGIN_REASON,
    "bearer_token": _LOGIN_REASON,
    "headersHelper": _LOGIN_REASON,
    "oauth": _LOGIN_REASON,
    "oauth_resource": _LOGIN_REASON,
    "scopes": _LOGIN_REASON,
    "targetAudience": _LOGIN_REASON,
    "targetServiceAccount": _LOGIN_REASON,
    "sandbox": _SANDBOX_REASON,
    "sandboxEnabled": _SANDBOX_REASON,
    "fail_if_no_tools": _FAILURE_REASON,
    "required": _FAILURE_REASON,
    "experimental_environment": _ENVIRONMENT_REASON,
    "dev": _DEVELOPMENT_REASON,
    "alwaysLoad": _LOADING_REASON,
    "supports_parallel_tool_calls": _PARALLEL_REASON,
}
"""By field, why Nexus does not use it. A field with a false or empty value is not reported."""

INFORMATIONAL_FIELDS = frozenset({"description", "displayName", "gallery", "icon", "title", "version"})
"""Fields for people and marketplaces, which have no effect anywhere."""

_JSON_TYPE_NAMES = {
    dict: "an object",
    list: "a list",
    str: "text",
    bool: "true or false",
    int: "a number",
    float: "a number",
}
_TRANSPORTS = {
    "stdio": "stdio",
    "local": "stdio",
    "http": "http",
    "remote": "http",
    "streamablehttp": "http",
    "sse": "sse",
}
_MAX_NAME_CHARACTERS = 60  # characters of a name that a message repeats
_ALL_TOOLS = "*"  # in place of tool names
MAX_WAIT_SECONDS = 24 * 3600
"""Longest timeout in seconds; a larger value is not meant as a limit."""
_MAX_NUMBER = 10**12


class ServerFormatError(Exception):
    """Raised for an invalid definition. Has its JSON pointer, what is wrong and what to do."""

    def __init__(self, pointer: str, what: str, advice: str = "Correct the setting") -> None:
        super().__init__(what)
        self.pointer = pointer
        self.what = what
        self.advice = advice


class UnusedFieldValue(Exception):  # noqa: N818 - not an error: the field is ignored, and the message says why
    """Raised when a value cannot be used although the server is valid."""


def quote_name(name: str) -> str:
    """Return a name from a file for messages: in quotes, in one line, shortened."""
    return repr(name if len(name) <= _MAX_NAME_CHARACTERS else f"{name[:_MAX_NAME_CHARACTERS]}…")


def describe_json_type(value: object) -> str:
    """Return the JSON type of a value, as messages name it."""
    return _JSON_TYPE_NAMES.get(type(value), "null")


# ---- converters: each gets the value, its name for messages, and its JSON pointer -------------------------


def _convert_text(value: object, what: str, place: str) -> str:
    if not isinstance(value, str):
        raise ServerFormatError(place, f"{what} must be text, not {describe_json_type(value)}")
    return value


def _convert_word(value: object, what: str, place: str) -> str:
    # Ports and switches are often written as numbers and booleans; a program gets them in JSON spelling.
    if isinstance(value, bool | int | float):
        return str(value).lower()
    return _convert_text(value, what, place)


def _convert_words(value: object, what: str, place: str) -> list[str]:
    if not isinstance(value, list):
        raise ServerFormatError(place, f"{what} must be a list, not {describe_json_type(value)}")
    return [
        _convert_word(item, f"item {n} in {what}", pointer_to(place, n - 1)) for n, item in enumerate(value, start=1)
    ]


def _convert_command(value: object, what: str, place: str) -> list[str]:
    # A string is one program, even with blanks: splitting it would mean guessing the rules of a shell.
    if isinstance(value, str):
        return [value] if value.strip() else []
    if not isinstance(value, list):
        raise ServerFormatError(place, f"{what} must be a list or text, not {describe_json_type(value)}")
    words = _convert_words(value, what, place)
    return words if words and words[0].strip() else []


def _convert_url(value: object, what: str, place: str) -> str:
    return _convert_text(value, what, place).strip()


def _convert_table(value: object, what: str, place: str) -> dict[str, str]:
    if not isinstance(value, dict):
        raise ServerFormatError(place, f"{what} must be an object, not {describe_json_type(value)}")
    written = ((name, each) for name, each in value.items() if each is not None)
    return {
        name: _convert_word(each, f"{quote_name(name)} in {what}", pointer_to(place, name)) for name, each in written
    }


def _convert_flag(value: object, what: str, place: str) -> bool:
    if not isinstance(value, bool):
        raise ServerFormatError(place, f"{what} must be true or false, not {describe_json_type(value)}")
    return value


def _convert_negated_flag(value: object, what: str, place: str) -> bool:
    return not _convert_flag(value, what, place)


def _convert_transport(value: object, what: str, place: str) -> str:
    # `streamable-http`, `streamableHttp` and `streamable_http` are all in use.
    word = _convert_text(value, what, place).lower().replace("-", "").replace("_", "")
    if word not in _TRANSPORTS:
        raise ServerFormatError(place, f"{what} is not a known type", "Write stdio, http or sse")
    return _TRANSPORTS[word]


def _convert_names(value: object, what: str, place: str) -> list[str]:
    if not isinstance(value, list):
        raise ServerFormatError(place, f"{what} must be a list, not {describe_json_type(value)}")
    return [
        _convert_text(item, f"item {n} in {what}", pointer_to(place, n - 1)) for n, item in enumerate(value, start=1)
    ]


def _convert_tool_names(value: object, what: str, place: str) -> list[str]:
    # Copilot lists tool names here; Codex uses the field for tools that run without asking.
    if isinstance(value, dict):
        raise UnusedFieldValue(_APPROVAL_REASON)
    names = _convert_names(value, what, place)
    if _ALL_TOOLS in names:
        raise UnusedFieldValue("all tools are offered anyway")
    return names


def _convert_number(value: object, what: str, place: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ServerFormatError(place, f"{what} must be a number, not {describe_json_type(value)}")
    return min(value, _MAX_NUMBER)  # an integer may exceed every float


def _convert_seconds(value: object, what: str, place: str) -> float:
    seconds = _convert_number(value, what, place)
    if not is_duration(seconds, limit=MAX_WAIT_SECONDS):
        raise UnusedFieldValue(f"it must be above 0 and at most {MAX_WAIT_SECONDS:,} seconds")
    return seconds


def _convert_milliseconds(value: object, what: str, place: str) -> float:
    # Some tools use seconds for this field: less than one second in milliseconds is never intended.
    seconds = _convert_number(value, what, place) / 1000
    if not 1 <= seconds <= MAX_WAIT_SECONDS:
        raise UnusedFieldValue(f"it is in milliseconds, and must be 1,000 to {MAX_WAIT_SECONDS * 1000:,}")
    return seconds


SERVER_FIELDS: dict[str, tuple[str, Callable[[object, str, str], Any]]] = {
    "name": ("name", _convert_text),
    "type": ("type", _convert_transport),
    "transport": ("type", _convert_transport),
    "command": ("command", _convert_command),
    "args": ("args", _convert_words),
    "url": ("url", _convert_url),
    "httpUrl": ("url", _convert_url),
    "serverUrl": ("url", _convert_url),
    "env": ("env", _convert_table),
    "environment": ("env", _convert_table),
    "headers": ("headers", _convert_table),
    "http_headers": ("headers", _convert_table),
    "cwd": ("cwd", _convert_text),
    "env_file": ("env_file", _convert_text),
    "envFile": ("env_file", _convert_text),
    "env_passthrough": ("env_passthrough", _convert_names),
    "env_vars": ("env_passthrough", _convert_names),
    "include_tools": ("include_tools", _convert_names),
    "includeTools": ("include_tools", _convert_names),
    "enabled_tools": ("include_tools", _convert_names),
    "enabledTools": ("include_tools", _convert_names),
    "tools": ("include_tools", _convert_tool_names),
    "exclude_tools": ("exclude_tools", _convert_names),
    "excludeTools": ("exclude_tools", _convert_names),
    "disabled_tools": ("exclude_tools", _convert_names),
    "disabledTools": ("exclude_tools", _convert_names),
    "start_timeout": ("start_timeout", _convert_seconds),
    "startup_timeout_sec": ("start_timeout", _convert_seconds),
    "startup_timeout_ms": ("start_timeout", _convert_milliseconds),
    "call_timeout": ("call_timeout", _convert_seconds),
    "tool_timeout_sec": ("call_timeout", _convert_seconds),
    "timeout": ("call_timeout", _convert_milliseconds),
    "enabled": ("enabled", _convert_flag),
    "disabled": ("enabled", _convert_negated_flag),
}
"""By the name in a file: the name in Nexus, and the function that converts the value."""


_MAX_FIELD_CHARACTERS = 60  # characters; longer names are not compared with known ones
_OPTIONAL_FIELDS = (
    "env",
    "headers",
    "cwd",
    "env_file",
    "include_tools",
    "exclude_tools",
    "start_timeout",
    "call_timeout",
)


_TARGET_FIELDS = ("command", "httpUrl", "serverUrl", "url")


class ServerNote(NamedTuple):
    """A part of a file that has no effect.

    Attributes:
        pointer: Its JSON pointer.
        text: Why, in a few words.
        is_mistake: True if it is never intended: a misspelt field, arguments that are never passed.
    """

    pointer: str
    text: str
    is_mistake: bool = False


class NormalizedServer(NamedTuple):
    """A server in the normalized form, its JSON pointer in the file, and the pointers of its parts."""

    settings: dict[str, object]
    pointer: str
    places: dict[str, str]

    def place_of(self, part: str) -> str:
        """Return the JSON pointer in the file of a part such as `env/TOKEN`."""
        known, rest = part, ""
        while known and known not in self.places:
            known, _, last = known.rpartition("/")
            rest = f"/{last}{rest}"
        return self.places.get(known, self.pointer) + rest


def read_server(name: str, entry: dict[str, object], pointer: str, notes: list[ServerNote]) -> NormalizedServer | None:
    """Return the server, or None if its command or url is still empty. Adds unused parts to `notes`.

    Raises:
        ServerFormatError: A field has a value of the wrong type, or two of them contradict each other.
    """
    owner = f"server {quote_name(name)}"
    fields, places = _convert_fields(name, entry, pointer, notes)
    if not fields.keys() & {"command", "url"}:
        raise _missing_target_error(entry, owner, pointer)
    target = _choose_target(fields, owner, pointer)
    if target is None:
        notes.append(ServerNote(pointer, f"{owner} is left out, because its command or url is empty"))
        return None
    arguments = fields.get("args", ())
    if arguments and (reason := _explain_unused_args(entry, pointer, target)):
        fields["args"] = ()
        notes.append(ServerNote(places["args"], f"'args' of {owner} is not used, because {reason}", is_mistake=True))
    elif arguments:
        # In the normalized form, the arguments follow the command in the same list.
        first = len(fields["command"])
        places |= {f"command/{first + n}": pointer_to(places["args"], n) for n in range(len(arguments))}
    return NormalizedServer(_build_settings(fields, target, owner, places.get("type", pointer)), pointer, places)


def _convert_fields(
    name: str, entry: dict[str, object], pointer: str, notes: list[ServerNote]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the values and the JSON pointers of the fields, by their names in Nexus."""
    owner = f"server {quote_name(name)}"
    fields: dict[str, Any] = {"name": name}
    places: dict[str, str] = {}
    for key, place, value in _iter_written_fields(entry, pointer):
        if key not in SERVER_FIELDS:
            notes += _note_unused_field(key, value, owner, place)
            continue
        if key == "name" and value != name:  # the key of the object is the name already
            notes.append(ServerNote(place, f"'name' of {owner} has no effect: its key is its name", is_mistake=True))
            continue
        field, convert = SERVER_FIELDS[key]
        try:
            converted = convert(value, f"'{key}' of {owner}", place)
        except UnusedFieldValue as reason:
            notes.append(ServerNote(place, f"'{key}' of {owner} has no effect: {reason}"))
            continue
        if fields.setdefault(field, converted) != converted:
            other = places[field].rpartition("/")[2]
            raise ServerFormatError(place, f"'{key}' of {owner} contradicts its '{other}'", "Keep one of them")
        places.setdefault(field, place)
    if "env_passthrough" in fields:
        _expand_passthrough(fields, places)
    return fields, places


def _explain_unused_args(entry: dict[str, object], pointer: str, target: str) -> str:
    """Return why the arguments of a server have no effect, "" if they follow its command."""
    if target == "url":
        return "there is no command"
    written = {key: value for key, _, value in _iter_written_fields(entry, pointer)}
    return "the command is a list, which has its own arguments" if isinstance(written["command"], list) else ""


def _note_unused_field(key: str, value: object, owner: str, place: str) -> Iterator[ServerNote]:
    """Yield notes about a field that Nexus does not use."""
    if key in UNSUPPORTED_FIELDS:
        if value:  # `"trust": false` requests nothing
            yield ServerNote(place, f"'{key}' of {owner} has no effect: {UNSUPPORTED_FIELDS[key]}")
    elif key not in INFORMATIONAL_FIELDS:
        nearest = did_you_mean(key, SERVER_FIELDS) if len(key) <= _MAX_FIELD_CHARACTERS else ""
        yield ServerNote(place, f"unknown key {quote_name(key)} of {owner}{nearest and '; '}{nearest}", is_mistake=True)


def _expand_passthrough(fields: dict[str, Any], places: dict[str, str]) -> None:
    """Turn passed-through variables into variables that refer to themselves and need not be set."""
    passed = {name: number for number, name in enumerate(fields["env_passthrough"])}
    for name, number in passed.items():
        if name not in fields.get("env", {}):
            places[pointer_to("env", name)] = pointer_to(places["env_passthrough"], number)
    fields["env"] = {name: f"${{{name}:-}}" for name in passed} | fields.get("env", {})


def _iter_written_fields(entry: dict[str, object], pointer: str) -> Iterator[tuple[str, str, object]]:
    """Yield key, JSON pointer and value of every field of a server except null and comments."""
    for key, value in entry.items():
        place = pointer_to(pointer, key)
        if key == "transport" and isinstance(value, dict):
            yield from _iter_written_fields(value, place)
        elif value is not None and not is_comment(key):
            yield key, place, value


def _choose_target(fields: dict[str, Any], owner: str, pointer: str) -> str | None:
    """Return which of command and url the server has, or None if it is empty."""
    filled = [field for field in ("command", "url") if fields.get(field)]
    if len(filled) > 1:
        raise ServerFormatError(pointer, f"{owner} has both 'command' and 'url'", "Keep one of them")
    return filled[0] if filled else None


def _missing_target_error(entry: dict[str, object], owner: str, pointer: str) -> ServerFormatError:
    """Return the error for a server with neither command nor url, which is most often misspelt."""
    what = f"{owner} has neither 'command' nor 'url'"
    if _holds_servers(entry):
        return ServerFormatError(
            pointer, f"{what}, but servers inside it", "Call it 'mcpServers', or move them one level up"
        )
    for key in entry:
        nearest = (
            did_you_mean(key, _TARGET_FIELDS) if key not in SERVER_FIELDS and len(key) <= _MAX_FIELD_CHARACTERS else ""
        )
        if nearest:
            return ServerFormatError(
                pointer_to(pointer, key), f"{what}, but {quote_name(key)}; {nearest}", "Correct the name"
            )
    return ServerFormatError(pointer, what, "Give it one of them")


def _holds_servers(value: object, depth: int = 2) -> bool:
    """Return True if a value contains servers, at most two levels deep: `mcpServer`, `{"mcp": {"servers": …}}`."""
    inner = [each for each in value.values() if isinstance(each, dict)] if isinstance(value, dict) else []
    return depth > 0 and any("command" in each or "url" in each or _holds_servers(each, depth - 1) for each in inner)


def _build_settings(fields: dict[str, Any], target: str, owner: str, type_place: str) -> dict[str, object]:
    """Return the normalized form, its keys in a fixed order. Optional fields are included only if they are set."""
    default = "stdio" if target == "command" else "http"
    transport = fields.get("type", default)
    if (transport == "stdio") != (default == "stdio"):
        raise ServerFormatError(
            type_place, f"{owner} has '{target}', but its type is {transport}", "Change or remove the type"
        )
    settings: dict[str, object] = {"name": fields["name"], "type": transport}
    if target == "command":
        settings["command"] = [*fields["command"], *fields.get("args", ())]
    else:
        settings["url"] = fields["url"]
    settings |= {field: fields[field] for field in _OPTIONAL_FIELDS if field in fields}
    settings["enabled"] = fields.get("enabled", True)
    return settings


MAX_SERVERS = 1_000
"""Most servers of a file: each of them is searched on disk."""

SERVER_SKIPPED = "the server is left out"
"""The end of a note about an entry that is not a server."""

_EXAMPLE_HINT = 'Write [{"name": "…", "command": ["…"]}]'


class ParsedServers(NamedTuple):
    """The servers in the order of the file, and notes about unused parts."""

    servers: list[NormalizedServer]
    notes: list[ServerNote]


def read_servers(container: object, pointer: str, *, lenient: bool = False) -> ParsedServers:
    """Return the servers in a list of objects that have a `name`, or in an object by name.

    Args:
        container: The list or the object.
        pointer: Its JSON pointer.
        lenient: True to skip and note an invalid server instead of raising.

    Raises:
        ServerFormatError: It is neither, or contains an invalid server.
    """
    if not isinstance(container, dict | list):
        what = f"'{pointer[1:]}' must be a list or an object, not {describe_json_type(container)}"
        raise ServerFormatError(pointer, what, _EXAMPLE_HINT)
    if len(container) > MAX_SERVERS:
        raise ServerFormatError(pointer, f"more than {MAX_SERVERS:,} servers", "Remove some")
    found = ParsedServers([], [])
    names: set[str] = set()
    for token, entry, place in _iter_entries(container, pointer):
        try:
            name = _get_server_name(token, entry, place)
            _require_new_name(name, names, place)
            names.add(name)
            server = read_server(name, entry, place, found.notes)
        except ServerFormatError as error:
            if not lenient:
                raise
            found.notes.append(ServerNote(error.pointer, f"{error.what}; {SERVER_SKIPPED}"))
            continue
        if server is not None:
            found.servers.append(server)
    return found


def _iter_entries(container: dict[str, Any] | list[Any], pointer: str) -> Iterator[tuple[str | int, Any, str]]:
    """Yield key or index, definition and JSON pointer of each server, without comments."""
    if isinstance(container, list):
        yield from ((index, entry, pointer_to(pointer, index)) for index, entry in enumerate(container))
        return
    for name, entry in container.items():
        if not is_comment(name):
            yield name, entry, pointer_to(pointer, name)


def _get_server_name(token: str | int, entry: Any, place: str) -> str:  # noqa: ANN401 - any JSON value
    """Return the name of a server.

    Raises:
        ServerFormatError: It has none, or it is not an object.
    """
    if isinstance(token, int):
        which = f"server {token + 1} of the list"
        _require_object(entry, place, which)
        name = entry.get("name")
        if not isinstance(name, str) or not name.strip():
            raise ServerFormatError(pointer_to(place, "name"), f"{which} needs a 'name': text that is not empty")
        return name
    if not token.strip():
        raise ServerFormatError(place, "the name of a server must not be empty")
    _require_object(entry, place, f"server {quote_name(token)}")
    return token


def _require_new_name(name: str, names: set[str], place: str) -> None:
    if name in names:
        raise ServerFormatError(place, f"two servers are named {quote_name(name)}", "Rename or remove one of them")


def _require_object(entry: object, place: str, which: str) -> None:
    if not isinstance(entry, dict):
        raise ServerFormatError(place, f"{which} must be an object, not {describe_json_type(entry)}", _EXAMPLE_HINT)


MAX_NOTES = 100
"""Notes of one file that are listed; the rest is counted."""


def normalize_servers(
    configs: Iterable[LayerConfig], skipped: list[SkippedFile], *, lenient: bool = False
) -> list[LayerConfig]:
    """Return the settings with all servers in the normalized form, whatever format a file uses.

    Args:
        configs: The settings that the plugins found.
        skipped: Extended by the parts of servers that are not used.
        lenient: True to skip an invalid server instead of raising.

    Raises:
        ConfigError: A server is invalid. It names the position, the server and the field, but shows no line of the
            file: any of them may hold a password.
    """
    return [
        _normalize_config(config, skipped, lenient=lenient) if has_servers(config.settings) else config
        for config in configs
    ]


def _normalize_config(config: LayerConfig, skipped: list[SkippedFile], *, lenient: bool) -> LayerConfig:
    try:
        key = _choose_key(config.settings)
        value, written, notes = _read_setting(config.settings[key], f"/{key}", lenient=lenient)
    except ServerFormatError as error:
        raise setting_error(
            config.path,
            None,
            config.position(error.pointer),
            title=f"Invalid setting in {config.path}",
            message=error.what,
            closing=f"{error.advice} and try again.",
        ) from None
    skipped += _build_skips(config, notes)
    others = {name: other for name, other in config.settings.items() if name not in (SERVERS, SERVERS_ALIAS)}
    return replace(
        config,
        settings={**others, SERVERS: value},
        position=lambda pointer: config.position(written.place_of(pointer)),
        content=config.settings if config.content is None else config.content,
    )


class _WrittenServers(NamedTuple):
    """The servers of a file: their JSON pointer, the edit around them (such as `/$replace`), and each of them."""

    pointer: str
    edit: str
    servers: list[NormalizedServer]

    def place_of(self, pointer: str) -> str:
        """Return the JSON pointer in the file for a pointer into the normalized form."""
        setting, slash, rest = pointer[1:].partition("/")
        if setting != SERVERS:
            return pointer
        index, _, part = rest.removeprefix(self.edit[1:]).removeprefix("/").partition("/")
        if index.isdecimal() and int(index) < len(self.servers):
            return self.servers[int(index)].place_of(part)
        return f"{self.pointer}{slash}{rest}"


def _choose_key(settings: Mapping[str, object]) -> str:
    """Return which of its two names the setting has. An empty one does not count."""
    present = [key for key in (SERVERS, SERVERS_ALIAS) if key in settings]
    filled = [key for key in present if settings[key]]
    if len(filled) > 1:
        raise ServerFormatError(
            f"/{SERVERS_ALIAS}", f"{SERVERS_ALIAS!r} and {SERVERS!r} mean the same", "Keep one of them"
        )
    return (filled or present)[0]


def _read_setting(value: object, pointer: str, *, lenient: bool) -> tuple[object, _WrittenServers, list[ServerNote]]:
    """Return the normalized value of the setting, the servers of the file, and notes about unused parts."""
    if isinstance(value, dict) and is_list_edit(value):
        if REMOVE_KEY in value:
            return value, _WrittenServers(pointer, f"/{REMOVE_KEY}", []), []
        servers, written, notes = _read_setting(value[REPLACE_KEY], pointer_to(pointer, REPLACE_KEY), lenient=lenient)
        return {REPLACE_KEY: servers}, _WrittenServers(pointer, f"/{REPLACE_KEY}", written.servers), notes
    found = read_servers(value, pointer, lenient=lenient)
    return [server.settings for server in found.servers], _WrittenServers(pointer, "", found.servers), found.notes


def _build_skips(config: LayerConfig, notes: Sequence[ServerNote]) -> Iterator[SkippedFile]:
    layer, plugin = config.layer.name if config.layer else "", config.source.plugin if config.source else ""
    rest = f"{len(notes) - MAX_NOTES} more from here on"
    for number, note in enumerate(notes[: MAX_NOTES + 1]):
        reason = note.text if number < MAX_NOTES else rest
        line = config.position(note.pointer)[0] or None
        yield SkippedFile(config.path, reason, layer, plugin, line, is_mistake=note.is_mistake)
