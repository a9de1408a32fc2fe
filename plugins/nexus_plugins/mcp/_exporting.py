"""Servers in the words of another tool. Values that may be secrets leave as references, never as they are."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.plugin import redact, without_password
from nexus_plugins.mcp._references import references_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from nexus_core.plugin import MCPServerConfig


class Exported(NamedTuple):
    """The text of a file, and the variables that stand in it for values that were written out."""

    text: str
    variables: tuple[str, ...]


def export(servers: Iterable[MCPServerConfig], target: str) -> Exported:
    """The servers as a file of another tool has them, always in the same order."""
    variables: list[str] = []
    entries = {server.name: _entry(server, target, variables) for server in servers}
    if target == "codex":
        import tomli_w  # noqa: PLC0415 - only for Codex

        return Exported(tomli_w.dumps({"mcp_servers": entries}), tuple(variables))
    document: dict[str, Any] = {"mcpServers": entries}
    if target == "vscode":
        document = {"servers": entries}
    elif target == "nexus":
        document = {"servers": [{"name": name, **entry} for name, entry in entries.items()]}
    return Exported(json.dumps(document, indent=2, ensure_ascii=False) + "\n", tuple(variables))


def _entry(server: MCPServerConfig, target: str, variables: list[str]) -> dict[str, Any]:
    env = {name: _reference(value, name, variables) for name, value in server.env.items()}
    headers = {
        name: _reference(value, _variable(f"{server.name}_{name}"), variables) for name, value in server.headers.items()
    }
    command = [_without_secret(word, f"{server.name}_ARG_{n}", variables) for n, word in enumerate(server.command)]
    entry: dict[str, Any] = {"command": command}
    if command and target != "nexus":
        entry = {"command": command[0], "args": command[1:]}
    elif not command:
        entry = {"url": _without_secret(server.url, f"{server.name}_URL", variables)}
    if target in {"claude", "vscode"}:
        entry = {"type": server.type, **entry}
    if target == "codex":
        return {**entry, **_for_codex(env, headers), **_rest(server)}
    return {**entry, **({"env": env} if env else {}), **({"headers": headers} if headers else {}), **_rest(server)}


def _rest(server: MCPServerConfig) -> dict[str, Any]:
    return {**({"cwd": server.cwd} if server.cwd else {}), **({} if server.enabled else {"enabled": False})}


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
    lists = {"env": others, "env_vars": passed, "env_http_headers": named, "http_headers": literal}
    return said | {key: value for key, value in lists.items() if value}


def _is_whole_reference(value: str) -> bool:
    found = list(references_in(value))
    return len(found) == 1 and found[0].kind == "variable" and value == f"${{{found[0].name}}}"


def _reference(value: str, variable: str, variables: list[str]) -> str:
    """The value itself if it is nothing but references and a word such as Bearer, else a reference in its place."""
    if any(True for _ in references_in(value)):
        return value
    variables.append(variable)
    return f"${{{variable}}}"


def _without_secret(word: str, name: str, variables: list[str]) -> str:
    """A word of a command or an address, unless it has something in it that looks like a key."""
    if redact(word).text == word and without_password(word) == word:
        return word
    variables.append(_variable(name))
    return f"${{{variables[-1]}}}"


def _variable(name: str) -> str:
    return "".join(each if each.isascii() and each.isalnum() else "_" for each in name).upper()
