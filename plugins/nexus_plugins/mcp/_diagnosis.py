"""Findings of `nexus doctor` about MCP servers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from nexus_core import Finding, NexusError
from nexus_core.plugin.settings import pointer_to
from nexus_core.plugin.text import names_secret, secrets_in, visible_line
from nexus_plugins.mcp._files import CONTAINER_NAMES, NEXUS_FORMAT, SERVERS_SETTING, detect_format
from nexus_plugins.mcp._references import find_references
from nexus_plugins.mcp._section import describe_shadow, is_plain_http
from nexus_plugins.mcp._tools import read_catalog

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nexus_core import Request
    from nexus_core.plugin import LayerConfig, LoadedLayers
    from nexus_core.plugin.settings import MCPServerWithOrigin
    from nexus_plugins.mcp._files import ServerFileFormat


_REFERENCE = re.compile(r"\$\{[^{}]*\}")
_PLACEHOLDER = "some-value"


def diagnose_servers(request: Request, loaded: LoadedLayers) -> Iterator[Finding]:
    """Yield findings about unencrypted or shadowed servers, secrets, unusable tools and file formats."""
    for server in loaded.servers:
        if server.config.enabled and is_plain_http(server.config.url):
            message = f"server {server.config.name!r} is reached without encryption"
            yield Finding("plain-http", message, server.source_path, server.line)
        if visible := _find_visible_secrets(server.config.command):
            message = (
                f"the arguments of server {server.config.name!r} have a secret in them ({visible}), which every user "
                "of this machine can read in the list of processes while the server runs; pass it in 'env' if the "
                "server accepts that"
            )
            yield Finding("secret-in-arguments", visible_line(message), server.source_path, server.line)
        if shadow := describe_shadow(server):
            yield Finding("shadowed-server", shadow, server.source_path, server.line)
        yield from _find_unusable_tools(request, server)
    for config in loaded.configs:
        dialect = detect_format(str(config.path))
        if dialect is not NEXUS_FORMAT and SERVERS_SETTING in config.settings:
            yield from _find_mismatches(config, dialect)


def _find_visible_secrets(command: Sequence[str]) -> str:
    """Return the secrets in a command: names of variables, and a count of plain ones. "" if there are none."""
    # References are resolved to a placeholder: what follows `--token` is a secret, whatever its variable's name.
    resolved = [_REFERENCE.sub(_PLACEHOLDER, word) for word in command]
    named = [
        each.variable
        for word, parts in zip(command, secrets_in(resolved), strict=True)
        for each in find_references(word)
        if each.kind in {"variable", "input"} and (parts or names_secret(each.variable))
    ]
    literal = sum(map(bool, secrets_in(command)))
    shown = [f"${{{name}}}" for name in dict.fromkeys(named)] + ([f"{literal} written out"] if literal else [])
    return ", ".join(shown)


def _find_unusable_tools(request: Request, server: MCPServerWithOrigin) -> Iterator[Finding]:
    """Yield findings about tools that a server last listed with an invalid definition."""
    try:
        catalog = read_catalog(request.home, server) if server.status == "enabled" else None
    except NexusError:  # `nexus mcp tools` reports it
        return
    for tool in catalog.unusable if catalog else ():
        message = visible_line(f"tool {tool.name!r} of server {server.config.name!r} is not offered: {tool.reason}")
        yield Finding("unusable-tool", message, server.source_path, server.line)


def _find_mismatches(config: LayerConfig, dialect: ServerFileFormat) -> Iterator[Finding]:
    """Yield findings about definitions that Nexus reads and the tool of the file does not."""
    content = config.content or {}
    for key in CONTAINER_NAMES:
        if key != dialect.container and content.get(key):
            yield _finding(config, f"/{key}", f"{dialect.tool} looks for {dialect.container!r}, not {key!r}")
    servers: Any = config.settings[SERVERS_SETTING]
    written = content.get(dialect.container) or next(
        (content[key] for key in CONTAINER_NAMES if content.get(key)), content
    )
    for index, server in enumerate(servers if isinstance(servers, list) else ()):
        pointer = pointer_to(f"/{SERVERS_SETTING}", index)
        name = visible_line(server["name"])
        entry = written.get(server["name"], {}) if isinstance(written, dict) else {}
        if isinstance(entry, dict) and isinstance(entry.get("command"), list) and not dialect.command_list:
            yield _finding(config, pointer, f"{dialect.tool} wants the command of {name!r} as text, and 'args'")
        if not dialect.inputs and any(
            each.kind == "input" for text in _walk_texts(server) for each in find_references(text)
        ):
            yield _finding(config, pointer, f"{dialect.tool} does not ask for the ${{input:…}} of {name!r}")


def _finding(config: LayerConfig, pointer: str, message: str) -> Finding:
    line, column = config.position(pointer)
    return Finding("mcp-dialect", message, config.path, line, column)


def _walk_texts(value: Any) -> Iterator[str]:  # noqa: ANN401 - any JSON value
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _walk_texts(each)
