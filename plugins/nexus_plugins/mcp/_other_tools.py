"""Server definitions of other tools, converted to the format of Nexus."""

from __future__ import annotations

from typing import Any, TypeGuard

from nexus_plugins.mcp._references import normalize_references


def convert_servers(servers: Any, dialect: str, content: dict[str, Any]) -> Any:  # noqa: ANN401 - validated later
    """Return the servers of a file in the format of Nexus.

    Args:
        servers: The value of the file's server key; not validated yet.
        dialect: The name of the file's format.
        content: The whole document.
    """
    if dialect not in {"codex", "gemini", "opencode"} or not isinstance(servers, dict):
        return servers
    found = {
        name: _convert_server(entry, dialect) if isinstance(entry, dict) else entry for name, entry in servers.items()
    }
    return _disable_excluded(found, content.get("mcp")) if dialect == "gemini" else found


def _disable_excluded(servers: dict[str, Any], lists: Any) -> dict[str, Any]:  # noqa: ANN401 - validated later
    """Return the servers of Gemini CLI, with those disabled that its settings exclude."""
    if not isinstance(lists, dict):
        return servers
    allowed, excluded = lists.get("allowed"), lists.get("excluded")
    disabled = {name for name in servers if _is_string_list(excluded) and name in excluded}
    disabled |= {name for name in servers if _is_string_list(allowed) and name not in allowed}
    return {
        name: {**server, "enabled": False} if name in disabled and isinstance(server, dict) else server
        for name, server in servers.items()
    }


def _convert_server(entry: dict[str, Any], dialect: str) -> dict[str, Any]:
    if dialect == "codex":
        return _convert_codex(entry)
    server = {key: _convert_references(value, dialect) for key, value in entry.items()}
    return _convert_gemini(server) if dialect == "gemini" else _convert_opencode(server)


def _convert_references(value: Any, dialect: str) -> Any:  # noqa: ANN401 - validated later
    if isinstance(value, str):
        return normalize_references(value, dialect)
    if isinstance(value, list):
        return [_convert_references(item, dialect) for item in value]
    if isinstance(value, dict):
        return {key: _convert_references(item, dialect) for key, item in value.items()}
    return value


def _convert_gemini(server: dict[str, Any]) -> dict[str, Any]:
    if "url" in server and "type" not in server:
        server["type"] = "sse"  # Gemini CLI calls a streamable HTTP address httpUrl
    for key in ("includeTools", "excludeTools"):
        if _is_string_list(server.get(key)):
            # `write(…)` is the tool `write`, restricted to some arguments.
            server[key] = [word.partition("(")[0] for word in server[key]]
    return server


def _convert_opencode(server: dict[str, Any]) -> dict[str, Any]:
    """Convert the timeouts of opencode: one for the start, or in newer versions one for each phase."""
    timeout = server.get("timeout")
    if isinstance(timeout, dict):
        del server["timeout"]
        names = {"startup": "startup_timeout_ms", "request": "timeout"}
        server |= {names[key]: value for key, value in timeout.items() if key in names}
    elif isinstance(timeout, int | float):
        server["startup_timeout_ms"] = server.pop("timeout")
    if "command" not in server and "url" not in server and "enabled" in server:
        server["command"] = ""  # it only enables or disables a server of a file that is not read here
    return server


def _convert_codex(entry: dict[str, Any]) -> dict[str, Any]:
    """Convert the fields of Codex that name a variable to references such as `${NAME}`."""
    server = {key: value for key, value in entry.items() if key != "name"}  # the key of the table is the name
    if "startup_timeout_sec" in server:
        server.pop("startup_timeout_ms", None)
    variables = server.get("env_vars")
    if isinstance(variables, list):
        names = [each.get("name") if isinstance(each, dict) else each for each in variables]
        if _is_string_list(names):
            server["env_passthrough"] = names
            del server["env_vars"]
    _merge_table(server, "headers", _pop_table(server, "http_headers"))
    _merge_table(
        server, "headers", {name: f"${{{each}}}" for name, each in _pop_table(server, "env_http_headers").items()}
    )
    token = server.get("bearer_token_env_var")
    if isinstance(token, str):
        _merge_table(server, "headers", {"Authorization": f"Bearer ${{{server.pop('bearer_token_env_var')}}}"})
    return server


def _is_string_list(value: Any) -> TypeGuard[list[str]]:  # noqa: ANN401 - any JSON value
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _pop_table(server: dict[str, Any], key: str) -> dict[str, Any]:
    return dict(server.pop(key)) if isinstance(server.get(key), dict) else {}


def _merge_table(server: dict[str, Any], key: str, table: dict[str, Any]) -> None:
    if table and isinstance(server.get(key, {}), dict):
        server[key] = {**table, **server.get(key, {})}
