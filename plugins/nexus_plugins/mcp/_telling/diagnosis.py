"""What `nexus doctor` says about servers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from nexus_core import Finding, NexusError
from nexus_core.plugin import names_secret, pointer_to, secrets_in, visible_line
from nexus_plugins.mcp._files.container import NAMES, SETTING
from nexus_plugins.mcp._files.dialects import NEXUS, dialect_of
from nexus_plugins.mcp._files.references import references_in
from nexus_plugins.mcp._telling.records import read_record
from nexus_plugins.mcp._telling.shadows import shadow_of
from nexus_plugins.mcp._telling.table import is_plain_http

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nexus_core import Request
    from nexus_core.plugin import LayerConfig, Loaded, MCPServerWithOrigin
    from nexus_plugins.mcp._files.dialects import Dialect


_REFERENCE = re.compile(r"\$\{[^{}]*\}")
_SOME_VALUE = "some-value"


def diagnose(request: Request, loaded: Loaded) -> Iterator[Finding]:
    """Servers that others could listen to or that hide others, bad tools, and what a file's tool reads otherwise."""
    for server in loaded.servers:
        if server.config.enabled and is_plain_http(server.config.url):
            message = f"server {server.config.name!r} is reached without encryption"
            yield Finding("plain-http", message, server.source_path, server.line)
        if visible := _visible_secrets(server.config.command):
            message = (
                f"the arguments of server {server.config.name!r} have a secret in them ({visible}), which every user "
                "of this machine can read in the list of processes while the server runs; pass it in 'env' if the "
                "server accepts that"
            )
            yield Finding("secret-in-arguments", visible_line(message), server.source_path, server.line)
        if shadow := shadow_of(server):
            yield Finding("shadowed-server", shadow, server.source_path, server.line)
        yield from _unusable_tools(request, server)
    for config in loaded.configs:
        dialect = dialect_of(str(config.path))
        if dialect is not NEXUS and SETTING in config.settings:
            yield from _mismatches(config, dialect)


def _visible_secrets(command: Sequence[str]) -> str:
    """The secrets in the words of a command, by their variables or by their number; "" when there are none."""
    # As if every reference had been looked up; what follows `--token` is a secret whatever the variable is called.
    looked_up = [_REFERENCE.sub(_SOME_VALUE, word) for word in command]
    named = [
        each.variable
        for word, parts in zip(command, secrets_in(looked_up), strict=True)
        for each in references_in(word)
        if each.kind in {"variable", "input"} and (parts or names_secret(each.variable))
    ]
    written = sum(map(bool, secrets_in(command)))
    told = [f"${{{name}}}" for name in dict.fromkeys(named)] + ([f"{written} written out"] if written else [])
    return ", ".join(told)


def _unusable_tools(request: Request, server: MCPServerWithOrigin) -> Iterator[Finding]:
    """Tools that a server described, when it was last asked, in a way that cannot be used."""
    try:
        record = read_record(request.home, server) if server.status == "enabled" else None
    except NexusError:  # `nexus mcp tools` says what is wrong
        return
    for tool in record.unusable if record else ():
        message = visible_line(f"tool {tool.name!r} of server {server.config.name!r} is not offered: {tool.reason}")
        yield Finding("unusable-tool", message, server.source_path, server.line)


def _mismatches(config: LayerConfig, dialect: Dialect) -> Iterator[Finding]:
    """What Nexus understands and the tool does not."""
    content = config.content or {}
    for key in NAMES:
        if key != dialect.container and content.get(key):
            yield _finding(config, f"/{key}", f"{dialect.tool} looks for {dialect.container!r}, not {key!r}")
    held: Any = config.settings[SETTING]
    written = content.get(dialect.container) or next((content[key] for key in NAMES if content.get(key)), content)
    for index, server in enumerate(held if isinstance(held, list) else ()):
        pointer = pointer_to(f"/{SETTING}", index)
        name = visible_line(server["name"])
        entry = written.get(server["name"], {}) if isinstance(written, dict) else {}
        if isinstance(entry, dict) and isinstance(entry.get("command"), list) and not dialect.command_list:
            yield _finding(config, pointer, f"{dialect.tool} wants the command of {name!r} as text, and 'args'")
        if not dialect.inputs and any(each.kind == "input" for text in _texts(server) for each in references_in(text)):
            yield _finding(config, pointer, f"{dialect.tool} does not ask for the ${{input:…}} of {name!r}")


def _finding(config: LayerConfig, pointer: str, message: str) -> Finding:
    line, column = config.position(pointer)
    return Finding("mcp-dialect", message, config.path, line, column)


def _texts(value: Any) -> Iterator[str]:  # noqa: ANN401 - any JSON value
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)
