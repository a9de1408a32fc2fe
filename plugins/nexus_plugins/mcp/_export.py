"""Export of server definitions to the format of another tool.

Values that may be secrets are exported as references. Warnings name what the other tool does not support.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.plugin.text import secrets_in
from nexus_plugins.mcp._files import EXPORT_FORMATS, FIELD_NAMES, TOOLS_WITHOUT_CWD
from nexus_plugins.mcp._references import (
    AUTH_SCHEME,
    TOOLS_WITHOUT_DEFAULTS,
    find_native_references,
    find_references,
    format_references,
    strip_defaults,
    strip_references,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from nexus_core.plugin.settings import MCPServerConfig
    from nexus_plugins.mcp._references import ConfigReference

TOOLS_WITH_TYPE = frozenset({"claude", "vscode"})
"""The tools whose format needs the `type` of a server."""


class ExportedServers(NamedTuple):
    """Servers in the format of another tool.

    Attributes:
        text: The content of the file.
        variables: Environment variables to set, because references replace plain values.
        losses: Warnings about what the tool does differently from Nexus.
    """

    text: str
    variables: tuple[str, ...]
    losses: tuple[str, ...]


def format_servers(servers: Iterable[MCPServerConfig], target: str) -> ExportedServers:
    """Return servers in the format of a tool, in the order given."""
    variables: list[str] = []
    losses: list[str] = []
    entries, disabled = {}, []
    for server in servers:
        if target == "claude-desktop" and not server.command:
            losses.append(
                f"Claude Desktop has no addresses in this file: add {server.name!r} as a connector in its settings"
            )
            continue
        entries[server.name] = _format_entry(server, target, variables)
        losses += find_export_losses(server, target, entries[server.name])
        disabled += [] if server.enabled else [server.name]
    text = _format_document(entries, disabled, target)
    return ExportedServers(text, tuple(dict.fromkeys(variables)), tuple(losses))


def _format_document(entries: dict[str, dict[str, Any]], disabled: list[str], target: str) -> str:
    if target == "codex":
        import tomli_w

        return tomli_w.dumps({"mcp_servers": entries})
    document: dict[str, Any] = {"mcpServers": entries}
    if target == "opencode":
        document = {"mcp": entries}
    elif target == "gemini" and disabled:
        document["mcp"] = {"excluded": disabled}  # a server itself has no key for it
    elif target == "vscode":
        ids = dict.fromkeys(each.name for each in find_references(json.dumps(entries)) if each.kind == "input")
        inputs = [{"type": "promptString", "id": name, "description": name, "password": True} for name in ids]
        document = {"servers": entries, **({"inputs": inputs} if inputs else {})}
    elif target == "nexus":
        document = {"servers": [{"name": name, **entry} for name, entry in entries.items()]}
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _format_entry(server: MCPServerConfig, target: str, variables: list[str]) -> dict[str, Any]:
    env = {name: _to_reference(value, name, target, variables) for name, value in server.env.items()}
    headers = {
        name: _to_reference(value, _to_variable_name(f"{server.name}_{name}"), target, variables)
        for name, value in server.headers.items()
    }
    command = _replace_secrets(server.command, f"{_to_variable_name(server.name)}_ARG_{{}}", target, variables)
    url = _replace_secrets([server.url], f"{_to_variable_name(server.name)}_URL", target, variables)[0]
    tables = {"environment" if target == "opencode" else "env": env, "headers": headers}
    tables = _format_codex_variables(env, headers) if target == "codex" else tables
    entry = _format_command(command, target) if command else _format_address(url, server.type, target)
    return entry | {key: value for key, value in tables.items() if value} | _format_fields(server, target)


def _format_command(command: list[str], target: str) -> dict[str, Any]:
    """Return the fields that define a server's command."""
    if target in {"nexus", "opencode"}:
        return {**({"type": "local"} if target == "opencode" else {}), "command": command}
    return {**({"type": "stdio"} if target in TOOLS_WITH_TYPE else {}), "command": command[0], "args": command[1:]}


def _format_address(url: str, kind: str, target: str) -> dict[str, Any]:
    """Return the fields that define a server's URL. Cursor, Codex and opencode detect the protocol."""
    if target == "gemini":
        return {"url" if kind == "sse" else "httpUrl": url}
    if target == "nexus":
        return {"url": url, **({"type": "sse"} if kind == "sse" else {})}
    type_ = "remote" if target == "opencode" else kind
    return {**({"type": type_} if target in {*TOOLS_WITH_TYPE, "opencode"} else {}), "url": url}


def _format_fields(server: MCPServerConfig, target: str) -> dict[str, Any]:
    has_cwd = bool(server.cwd) and target not in TOOLS_WITHOUT_CWD
    rest: dict[str, Any] = {"cwd": format_references(server.cwd, target)} if has_cwd else {}
    for field, name in FIELD_NAMES[target].items():
        value = getattr(server, field)
        if value or (field == "include_tools" and value is not None):
            value = format_references(value, target) if isinstance(value, str) else value
            rest[name] = list(value) if isinstance(value, tuple) else value
    if "timeout" in rest:
        rest["timeout"] = round(rest["timeout"] * 1000)
    return rest | ({} if server.enabled or target in {"claude-desktop", "cursor", "gemini"} else {"enabled": False})


