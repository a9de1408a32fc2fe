"""Tools of MCP servers: names, stored catalogs, and offers to the model.

The first catalog of a server is approved along with the server. A tool that is new, renamed or described differently
in a later one is withheld until the user approves it. Nothing here starts a server.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core import ConfigError, FileError, NexusError, Tool
from nexus_core.plugin.files import file_lock, make_directories, read_bytes, write_text_atomically
from nexus_core.plugin.settings import canonical
from nexus_core.plugin.text import strip_hidden
from nexus_plugins.mcp._section import find_usable_servers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from nexus_core import Request
    from nexus_core.plugin import LoadedLayers, Settings
    from nexus_core.plugin.settings import MCPServerWithOrigin

TOOL_NAME_PREFIX = "mcp"
MAX_TOOL_NAME_CHARACTERS = 64
_SEPARATOR = "__"
_FORBIDDEN_CHARACTERS = re.compile("[^A-Za-z0-9_-]")
_DIGEST_CHARACTERS = 8


def build_tool_name(server: str, tool: str) -> str:
    """Return the unique name of a server's tool for models: `mcp__SERVER__TOOL`.

    Letters, digits, `_` and `-` stay; other characters become `_`. A name that was changed, is ambiguous or is too
    long ends in a digest.
    """
    name = _SEPARATOR.join(
        (TOOL_NAME_PREFIX, _FORBIDDEN_CHARACTERS.sub("_", server), _FORBIDDEN_CHARACTERS.sub("_", tool))
    )
    is_plain = name == _SEPARATOR.join((TOOL_NAME_PREFIX, server, tool))
    is_clear = _SEPARATOR not in server and not server.endswith("_") and not tool.startswith("_")
    if is_plain and is_clear and len(name) <= MAX_TOOL_NAME_CHARACTERS and server and tool:
        return name
    digest = hashlib.sha256(f"{server}\0{tool}".encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_CHARACTERS]
    return f"{name[: MAX_TOOL_NAME_CHARACTERS - _DIGEST_CHARACTERS - 1]}_{digest}"


MAX_CATALOG_BYTES = 4 * 1024 * 1024
"""Bytes of the stored catalog of one server."""
MAX_SCHEMA_DEPTH = 100
"""Levels of a schema; far more than real ones have, and few enough for recursive code."""
_CATALOG_VERSION = 1


class ToolDefinition(NamedTuple):
    """A tool as its server describes it."""

    name: str
    description: str
    schema: Mapping[str, Any]

    @property
    def digest(self) -> str:
        """Digest of the definition, equal for definitions that are equal as JSON."""
        return hashlib.sha256(canonical(list(self)).encode()).hexdigest()


class UnusableTool(NamedTuple):
    """A tool with an invalid definition, and the reason."""

    name: str
    reason: str


class ToolCatalog(NamedTuple):
    """The stored tools of a server.

    Attributes:
        approved: The definitions that the user approved.
        current: The definitions that the server listed last.
        seen: The time of that listing, in seconds since 1970.
        unusable: The tools of that listing with invalid definitions.
    """

    approved: tuple[ToolDefinition, ...]
    current: tuple[ToolDefinition, ...]
    seen: float
    unusable: tuple[UnusableTool, ...] = ()

    @property
    def usable(self) -> tuple[ToolDefinition, ...]:
        """The approved tools that the server still lists unchanged.

        A name that the server also gives to another definition is excluded, because it is unknown which one would run.
        """
        current = {each.digest for each in self.current}
        ambiguous = {each.name for each in self.withheld} | {each.name for each in self.unusable}
        return tuple(each for each in self.approved if each.digest in current and each.name not in ambiguous)

    @property
    def withheld(self) -> tuple[ToolDefinition, ...]:
        """The current tools that are new or differ from the approved ones."""
        approved = {each.digest for each in self.approved}
        return tuple(each for each in self.current if each.digest not in approved)

    @property
    def gone(self) -> tuple[ToolDefinition, ...]:
        """The approved tools whose names the server no longer lists."""
        names = {each.name for each in self.current}
        return tuple(each for each in self.approved if each.name not in names)


def read_catalog(home: Path, server: MCPServerWithOrigin) -> ToolCatalog | None:
    """Read the stored catalog of a server, or None if it never listed its tools.

    Raises:
        ConfigError: The file is damaged.
    """
    path = _build_catalog_path(home, server)
    data = read_bytes(path, max_bytes=MAX_CATALOG_BYTES)
    if data is None:
        return None
    try:
        document = json.loads(data)
        _ = {_CATALOG_VERSION: None}[document["version"]]
        approved, current = (tuple(map(_parse_definition, document[key])) for key in ("approved", "current"))
        unusable = tuple(UnusableTool(str(name), str(reason)) for name, reason in document.get("unusable", ()))
        return ToolCatalog(approved, current, float(document["seen"]), unusable)
    except (ValueError, TypeError, KeyError, RecursionError):
        hint = "remove it, then list the tools again: nexus mcp tools"
        raise ConfigError("the stored tools of a server are damaged", where=str(path), hint=hint) from None


def store_catalog(
    home: Path, server: MCPServerWithOrigin, listed: Iterable[ToolDefinition], unusable: tuple[UnusableTool, ...] = ()
) -> ToolCatalog:
    """Store the tools that a server listed. The first list counts as approved.

    Args:
        home: The user's Nexus directory.
        server: The server.
        listed: Its tools.
        unusable: Tools that were removed from the list, because their definitions are invalid.

    Raises:
        FileError: The catalog exceeds its size limit.
    """
    definitions: list[ToolDefinition] = []
    for each in listed:
        try:
            definitions.append(each._replace(schema=_normalize_json(each.schema)))
        except RecursionError:
            unusable += (UnusableTool(each.name, f"its schema has more than {MAX_SCHEMA_DEPTH} levels"),)
    current = tuple(definitions)

    def change(catalog: ToolCatalog | None) -> ToolCatalog:
        return ToolCatalog(current if catalog is None else catalog.approved, current, time.time(), unusable)

    return _update_catalog(home, server, change)


def approve_catalog(home: Path, server: MCPServerWithOrigin) -> ToolCatalog:
    """Approve the tools that a server listed last.

    Raises:
        ConfigError: The server never listed its tools.
    """

    def change(catalog: ToolCatalog | None) -> ToolCatalog:
        if catalog is None:
            raise ConfigError("its tools are not known yet", hint=f"nexus mcp tools {server.config.name}")
        return catalog._replace(approved=catalog.current)

    return _update_catalog(home, server, change)


def _update_catalog(home: Path, server: MCPServerWithOrigin, change: Any) -> ToolCatalog:  # noqa: ANN401 - a function on catalogs
    path = _build_catalog_path(home, server)
    make_directories(path.parent, mode=0o700)
    with file_lock(path.parent / "lock"):
        catalog: ToolCatalog = change(read_catalog(home, server))
        document = {
            "version": _CATALOG_VERSION,
            "server": server.config.name,
            "file": str(server.source_path),
            "seen": catalog.seen,
            "approved": [each._asdict() for each in catalog.approved],
            "current": [each._asdict() for each in catalog.current],
            "unusable": catalog.unusable,
        }
        text = json.dumps(document, indent=1) + "\n"
        if len(text) > MAX_CATALOG_BYTES:
            raise FileError(f"server {server.config.name!r} describes its tools in more than 4 MiB")
        write_text_atomically(path, text, mode=0o600)
    return catalog


def _build_catalog_path(home: Path, server: MCPServerWithOrigin) -> Path:
    key = f"{os.path.realpath(server.source_path)}\0{server.config.name}"
    return home / "mcp" / f"{hashlib.sha256(key.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}.json"


def _normalize_json(value: Any, depth: int = 0) -> Any:  # noqa: ANN401 - any JSON value
    """Return a value in canonical form: 1.0 becomes 1, and numbers that JSON lacks become null."""
    if depth > MAX_SCHEMA_DEPTH:
        raise RecursionError
    if isinstance(value, dict):
        return {key: _normalize_json(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_normalize_json(item, depth + 1) for item in value]
    if isinstance(value, float):
        return (int(value) if value.is_integer() else value) if math.isfinite(value) else None
    return value


def _parse_definition(entry: Any) -> ToolDefinition:  # noqa: ANN401 - any JSON value
    name, description, schema = entry["name"], entry["description"], entry["schema"]
    if not isinstance(name, str) or not isinstance(description, str) or not isinstance(schema, dict):
        raise TypeError("not a definition")
    return ToolDefinition(name, description, schema)


_TEXT_KEYS = frozenset({"description", "title", "$comment"})
"""The keys of a schema with text for readers."""


class OfferedServerTool(NamedTuple):
    """A tool for the model, its server, and its name there."""

    tool: Tool
    server: MCPServerWithOrigin
    name: str


def find_offered_tools(request: Request, loaded: LoadedLayers) -> Iterator[OfferedServerTool]:
    """Yield the approved tools of all servers that an agent has and that may be started, in a fixed order."""
    for server in find_usable_servers(request, loaded):
        if server.status != "enabled":
            continue
        try:
            catalog = read_catalog(request.home, server)
        except NexusError:  # `nexus mcp tools` reports it
            continue
        usable = [each for each in (catalog.usable if catalog else ()) if server.config.offers(each.name)]
        for definition in sorted(usable, key=lambda each: each.name):
            tool = Tool(
                name=build_tool_name(server.config.name, definition.name),
                description=strip_hidden(definition.description),
                parameters=_strip_hidden_text(definition.schema),
                origin=f"mcp:{server.config.name}",
            )
            yield OfferedServerTool(tool, server, definition.name)


def is_tool_permitted(name: str, settings: Settings) -> bool:
    """Return True if `permissions.tools` lets models use a tool. Other tools are neither offered nor run."""
    allow, deny = settings.get("permissions.tools.allow"), settings.get("permissions.tools.deny")
    return not (isinstance(deny, list) and name in deny) and not (isinstance(allow, list) and name not in allow)


def _strip_hidden_text(schema: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Return a schema without hidden characters in its texts. Names and values stay unchanged."""
    if isinstance(schema, Mapping):
        return {
            key: strip_hidden(item) if key in _TEXT_KEYS and isinstance(item, str) else _strip_hidden_text(item)
            for key, item in schema.items()
        }
    return [_strip_hidden_text(item) for item in schema] if isinstance(schema, list) else schema
