"""References in server definitions to environment variables, inputs and paths.

Reading, showing and comparing definitions leave them as they are. Only starting a server resolves them.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, NamedTuple

from nexus_core import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

INPUT_PREFIX = "NEXUS_INPUT_"
"""Prefix of the environment variable that holds the value of an `${input:id}`."""

_REFERENCE = re.compile(r"\$\{([^{}]*)\}")
AUTH_SCHEME = re.compile(r"\s*+(?:(?:Bearer|Basic|Token)\s++)?", re.IGNORECASE)
"""The scheme that may precede the reference to a token in a header; it is not secret."""
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PROJECT_VARIABLES = frozenset({"workspaceFolder", "workspaceRoot", "CLAUDE_PROJECT_DIR"})
_PATH_VARIABLES = _PROJECT_VARIABLES | {"workspaceFolderBasename", "userHome", "pathSeparator", "/"}
_GEMINI_REFERENCE = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")
_REFERENCE_TEMPLATES = {"vscode": "${{env:{}}}", "cursor": "${{env:{}}}", "opencode": "{{env:{}}}"}
TOOLS_WITHOUT_DEFAULTS = frozenset({"claude-desktop", "vscode", "cursor", "codex", "gemini", "opencode"})
"""The tools that do not support `${NAME:-default}`, or not in every version."""
_OPENCODE_REFERENCE = re.compile(r"(?<!\$)\{env:([A-Za-z_][A-Za-z0-9_]*)\}")


class ConfigReference(NamedTuple):
    """A parsed reference.

    Attributes:
        kind: `variable`, `input`, `place` (the directory of the project, the user's home), or `unknown`.
        name: The name of the variable, input or path.
        default: The value for a variable that is not set; None if the reference has no default.
    """

    kind: str
    name: str
    default: str | None = None

    @property
    def variable(self) -> str:
        """The name of the environment variable that holds the value."""
        return INPUT_PREFIX + re.sub("[^A-Za-z0-9]", "_", self.name).upper() if self.kind == "input" else self.name


def find_references(text: str) -> Iterator[ConfigReference]:
    """Return the references in a text, in order."""
    return (_parse_reference(match[1]) for match in _REFERENCE.finditer(text))


def resolve_references(text: str, variables: Mapping[str, str], folder: Path, what: str) -> str:
    """Return a text with all references resolved.

    Args:
        text: The text.
        variables: The environment.
        folder: The directory of the project.
        what: The name of the text in errors, which never show the text itself.

    Raises:
        ConfigError: A variable is not set, or a reference has an unknown form.
    """

    def resolve(match: re.Match[str]) -> str:
        reference = _parse_reference(match[1])
        if reference.kind == "place":
            return _resolve_path_variable(reference.name, folder)
        if reference.kind == "unknown":
            raise ConfigError(
                f"{what} has an unknown reference",
                hint="write ${NAME}, ${NAME:-default}, ${env:NAME} or ${input:id}",
            )
        value = variables.get(reference.variable)
        if value or (value is not None and reference.default is None):
            return value
        if reference.default is not None:
            return reference.default
        raise ConfigError(
            f"{what} needs the variable {reference.variable}, which is not set",
            hint=f"set {reference.variable} in the environment that Nexus is started in",
        )

    return _REFERENCE.sub(resolve, text)


def normalize_references(text: str, dialect: str) -> str:
    """Convert the references in a text of another tool to the form of Nexus."""
    if dialect == "gemini":
        return _GEMINI_REFERENCE.sub(r"${\1}", text)
    return _OPENCODE_REFERENCE.sub(r"${env:\1}", text) if dialect == "opencode" else text


def format_references(text: str, target: str) -> str:
    """Convert the references in a text to the form of another tool."""

    def convert(match: re.Match[str]) -> str:
        reference = _parse_reference(match[1])
        if reference.kind == "variable" or (reference.kind == "input" and target not in {"nexus", "vscode"}):
            default = "" if reference.default is None or target in TOOLS_WITHOUT_DEFAULTS else f":-{reference.default}"
            return _REFERENCE_TEMPLATES.get(target, "${{{}}}").format(reference.variable + default)
        return match[0]

    return _REFERENCE.sub(convert, text)


def find_native_references(text: str, target: str) -> Iterator[str]:
    """Return the parts of a text that are references for another tool, but not for Nexus."""
    pattern = {"gemini": _GEMINI_REFERENCE, "opencode": _OPENCODE_REFERENCE}.get(target)
    return (match[0] for match in pattern.finditer(text)) if pattern else iter(())


def strip_defaults(text: str) -> str:
    """Return a text whose references have no defaults, because a default may be a secret."""
    return _REFERENCE.sub(
        lambda match: f"${{{_parse_reference(match[1]).name}}}" if _parse_reference(match[1]).default else match[0],
        text,
    )


def strip_references(text: str) -> str:
    """Return a text without its references."""
    return _REFERENCE.sub("", text)


def _resolve_path_variable(name: str, folder: Path) -> str:
    if name in _PROJECT_VARIABLES:
        return str(folder)
    if name == "userHome":
        return str(folder.home())
    return folder.name if name == "workspaceFolderBasename" else os.sep


def _parse_reference(inner: str) -> ConfigReference:
    kind, colon, rest = inner.partition(":")
    if colon and kind == "input" and rest:
        return ConfigReference("input", rest)
    if colon and kind == "env" and _VARIABLE_NAME.fullmatch(rest):
        return ConfigReference("variable", rest)
    if inner in _PATH_VARIABLES:
        return ConfigReference("place", inner)
    name, has_default, default = inner.partition(":-")
    name = name.removeprefix("env:")
    if _VARIABLE_NAME.fullmatch(name) and (has_default or ":" not in inner):
        return ConfigReference("variable", name, default if has_default else None)
    return ConfigReference("unknown", "")