def _format_codex_variables(env: Mapping[str, str], headers: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of Codex for variables and headers, which name a variable instead of `${NAME}`."""
    fields: dict[str, Any] = {}
    passed = [name for name, value in env.items() if value == f"${{{name}}}"]
    others = {name: value for name, value in env.items() if name not in passed}
    named = {name: value[2:-1] for name, value in headers.items() if _is_whole_reference(value)}
    token = headers.get("Authorization", "").removeprefix("Bearer ")
    if "Authorization" in headers and "Authorization" not in named and _is_whole_reference(token):
        fields["bearer_token_env_var"] = token[2:-1]
    literal = {
        name: value
        for name, value in headers.items()
        if name not in named and not (name == "Authorization" and "bearer_token_env_var" in fields)
    }
    return fields | {"env": others, "env_vars": passed, "env_http_headers": named, "http_headers": literal}


def _is_prompted_input(reference: ConfigReference, target: str) -> bool:
    """Return True if the reference is an input that the target can only take from a variable."""
    return reference.kind == "input" and target not in {"nexus", "vscode"}


def _is_whole_reference(value: str) -> bool:
    found = list(find_references(value))
    return len(found) == 1 and found[0].kind == "variable" and value == f"${{{found[0].name}}}"


def _to_reference(value: str, variable: str, target: str, variables: list[str]) -> str:
    """Return a value of references only (and a scheme such as Bearer) converted, any other as a reference."""
    found = list(find_references(value))
    if found and AUTH_SCHEME.fullmatch(strip_references(value)):
        variables += [each.variable for each in found if each.default or _is_prompted_input(each, target)]
        return format_references(strip_defaults(value), target)
    variables.append(variable)
    return format_references(f"${{{variable}}}", target)


def _replace_secrets(words: Iterable[str], name: str, target: str, variables: list[str]) -> list[str]:
    """Return command arguments or a URL, with a reference in place of each that may hold a secret."""
    listed = list(words)
    result = []
    for number, (word, secrets) in enumerate(zip(listed, secrets_in(listed), strict=True)):
        if secrets:
            variables.append(name.format(number))
        result.append(format_references(f"${{{variables[-1]}}}" if secrets else word, target))
    return result


def _to_variable_name(name: str) -> str:
    return "".join(each if each.isascii() and each.isalnum() else "_" for each in name).upper()


RESOLVED_PATH_VARIABLES = {
    "vscode": frozenset({"workspaceFolder", "workspaceFolderBasename", "userHome", "pathSeparator", "/"}),
    "cursor": frozenset({"workspaceFolder", "workspaceFolderBasename", "userHome", "pathSeparator", "/"}),
}
"""The path variables that a tool resolves itself."""


def find_export_losses(server: MCPServerConfig, target: str, entry: dict[str, Any]) -> Iterator[str]:
    """Yield warnings about what a tool does differently from Nexus.

    Args:
        server: The server.
        target: The tool; `nexus` has no differences.
        entry: The server's definition in the tool's format.
    """
    if target != "nexus":
        yield from _find_unsupported_fields(server, target)
        yield from _find_unsupported_references(server, target, entry)


def _find_unsupported_fields(server: MCPServerConfig, target: str) -> Iterator[str]:
    tool, name = EXPORT_FORMATS[target].tool, server.name
    set_fields = {field for field in FIELD_NAMES["nexus"] if getattr(server, field) not in (None, "", ())}
    unknown = set_fields - FIELD_NAMES[target].keys()
    if not server.enabled and target in {"claude", "claude-desktop", "vscode", "cursor"}:
        yield f"{tool} has no 'enabled' in this file: it would start {name!r}"
    if unknown & {"include_tools", "exclude_tools"} or (
        server.include_tools == () and "include_tools" not in FIELD_NAMES[target]
    ):
        yield f"{tool} cannot select tools in this file: it would offer all of {name!r}"
    if unknown & {"start_timeout", "call_timeout"}:
        yield f"{tool} has its own timeouts for {name!r}"
    if "env_file" in unknown:
        yield f"{tool} does not read the variables of {name!r} from a file"
    if server.cwd and target in TOOLS_WITHOUT_CWD:
        yield f"{tool} has no 'cwd' in this file: it would start {name!r} where it runs itself"
    if server.type == "sse" and target == "codex":
        yield f"Codex does not support {name!r}, which uses the older SSE protocol"


def _find_unsupported_references(server: MCPServerConfig, target: str, entry: dict[str, Any]) -> Iterator[str]:
    references = list(find_references(json.dumps(entry)))
    if target in {"codex", "claude-desktop"}:
        if references:
            yield f"{EXPORT_FORMATS[target].tool} does not resolve the references in {server.name!r}"
        return
    tool = EXPORT_FORMATS[target].tool
    path_variables = [
        each.name
        for each in references
        if each.kind == "place" and each.name not in RESOLVED_PATH_VARIABLES.get(target, ())
    ]
    if path_variables:
        named = ", ".join(f"${{{name}}}" for name in dict.fromkeys(path_variables))
        yield f"{tool} does not resolve {named} in {server.name!r}"
    words = (*server.command, server.url)
    if target in TOOLS_WITHOUT_DEFAULTS and any(each.default for word in words for each in find_references(word)):
        yield f"{tool} does not support defaults: a variable must be set where it starts {server.name!r}"
    native = sorted({each for word in words for each in find_native_references(word, target)})
    if native:
        yield f"{tool} would resolve {', '.join(native)} in {server.name!r}, which is plain text in Nexus"
