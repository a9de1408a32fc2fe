"""A file with variables for a server, which is read when the server is started and not before."""

from __future__ import annotations

import os
import re
from pathlib import Path

from nexus_core import ConfigError, FileError
from nexus_core.plugin import read_bytes
from nexus_plugins.mcp._errors import RefusedError

LARGEST = 1024 * 1024
"""Bytes of such a file."""
_LINE = re.compile(
    r"""\s*(?:export\s+)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)\s*=\s*
        (?: "(?P<double>(?:[^"\\]|\\.)*)" | '(?P<single>[^']*)' | (?P<bare>[^"'\s#][^#]*?|(?=\s*$)|(?=\#)) )
        \s*(?:\#.*)?""",
    re.VERBOSE,
)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}
# An approval covers the file, but not what these would load.
_LOADS_CODE = re.compile(r"PATH|BASH_ENV|ENV|JAVA_TOOL_OPTIONS|(?:LD|DYLD|NODE|PERL5?|PYTHON|RUBY)_?[A-Z0-9_]*")


def read_variables(path: Path, server: str, inside: Path | None) -> dict[str, str]:
    """The variables in a file of lines such as `TOKEN=value`.

    Args:
        path: The file.
        server: The name of the server that it is for.
        inside: For a server of a project, the directory of the project: nothing outside is read on its behalf.

    Raises:
        RefusedError: It is outside, or it would load code.
        ConfigError: It cannot be read, or a line of it is not understood; no line is shown.
    """
    if inside is not None and not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(inside)):
        raise RefusedError(server, "is not started: its variables are in a file outside the project")
    try:
        data = read_bytes(path, max_bytes=LARGEST)
        text = None if data is None else data.decode("utf-8-sig")
    except (FileError, UnicodeDecodeError):
        text = None
    if text is None:
        hint = "make it readable, or take 'env_file' out"
        raise ConfigError(f"the variables of server {server!r} cannot be read", where=str(path), hint=hint)
    variables = _parse(text, path, server)
    for name in variables if inside is not None else ():
        if _LOADS_CODE.fullmatch(name):
            raise RefusedError(server, f"is not started: the file with its variables sets {name}, which may load code")
    return variables


def _parse(text: str, path: Path, server: str) -> dict[str, str]:
    variables: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            hint = "write NAME=value, with quotation marks around a value that has blanks"
            raise ConfigError(f"a variable of server {server!r} is not understood", where=f"{path}:{number}", hint=hint)
        variables[match["name"]] = _value(match)
    return variables


def _value(match: re.Match[str]) -> str:
    if match["double"] is not None:
        return re.sub(r"\\(.)", lambda each: _ESCAPES.get(each[1], each[1]), match["double"])
    return str(match["single"] if match["single"] is not None else match["bare"] or "").strip()
