"""Servers of another tool in the words that Nexus understands; what means the same there keeps its words."""

from __future__ import annotations

from typing import Any

from nexus_plugins.mcp._references import in_usual_form


def translate(servers: Any, dialect: str) -> Any:  # noqa: ANN401 - any JSON value; what is wrong with it is found later
    """The servers of a file, as a file of Nexus would have them."""
    if dialect not in {"codex", "gemini", "opencode"} or not isinstance(servers, dict):
        return servers
    return {name: _server(entry, dialect) if isinstance(entry, dict) else entry for name, entry in servers.items()}


def _server(entry: dict[str, Any], dialect: str) -> dict[str, Any]:
    if dialect == "codex":
        return _from_codex(entry)
    server = {key: _with_usual_references(value, dialect) for key, value in entry.items()}
    if dialect == "gemini" and "url" in server and "type" not in server:
        server["type"] = "sse"  # what speaks streamable HTTP is called httpUrl there
    return server


def _with_usual_references(value: Any, dialect: str) -> Any:  # noqa: ANN401 - as above
    if isinstance(value, str):
        return in_usual_form(value, dialect)
    if isinstance(value, list):
        return [_with_usual_references(item, dialect) for item in value]
    if isinstance(value, dict):
        return {key: _with_usual_references(item, dialect) for key, item in value.items()}
    return value


def _from_codex(entry: dict[str, Any]) -> dict[str, Any]:
    """Codex names variables where others refer to them."""
    server = dict(entry)
    _add(server, "env", {name: f"${{{name}}}" for name in _words(server, "env_vars")})
    _add(server, "headers", _table(server, "http_headers"))
    _add(server, "headers", {name: f"${{{each}}}" for name, each in _table(server, "env_http_headers").items()})
    token = server.get("bearer_token_env_var")
    if isinstance(token, str):
        _add(server, "headers", {"Authorization": f"Bearer ${{{server.pop('bearer_token_env_var')}}}"})
    return server


def _words(server: dict[str, Any], key: str) -> list[str]:
    """What a list of words says, and takes it out; anything else stays, to be reported."""
    words = server.get(key)
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        return []
    return list(server.pop(key))


def _table(server: dict[str, Any], key: str) -> dict[str, Any]:
    return dict(server.pop(key)) if isinstance(server.get(key), dict) else {}


def _add(server: dict[str, Any], key: str, table: dict[str, Any]) -> None:
    if table and isinstance(server.get(key, {}), dict):
        server[key] = {**table, **server.get(key, {})}
