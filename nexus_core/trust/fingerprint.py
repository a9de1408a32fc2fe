"""Fingerprints of active settings: the canonical content that an approval covers.

Settings with the same meaning have the same content. It holds secret values as digests only.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from nexus_core.config.merge import is_comment
from nexus_core.text.safety import one_line
from nexus_core.trust.scripts import CommandWorkspace, ProjectCode, find_code, find_executable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SettingEffect = Literal["run", "connect to", "set"]

HOME_POINTER = "/home"
"""The pointer of the user's own settings, if these need approval."""

# These fields of a server are included as they are; of an unknown field, only a digest.
_PLAIN_FIELDS = ("enabled", "env_passthrough", "transport", "type")
_KNOWN_FIELDS = frozenset({"name", "command", "args", "env", "env_file", "cwd", "url", "headers", *_PLAIN_FIELDS})
# A program, an address, and who reads a conversation are shown in full, because the user must see what to approve.
_SHOWN_SETTINGS = frozenset({"args", "command", "summarizers", "url"})
# Only what every URL parser treats as a password: hiding more could hide where a connection goes.
_URL_PASSWORD = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*://[^/?#\\@:\s]*:)([^/?#\\@\s]+)@")


def canonical(value: object) -> str:
    """Return the one JSON text for a value: keys sorted, no white space, ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, default=_to_json_type)


def digest_secret(text: str) -> str:
    """Return the digest that represents a secret: it shows a change, but not the value."""
    return f"sha256:{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"


def build_server_content(server: Mapping[str, object], root: Path) -> str:
    """Return everything that an approval of an MCP server covers, except the bytes of its code.

    That is its definition, with the values of environment and headers as digests; the program that its command starts;
    and the names of the project's files and directories that it runs, whose digests `coverage.add_code_digests` adds.
    """
    environment = server.get("env")
    variables = environment if isinstance(environment, Mapping) else {}
    place = CommandWorkspace.of(root, server.get("cwd"))
    command = split_server_command(server)
    executable = _find_executable(command[0], place, variables.get("PATH")) if command else None
    known = {key: server[key] for key in ("name", "cwd", "env_file", *_PLAIN_FIELDS) if server.get(key) is not None}
    url = server.get("url")
    env_file = server.get("env_file")
    code = find_code(
        command,
        place,
        executable=executable,
        variables={str(name): value for name, value in variables.items() if isinstance(value, str)},
        env_file=env_file if isinstance(env_file, str) else "",
    )
    return canonical(
        {
            **known,
            "kind": "server",
            "command": server.get("command"),
            "args": server.get("args") or [],
            "env": _digest_values(environment),
            "url": _URL_PASSWORD.sub(_digest_password, url) if isinstance(url, str) else url,
            "headers": _digest_values(server.get("headers")),
            "executable": executable,
            **_build_code_content(code, place),
            "other": _digest_values(
                {key: server[key] for key in server if key not in _KNOWN_FIELDS and not is_comment(key)}
            ),
        }
    )


def build_setting_content(pointer: str, value: object, *, root: Path | None = None) -> str:
    """Return everything that an approval of another active setting covers, except the bytes of its code.

    Args:
        pointer: The JSON pointer of the setting.
        value: Its value; strings in it become digests, unless they are a command or an address.
        root: The project, whose code that the value runs or names is covered too; None covers no code.
    """
    code: dict[str, object] = {"files": {}}
    if root is not None:
        place, command = CommandWorkspace.of(root, None), list(_iter_texts(value))
        executable = find_executable(command[0], place) if command and _last_key(pointer) == "command" else None
        found = find_code(command, place, executable=executable)
        # The program is started without the variables that keep Python from reading bytecode.
        code = _build_code_content(found._replace(with_bytecode=bool(found.trees)), place)
    return canonical({"kind": "setting", "pointer": pointer, "value": _digest_texts(value, _last_key(pointer)), **code})


def build_home_content(home: Path) -> str:
    """Return everything that an approval of the user's own settings covers, if a repository may hold them."""
    root = os.path.realpath(home)
    files = [name for name in ("config.json", "mcp.json") if os.path.lexists(os.path.join(root, name))]  # noqa: PTH118
    code = {"files": files, "trees": [], "with_bytecode": False, "root": root}
    return canonical({"kind": "setting", "pointer": HOME_POINTER, "value": root, "code": code})


