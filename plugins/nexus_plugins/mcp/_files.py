"""Definitions of MCP servers in files of Nexus and of other tools."""

from __future__ import annotations

import os
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.plugin import LayerConfig, SkippedFile
from nexus_core.plugin.files import LayerReader, read_layer_json, read_layer_text
from nexus_core.plugin.settings import pointer_to, setting_error
from nexus_plugins.mcp import SERVERS_FILE

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from pathlib import Path

    from nexus_core import ConfigError
    from nexus_core.plugin import Layer
    from nexus_core.plugin.settings import JsonDocument
    from nexus_plugins.mcp._toml import TomlDocument


class ServerFileFormat(NamedTuple):
    """The format of a tool's file with servers.

    Attributes:
        name: The identifier in settings and commands.
        tool: The name of the tool in messages.
        files: Paths below a project; the first that exists is read.
        container: The key that holds the servers.
        comments: True if the tool accepts comments and trailing commas.
        inputs: True if the tool resolves `${input:id}`.
        command_list: True if `command` is a list of arguments, rather than the name of a program.
    """

    name: str
    tool: str
    files: tuple[str, ...]
    container: str
    comments: bool = False
    inputs: bool = False
    command_list: bool = False


FILE_FORMATS = {
    dialect.name: dialect
    for dialect in (
        ServerFileFormat("claude", "Claude Code", (".mcp.json",), "mcpServers"),
        ServerFileFormat("vscode", "VS Code", (".vscode/mcp.json",), "servers", comments=True, inputs=True),
        ServerFileFormat("cursor", "Cursor", (".cursor/mcp.json",), "mcpServers"),
        ServerFileFormat("codex", "Codex", (".codex/config.toml",), "mcp_servers"),
        ServerFileFormat("gemini", "Gemini CLI", (".gemini/settings.json",), "mcpServers", comments=True),
        ServerFileFormat(
            "opencode", "opencode", ("opencode.json", "opencode.jsonc"), "mcp", comments=True, command_list=True
        ),
    )
}
CLAUDE_HOME_FORMAT = ServerFileFormat("claude-home", "Claude Code", (".claude.json",), "mcpServers")
"""The user's file of Claude Code: servers for all projects, and under `projects` those of each project."""
CLAUDE_DESKTOP_FORMAT = ServerFileFormat(
    "claude-desktop", "Claude Desktop", ("claude_desktop_config.json",), "mcpServers"
)
"""The user's file of Claude Desktop, which has programs only, and resolves no references."""
EXPORT_FORMATS = FILE_FORMATS | {CLAUDE_DESKTOP_FORMAT.name: CLAUDE_DESKTOP_FORMAT}
EXPORT_TARGETS = (*EXPORT_FORMATS, "nexus")
"""The formats that `nexus mcp export` writes."""
FIELD_NAMES = {
    "nexus": {name: name for name in ("env_file", "include_tools", "exclude_tools", "start_timeout", "call_timeout")},
    "codex": {
        "include_tools": "enabled_tools",
        "exclude_tools": "disabled_tools",
        "start_timeout": "startup_timeout_sec",
        "call_timeout": "tool_timeout_sec",
    },
    "claude": {"call_timeout": "timeout"},
    "claude-desktop": {},
    "vscode": {"env_file": "envFile"},
    "cursor": {"env_file": "envFile"},
    "gemini": {"include_tools": "includeTools", "exclude_tools": "excludeTools", "call_timeout": "timeout"},
    "opencode": {"start_timeout": "timeout"},
}
"""The names of fields in each format, by their name in Nexus; a tool does not support fields that are missing."""
TOOLS_WITHOUT_CWD = frozenset({"claude-desktop", "cursor", "opencode"})
"""Tools that start programs only where they run; opencode rejects a file with `cwd`."""
NEXUS_FORMAT = ServerFileFormat(
    "nexus", "Nexus", ("mcp.json",), "servers", comments=True, inputs=True, command_list=True
)


def detect_format(path: str) -> ServerFileFormat:
    """Return the format of a file by its path, by default that of Nexus."""
    posix = path.replace("\\", "/")
    for dialect in (*FILE_FORMATS.values(), CLAUDE_HOME_FORMAT):
        if any(posix == name or posix.endswith(f"/{name}") for name in dialect.files):
            return dialect
    return NEXUS_FORMAT


SERVERS_SETTING = "mcp_servers"
CONTAINER_NAMES = ("mcpServers", "servers", SERVERS_SETTING)
"""The keys that may hold servers; of several that do, the first one is read."""
MAX_SHOWN_KEY_CHARACTERS = 60

