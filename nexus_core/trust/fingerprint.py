"""What an approval covers, and how it is shown to the person who is asked.

The content of a setting is canonical: what means the same is the same text. Secret values are in it as digests only.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from nexus_core.config.merging import is_comment
from nexus_core.text.hidden import bare
from nexus_core.text.visible import visible_line
from nexus_core.trust.scripts import CommandWorkspace, ProjectCode, find_code, find_executable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Effect = Literal["run", "connect to", "set"]

HOME = "/home"
"""The pointer of the user's own settings, where these wait for approval."""

# What is told about a server as it is; of anything that is not known, only a digest.
_TOLD = ("enabled", "env_passthrough", "transport", "type")
_KNOWN = frozenset({"name", "command", "args", "env", "env_file", "cwd", "url", "headers", *_TOLD})
# What names a program, an address or who reads a conversation is shown whole, as whoever approves it must see it.
_OPEN = frozenset({"args", "command", "summarisers", "url"})
# Only what every reader of addresses takes for a password: hiding more could hide where a connection goes.
_PASSWORD = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*://[^/?#\\@:\s]*:)([^/?#\\@\s]+)@")


def canonical(value: object) -> str:
    """The one JSON text for a value: keys sorted, no white space, ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, default=_as_json)


def secret_digest(text: str) -> str:
    """What is kept of a secret: enough to see that it changed, not what it is."""
    return f"sha256:{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"


def server_content(server: Mapping[str, object], root: Path) -> str:
    """Everything that an approval of an MCP server covers, but for the bytes of its code.

    That is its definition, with the values of environment and headers as digests; the program that its command starts;
    and the names of the files and directories of the project that it runs, whose bytes `coverage.measure` adds.
    """
    environment = server.get("env")
    variables = environment if isinstance(environment, Mapping) else {}
    place = CommandWorkspace.of(root, server.get("cwd"))
    command = words_of(server)
    executable = _executable(command[0], place, variables.get("PATH")) if command else None
    known = {key: server[key] for key in ("name", "cwd", "env_file", *_TOLD) if server.get(key) is not None}
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
            "env": _digests(environment),
            "url": _PASSWORD.sub(_digest_password, url) if isinstance(url, str) else url,
            "headers": _digests(server.get("headers")),
            "executable": executable,
            **_code_content(code, place),
            "other": _digests({key: server[key] for key in server if key not in _KNOWN and not is_comment(key)}),
        }
    )


def setting_content(pointer: str, value: object, *, root: Path | None = None) -> str:
    """Everything that an approval of another active setting covers, but for the bytes of its code.

    Args:
        pointer: Which setting it is.
        value: What it is set to; texts in it are kept as digests, unless they are a command or an address.
        root: If given, the code inside it that the value runs or names is covered too.
    """
    code: dict[str, object] = {"files": {}}
    if root is not None:
        place, command = CommandWorkspace.of(root, None), list(_texts(value))
        executable = find_executable(command[0], place) if command and _last(pointer) == "command" else None
        found = find_code(command, place, executable=executable)
        # What starts it sets no variables that would keep Python from bytecode.
        code = _code_content(found._replace(with_bytecode=bool(found.trees)), place)
    return canonical({"kind": "setting", "pointer": pointer, "value": _guarded(value, _last(pointer)), **code})


def home_content(home: Path) -> str:
    """Everything that an approval of the user's own settings covers, where these may have come with a repository."""
    root = os.path.realpath(home)
    files = [name for name in ("config.json", "mcp.json") if os.path.lexists(os.path.join(root, name))]  # noqa: PTH118
    code = {"files": files, "trees": [], "with_bytecode": False, "root": root}
    return canonical({"kind": "setting", "pointer": HOME, "value": root, "code": code})


def runs_own_code(content: str) -> bool:
    """Return True if a command with this content runs code of the project."""
    try:
        return bool(json.loads(content)["code"]["trees"])
    except (ValueError, TypeError, KeyError):
        return False


