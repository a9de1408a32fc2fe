"""Servers of another tool in the words that Nexus understands; what means the same there keeps its words."""

from __future__ import annotations

from typing import Any, TypeGuard

from nexus_plugins.mcp._files.references import in_usual_form


def translate(servers: Any, dialect: str, content: dict[str, Any]) -> Any:  # noqa: ANN401 - faults are found later
    """The servers of a file, as a file of Nexus would have them.

    Args:
        servers: What the file has in the place of servers.
        dialect: Whose file it is.
        content: All of the file.
    """
    if dialect not in {"codex", "gemini", "opencode"} or not isinstance(servers, dict):
        return servers
    found = {name: _server(entry, dialect) if isinstance(entry, dict) else entry for name, entry in servers.items()}
    return _without_excluded(found, content.get("mcp")) if dialect == "gemini" else found


def _without_excluded(servers: dict[str, Any], lists: Any) -> dict[str, Any]:  # noqa: ANN401 - as above
    """The servers of Gemini CLI, those switched off that it would not connect to."""
    if not isinstance(lists, dict):
        return servers
    allowed, excluded = lists.get("allowed"), lists.get("excluded")
    off = {name for name in servers if _is_words(excluded) and name in excluded}
    off |= {name for name in servers if _is_words(allowed) and name not in allowed}
    return {
        name: {**server, "enabled": False} if name in off and isinstance(server, dict) else server
        for name, server in servers.items()
    }


def _server(entry: dict[str, Any], dialect: str) -> dict[str, Any]:
    if dialect == "codex":
        return _from_codex(entry)
    server = {key: _with_usual_references(value, dialect) for key, value in entry.items()}
    return _from_gemini(server) if dialect == "gemini" else _from_opencode(server)


def _with_usual_references(value: Any, dialect: str) -> Any:  # noqa: ANN401 - as above
    if isinstance(value, str):
        return in_usual_form(value, dialect)
    if isinstance(value, list):
        return [_with_usual_references(item, dialect) for item in value]
    if isinstance(value, dict):
        return {key: _with_usual_references(item, dialect) for key, item in value.items()}
    return value


def _from_gemini(server: dict[str, Any]) -> dict[str, Any]:
    if "url" in server and "type" not in server:
        server["type"] = "sse"  # what speaks streamable HTTP is called httpUrl there
    for key in ("includeTools", "excludeTools"):
        if _is_words(server.get(key)):
            # `write(…)` there means the tool `write`, with some arguments.
            server[key] = [word.partition("(")[0] for word in server[key]]
    return server


def _from_opencode(server: dict[str, Any]) -> dict[str, Any]:
    """Its time-out is that of the start; newer versions have two of them."""
    timeout = server.get("timeout")
    if isinstance(timeout, dict):
        del server["timeout"]
        names = {"startup": "startup_timeout_ms", "request": "timeout"}
        server |= {names[key]: value for key, value in timeout.items() if key in names}
    elif isinstance(timeout, int | float):
        server["startup_timeout_ms"] = server.pop("timeout")
    if "command" not in server and "url" not in server and "enabled" in server:
        server["command"] = ""  # it switches a server of another file, which is not known here
    return server


def _from_codex(entry: dict[str, Any]) -> dict[str, Any]:
    """Codex names variables where others refer to them."""
    server = {key: value for key, value in entry.items() if key != "name"}  # the name counts that the table has
    if "startup_timeout_sec" in server:
        server.pop("startup_timeout_ms", None)
    variables = server.get("env_vars")
    if isinstance(variables, list):
        names = [each.get("name") if isinstance(each, dict) else each for each in variables]
        if _is_words(names):
            server["env_passthrough"] = names
            del server["env_vars"]
    _add(server, "headers", _table(server, "http_headers"))
    _add(server, "headers", {name: f"${{{each}}}" for name, each in _table(server, "env_http_headers").items()})
    token = server.get("bearer_token_env_var")
    if isinstance(token, str):
        _add(server, "headers", {"Authorization": f"Bearer ${{{server.pop('bearer_token_env_var')}}}"})
    return server


def _is_words(value: Any) -> TypeGuard[list[str]]:  # noqa: ANN401 - as above
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _table(server: dict[str, Any], key: str) -> dict[str, Any]:
    return dict(server.pop(key)) if isinstance(server.get(key), dict) else {}


def _add(server: dict[str, Any], key: str, table: dict[str, Any]) -> None:
    if table and isinstance(server.get(key, {}), dict):
        server[key] = {**table, **server.get(key, {})}