_LAUNCH_FIELDS = frozenset({"command", "url", "httpUrl", "serverUrl", "transport"})
# Files that hold all the settings of a tool: their other keys are not reported as unused.
_SETTINGS_FORMATS = frozenset({"claude-home", "codex", "gemini", "opencode"})


class ServerContainer(NamedTuple):
    """The part of a document that holds the servers.

    Attributes:
        key: Its key; "" for the whole document, `a/b` for a nested one.
        servers: Its value.
        unused: Other keys of the document, and why they are not read.
    """

    key: str
    servers: Any
    unused: dict[str, str]


def find_container(content: dict[str, Any], dialect: ServerFileFormat) -> ServerContainer:
    """Return the part of a document that holds the servers."""
    if dialect.name in _SETTINGS_FORMATS:
        servers = content.get(dialect.container, {})
        if dialect.name == "opencode" and _has_nested_servers(servers):
            return ServerContainer(f"{dialect.container}/servers", servers["servers"], {})
        return ServerContainer(dialect.container, servers, {})
    present = [name for name in CONTAINER_NAMES if name in content]
    if not present:
        return ServerContainer("", content, {})
    chosen = next((name for name in present if content[name]), present[0])
    unused: dict[str, str] = {}
    for key, value in content.items():
        if key not in present and not _is_known_key(key, dialect):
            unused[key] = (
                f"unknown key {key if len(key) <= MAX_SHOWN_KEY_CHARACTERS else key[:MAX_SHOWN_KEY_CHARACTERS] + '…'!r}"
            )
        elif key in present and key != chosen and value:
            unused[key] = f"{key!r} is not read, because {chosen!r} has servers"
    return ServerContainer(chosen, content[chosen], unused)


def is_unrelated_file(content: dict[str, Any]) -> bool:
    """Return True if a document without a server key has no servers at all, such as the settings of an editor."""
    values = [value for key, value in content.items() if not key.startswith("_") and key != "$schema"]
    has_server = any(isinstance(each, dict) and not _LAUNCH_FIELDS.isdisjoint(each) for each in values)
    return len(values) > 1 and not has_server and not all(isinstance(each, dict) for each in values)


def _has_nested_servers(servers: Any) -> bool:  # noqa: ANN401 - any JSON value
    """Return True for the nested form of opencode 2. In opencode 1, a server could be called `servers`."""
    inner = servers.get("servers") if isinstance(servers, dict) else None
    return isinstance(inner, dict) and not {"command", "url", "enabled"} & inner.keys()


def _is_known_key(key: str, dialect: ServerFileFormat) -> bool:
    return key.startswith("_") or key == "$schema" or (key == "inputs" and dialect.name == "vscode")


MAX_FILE_BYTES = 1024 * 1024
MAX_CLAUDE_HOME_BYTES = 32 * 1024 * 1024
"""Bytes of ~/.claude.json; larger than other files, because it also holds years of history."""
MAX_SKIPPED_KEYS = 100
"""Unused keys that are listed; the rest is counted."""


def read_layer_servers(layer: Layer) -> list[LayerConfig | SkippedFile]:
    """Read the servers of a layer's mcp.json, and a `SkippedFile` for each key that is not used.

    Raises:
        ConfigError: The file is not JSON, or has the wrong structure. No value of it is shown, because any of them
            may be a password.
        FileError: The file cannot be read.
    """
    return read_servers(layer.directory / SERVERS_FILE, layer, NEXUS_FORMAT)


def read_other_tools(layer: Layer, names: Collection[str]) -> Iterator[LayerConfig | SkippedFile]:
    """Read the servers in the project's files of the named tools.

    Raises:
        ConfigError: A file is not JSON or TOML, or has the wrong structure. No value of it is shown.
        FileError: A file cannot be read.
    """
    for dialect in FILE_FORMATS.values():
        paths = [layer.project / name for name in dialect.files] if dialect.name in names else []
        existing = next((path for path in paths if os.path.lexists(path)), None)
        if existing is not None:
            yield from read_servers(existing, layer, dialect)
        elif paths:
            yield SkippedFile(paths[0], "not there")