def runs_project_code(content: str) -> bool:
    """Return True if a command with this content runs code of the project."""
    try:
        return bool(json.loads(content)["code"]["trees"])
    except (ValueError, TypeError, KeyError):
        return False


def _build_code_content(code: ProjectCode, place: CommandWorkspace) -> dict[str, object]:
    """Return the code as a part of a content, or without code the format of earlier approvals."""
    return {"code": {**code._asdict(), "root": str(place.limit)}} if code.files or code.trees else {"files": {}}


def describe_server(server: Mapping[str, object]) -> str:
    """Describe in one line what a server would start or connect to, with only the names of variables and headers."""
    command, url = split_server_command(server), server.get("url")
    parts = [shlex.join(command)] if command else []
    if isinstance(url, str) and url:
        parts.append(shlex.quote(hide_password(url)))
    if server.get("cwd") is not None:
        parts.append(f"directory: {shlex.quote(_to_text(server['cwd']))}")
    if server.get("env_file"):
        parts.append(f"environment from: {shlex.quote(_to_text(server['env_file']))}")
    for key, title in (("env", "environment"), ("headers", "headers")):
        names = server.get(key)
        if isinstance(names, Mapping) and names:
            parts.append(f"{title}: {' '.join(shlex.quote(_to_text(name)) for name in sorted(names))}")
    return one_line("; ".join(parts) or "nothing: there is neither a command nor an address")


def describe_setting(dotted: str, value: object) -> str:
    """Describe a setting and its value in one line, or only its name if the value may be a secret."""
    if isinstance(value, bool | int | float):
        shown = canonical(value)
    elif dotted.rpartition(".")[2] in _SHOWN_SETTINGS:
        values = value if isinstance(value, list) else [value]
        shown = shlex.join(hide_password(_to_text(each)) for each in values)
    else:
        return one_line(dotted)
    return one_line(f"{dotted} = {shown}")


def split_server_command(server: Mapping[str, object]) -> list[str]:
    """Return program and arguments of a server. A program given as a string is one argument, even with blanks."""
    arguments: list[str] = []
    for key in ("command", "args"):
        value = server.get(key)
        if isinstance(value, list | tuple):
            arguments += map(_to_text, value)
        elif value is not None:
            arguments.append(_to_text(value))
    return arguments


def hide_password(text: str) -> str:
    """Return a text with the password of a URL hidden."""
    return _URL_PASSWORD.sub(r"\1***@", text)


def name_effect(content: str) -> SettingEffect:
    """Return the effect of a setting with this content: "run", "connect to" or "set"."""
    try:
        data = json.loads(content)
    except ValueError:
        data = None
    if not isinstance(data, dict):
        return "set"
    last = _last_key(str(data.get("pointer", "")))
    if data.get("command") or last in {"args", "command"}:
        return "run"
    return "connect to" if data.get("url") or last == "url" else "set"


def _find_executable(program: str, place: CommandWorkspace, search_path: object) -> str | None:
    found = find_executable(program, place, search_path)
    # The client that starts it may split the string after all.
    return found or find_executable(next(iter(program.split()), ""), place, search_path)


def _digest_values(values: object) -> object:
    if isinstance(values, Mapping):
        return {str(name): digest_secret(canonical(value)) for name, value in values.items()}
    return digest_secret(canonical(values)) if values else {}


def _digest_texts(value: object, key: str) -> object:
    """Return a value with every string as a digest, unless its key marks it as public."""
    if isinstance(value, Mapping):
        return {name: _digest_texts(each, str(name)) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_digest_texts(each, key) for each in value]
    if not isinstance(value, str):
        return value
    return _URL_PASSWORD.sub(_digest_password, value) if key in _SHOWN_SETTINGS else digest_secret(canonical(value))


def _digest_password(match: re.Match[str]) -> str:
    return f"{match[1]}{digest_secret(match[2])}@"


def _iter_texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _iter_texts(each)


def _to_text(value: object) -> str:
    return value if isinstance(value, str) else canonical(value)


def _last_key(pointer: str) -> str:
    return re.split("[./]", pointer)[-1]


def _to_json_type(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is not JSON")