def _code_content(code: ProjectCode, place: CommandWorkspace) -> dict[str, object]:
    """The code as a part of a content; where there is none, in the words of approvals that were made before."""
    return {"code": {**code._asdict(), "root": str(place.limit)}} if code.files or code.trees else {"files": {}}


def describe_server(server: Mapping[str, object]) -> str:
    """What a server would start or connect to, whole and in one line; of environment and headers only the names."""
    command, url = words_of(server), server.get("url")
    said = [shlex.join(command)] if command else []
    if isinstance(url, str) and url:
        said.append(shlex.quote(without_password(url)))
    if server.get("cwd") is not None:
        said.append(f"directory: {shlex.quote(_text(server['cwd']))}")
    if server.get("env_file"):
        said.append(f"environment from: {shlex.quote(_text(server['env_file']))}")
    for key, title in (("env", "environment"), ("headers", "headers")):
        names = server.get(key)
        if isinstance(names, Mapping) and names:
            said.append(f"{title}: {' '.join(shlex.quote(_text(name)) for name in sorted(names))}")
    return one_line("; ".join(said) or "nothing: there is neither a command nor an address")


def describe_setting(dotted: str, value: object) -> str:
    """A setting and what it is set to, in one line; only its name where that may be a secret."""
    if isinstance(value, bool | int | float):
        shown = canonical(value)
    elif dotted.rpartition(".")[2] in _OPEN:
        words = value if isinstance(value, list) else [value]
        shown = shlex.join(without_password(_text(word)) for word in words)
    else:
        return one_line(dotted)
    return one_line(f"{dotted} = {shown}")


def words_of(server: Mapping[str, object]) -> list[str]:
    """Program and arguments of a server; a program that is given as text is one word, blanks and all."""
    words: list[str] = []
    for key in ("command", "args"):
        value = server.get(key)
        if isinstance(value, list | tuple):
            words += map(_text, value)
        elif value is not None:
            words.append(_text(value))
    return words


def without_password(text: str) -> str:
    """A text with the password left out, if it is an address that has one."""
    return _PASSWORD.sub(r"\1***@", text)


def one_line(text: str) -> str:
    r"""`text` in one line, with every character that nobody would see as an escape."""
    line = visible_line(text)
    if line.isascii():
        return line
    return "".join(each if each.isprintable() and bare(each) else _escape(each) for each in line)


def effect(content: str) -> Effect:
    """What a setting with this content would do, in a word."""
    try:
        data = json.loads(content)
    except ValueError:
        data = None
    if not isinstance(data, dict):
        return "set"
    last = _last(str(data.get("pointer", "")))
    if data.get("command") or last in {"args", "command"}:
        return "run"
    return "connect to" if data.get("url") or last == "url" else "set"


def _executable(program: str, place: CommandWorkspace, search_path: object) -> str | None:
    found = find_executable(program, place, search_path)
    # Whoever starts it may split the text after all.
    return found or find_executable(next(iter(program.split()), ""), place, search_path)


def _digests(values: object) -> object:
    if isinstance(values, Mapping):
        return {str(name): secret_digest(canonical(value)) for name, value in values.items()}
    return secret_digest(canonical(values)) if values else {}


def _guarded(value: object, key: str) -> object:
    """A value with every text in it as a digest, unless its key says that it is no secret."""
    if isinstance(value, Mapping):
        return {name: _guarded(each, str(name)) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_guarded(each, key) for each in value]
    if not isinstance(value, str):
        return value
    return _PASSWORD.sub(_digest_password, value) if key in _OPEN else secret_digest(canonical(value))


def _digest_password(match: re.Match[str]) -> str:
    return f"{match[1]}{secret_digest(match[2])}@"


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(each)


def _text(value: object) -> str:
    return value if isinstance(value, str) else canonical(value)


def _last(pointer: str) -> str:
    return re.split("[./]", pointer)[-1]


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def _as_json(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is not JSON")