def read_servers(
    path: Path, layer: Layer, dialect: ServerFileFormat, within: tuple[str, ...] = ()
) -> list[LayerConfig | SkippedFile]:
    """Read the servers in a file.

    Args:
        path: The file.
        layer: The layer that it is read for; decides what may be read.
        dialect: The format of the file.
        within: Keys to the part of the document that is read, outermost first; empty for all of it.

    Raises:
        ConfigError: The file is not JSON or TOML, or has the wrong structure. No value of it is shown.
        FileError: The file cannot be read.
    """
    document = _read_document(path, layer, MAX_CLAUDE_HOME_BYTES if dialect is CLAUDE_HOME_FORMAT else MAX_FILE_BYTES)
    if isinstance(document, SkippedFile):
        return [document]
    content, root = _find_nested(document.value, within)

    def build_error(pointer: str, message: str) -> ConfigError:
        return _build_error(path, document, dialect, root + pointer, message)

    container = _require_container(content, dialect, build_error)
    start = f"{root}/{container.key}" if container.key else root

    def position(pointer: str) -> tuple[int, int]:
        inside = pointer.removeprefix(f"/{SERVERS_SETTING}")
        return document.position(start + inside if inside != pointer else pointer)

    servers = container.servers
    if dialect is not NEXUS_FORMAT:
        from nexus_plugins.mcp._other_tools import convert_servers

        servers = convert_servers(servers, dialect.name, content)
    return [
        LayerConfig(path, {SERVERS_SETTING: servers}, position, content=content),
        *_list_skipped_keys(path, document, container),
    ]


def _find_nested(content: Any, keys: tuple[str, ...]) -> tuple[Any, str]:  # noqa: ANN401 - any JSON value
    """Return the value under nested keys, {} if there is none, and its JSON pointer."""
    pointer = ""
    for key in keys:
        content, pointer = content.get(key, {}) if isinstance(content, dict) else {}, pointer_to(pointer, key)
    return content, pointer


def _require_container(
    content: Any,  # noqa: ANN401 - any JSON
    dialect: ServerFileFormat,
    build_error: Callable[[str, str], ConfigError],
) -> ServerContainer:
    """Return the part of a document that holds the servers.

    Args:
        content: The document.
        dialect: Its format.
        build_error: Builds the error from a JSON pointer and a message.

    Raises:
        ConfigError: The document has the wrong structure.
    """
    if not isinstance(content, dict):
        raise build_error("", "the file must hold an object")
    for name in dict.fromkeys((*CONTAINER_NAMES, dialect.container)):
        if not isinstance(content.get(name, []), dict | list):
            raise build_error(f"/{name}", f"{name!r} must be a list or an object")
    container = find_container(content, dialect)
    for name in ("command", "url") if container.servers is content else ():
        if name in content and not isinstance(content[name], dict):
            raise build_error(f"/{name}", "this is one server, and it has no name")
    if container.servers is content and is_unrelated_file(content):
        raise build_error("", "the file has settings in it, and no servers")
    return container


def _read_document(path: Path, layer: Layer, max_bytes: int) -> JsonDocument | TomlDocument | SkippedFile:
    if path.suffix != ".toml":
        empty: Any = {"servers": []}
        return read_layer_json(path, LayerReader(layer), comments=True, empty=empty, quote=False, max_bytes=max_bytes)
    from nexus_plugins.mcp._toml import parse_toml

    text = read_layer_text(path, LayerReader(layer), quote=False)
    return text if isinstance(text, SkippedFile) else parse_toml(path, text)


def _list_skipped_keys(
    path: Path, document: JsonDocument | TomlDocument, container: ServerContainer
) -> Iterator[SkippedFile]:
    rest = f"{len(container.unused) - MAX_SKIPPED_KEYS} more from here on"
    for number, (key, reason) in enumerate(islice(container.unused.items(), MAX_SKIPPED_KEYS + 1)):
        line = document.position(pointer_to("", key))[0]
        is_mistake = number < MAX_SKIPPED_KEYS
        yield SkippedFile(path, reason if is_mistake else rest, line=line, is_mistake=is_mistake)


def _build_error(
    path: Path, document: JsonDocument | TomlDocument, dialect: ServerFileFormat, pointer: str, message: str
) -> ConfigError:
    return setting_error(
        path,
        None,
        document.position(pointer),
        title=f"Invalid setting in {path}",
        message=message,
        closing=f"Write {_format_example(dialect)} and try again.",
    )


def _format_example(dialect: ServerFileFormat) -> str:
    if dialect is NEXUS_FORMAT:
        return '{"servers": [{"name": "…", "command": ["…"]}]}'
    command = '["…"]' if dialect.command_list else '"…"'
    if dialect.name == "codex":
        return f"[{dialect.container}.NAME] and below it command = {command}"
    return f'{{"{dialect.container}": {{"…": {{"command": {command}}}}}}}'
