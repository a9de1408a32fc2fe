"""Servers in the words of another tool. Values that may be secrets leave as references, never as they are."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.plugin import secrets_in
from nexus_plugins.mcp._files.dialects import FIELDS, WITHOUT_CWD
from nexus_plugins.mcp._files.losses import find_losses
from nexus_plugins.mcp._files.references import SCHEME, in_words_of, references_in, without_defaults, without_references

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from nexus_core.plugin import MCPServerConfig
    from nexus_plugins.mcp._files.references import Reference

TYPED = frozenset({"claude", "vscode"})
"""The tools that want to be told how a server is spoken to."""


class Exported(NamedTuple):
    """The text of a file.

    Attributes:
        text: The text.
        variables: What has to be set in the environment, because a reference stands for a value that was written out.
        losses: What the tool would do otherwise than Nexus, in words.
    """

    text: str
    variables: tuple[str, ...]
    losses: tuple[str, ...]


def export(servers: Iterable[MCPServerConfig], target: str) -> Exported:
    """The servers as a file of another tool has them, always in the same order."""
    variables: list[str] = []
    losses: list[str] = []
    entries, off = {}, []
    for server in servers:
        entries[server.name] = _entry(server, target, variables)
        losses += find_losses(server, target, entries[server.name])
        off += [] if server.enabled else [server.name]
    return Exported(_written(entries, off, target), tuple(dict.fromkeys(variables)), tuple(losses))


def _written(entries: dict[str, dict[str, Any]], off: list[str], target: str) -> str:
    if target == "codex":
        import tomli_w  # noqa: PLC0415 - only for Codex

        return tomli_w.dumps({"mcp_servers": entries})
    document: dict[str, Any] = {"mcpServers": entries}
    if target == "opencode":
        document = {"mcp": entries}
    elif target == "gemini" and off:
        document["mcp"] = {"excluded": off}  # it has no word for it beside the server
    elif target == "vscode":
        asked = dict.fromkeys(each.name for each in references_in(json.dumps(entries)) if each.kind == "input")
        inputs = [{"type": "promptString", "id": name, "description": name, "password": True} for name in asked]
        document = {"servers": entries, **({"inputs": inputs} if inputs else {})}
    elif target == "nexus":
        document = {"servers": [{"name": name, **entry} for name, entry in entries.items()]}
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _entry(server: MCPServerConfig, target: str, variables: list[str]) -> dict[str, Any]:
    env = {name: _reference(value, name, target, variables) for name, value in server.env.items()}
    headers = {
        name: _reference(value, _variable(f"{server.name}_{name}"), target, variables)
        for name, value in server.headers.items()
    }
    command = _without_secrets(server.command, f"{_variable(server.name)}_ARG_{{}}", target, variables)
    url = _without_secrets([server.url], f"{_variable(server.name)}_URL", target, variables)[0]
    tables = {"environment" if target == "opencode" else "env": env, "headers": headers}
    tables = _for_codex(env, headers) if target == "codex" else tables
    entry = _start(command, target) if command else _address(url, server.type, target)
    return entry | {key: value for key, value in tables.items() if value} | _rest(server, target)


def _start(command: list[str], target: str) -> dict[str, Any]:
    """What says how a server is started."""
    if target in {"nexus", "opencode"}:
        return {**({"type": "local"} if target == "opencode" else {}), "command": command}
    return {**({"type": "stdio"} if target in TYPED else {}), "command": command[0], "args": command[1:]}


def _address(url: str, kind: str, target: str) -> dict[str, Any]:
    """What says where a server is; Cursor, Codex and opencode find out themselves how to speak with it."""
    if target == "gemini":
        return {"url" if kind == "sse" else "httpUrl": url}
    if target == "nexus":
        return {"url": url, **({"type": "sse"} if kind == "sse" else {})}
    said = "remote" if target == "opencode" else kind
    return {**({"type": said} if target in {*TYPED, "opencode"} else {}), "url": url}


def _rest(server: MCPServerConfig, target: str) -> dict[str, Any]:
    knows_cwd = bool(server.cwd) and target not in WITHOUT_CWD
    rest: dict[str, Any] = {"cwd": in_words_of(server.cwd, target)} if knows_cwd else {}
    for field, name in FIELDS[target].items():
        value = getattr(server, field)
        if value or (field == "include_tools" and value is not None):
            value = in_words_of(value, target) if isinstance(value, str) else value
            rest[name] = list(value) if isinstance(value, tuple) else value
    if "timeout" in rest:
        rest["timeout"] = round(rest["timeout"] * 1000)
    return rest | ({} if server.enabled or target in {"cursor", "gemini"} else {"enabled": False})


def _for_codex(env: Mapping[str, str], headers: Mapping[str, str]) -> dict[str, Any]:
    """Codex names variables where others refer to them."""
    said: dict[str, Any] = {}
    passed = [name for name, value in env.items() if value == f"${{{name}}}"]
    others = {name: value for name, value in env.items() if name not in passed}
    named = {name: value[2:-1] for name, value in headers.items() if _is_whole_reference(value)}
    token = headers.get("Authorization", "").removeprefix("Bearer ")
    if "Authorization" in headers and "Authorization" not in named and _is_whole_reference(token):
        said["bearer_token_env_var"] = token[2:-1]
    literal = {
        name: value
        for name, value in headers.items()
        if name not in named and not (name == "Authorization" and "bearer_token_env_var" in said)
    }
    return said | {"env": others, "env_vars": passed, "env_http_headers": named, "http_headers": literal}


def _is_asked_for(reference: Reference, target: str) -> bool:
    """Whether a person is asked for it in Nexus, but a variable has it elsewhere."""
    return reference.kind == "input" and target not in {"nexus", "vscode"}


def _is_whole_reference(value: str) -> bool:
    found = list(references_in(value))
    return len(found) == 1 and found[0].kind == "variable" and value == f"${{{found[0].name}}}"


def _reference(value: str, variable: str, target: str, variables: list[str]) -> str:
    """The value itself if it is nothing but references and a word such as Bearer, else a reference in its place."""
    found = list(references_in(value))
    if found and SCHEME.fullmatch(without_references(value)):
        variables += [each.variable for each in found if each.default or _is_asked_for(each, target)]
        return in_words_of(without_defaults(value), target)
    variables.append(variable)
    return in_words_of(f"${{{variable}}}", target)


def _without_secrets(words: Iterable[str], name: str, target: str, variables: list[str]) -> list[str]:
    """The words of a command, or an address; a reference in the place of one that has what looks like a key in it."""
    given = list(words)
    result = []
    for number, (word, secrets) in enumerate(zip(given, secrets_in(given), strict=True)):
        if secrets:
            variables.append(name.format(number))
        result.append(in_words_of(f"${{{variables[-1]}}}" if secrets else word, target))
    return result


def _variable(name: str) -> str:
    return "".join(each if each.isascii() and each.isalnum() else "_" for each in name).upper()
