"""References to what is not in a file: variables, what a person is asked for, the directory of the project.

They stay as they are wherever servers are read, shown and compared; only what starts a server looks them up.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, NamedTuple

from nexus_core import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

INPUT = "NEXUS_INPUT_"
"""What begins the name of the variable that answers an `${input:id}`."""

_REFERENCE = re.compile(r"\$\{([^{}]*)\}")
SCHEME = re.compile(r"\s*(?:(?:Bearer|Basic|Token)\s+)?\s*", re.IGNORECASE)
"""What may stand before the reference to a token in a header, and is no secret."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FOLDERS = frozenset({"workspaceFolder", "workspaceRoot", "CLAUDE_PROJECT_DIR"})
_PLACES = _FOLDERS | {"workspaceFolderBasename", "userHome", "pathSeparator", "/"}
_BARE = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")  # as Gemini CLI writes them
_FORMS = {"vscode": "${{env:{}}}", "cursor": "${{env:{}}}", "opencode": "{{env:{}}}"}
WITHOUT_DEFAULTS = frozenset({"vscode", "cursor", "codex", "gemini", "opencode"})
"""The tools that know no words for a variable that is not set, or not in every version."""
_BRACED = re.compile(r"(?<!\$)\{env:([A-Za-z_][A-Za-z0-9_]*)\}")  # as opencode does


class Reference(NamedTuple):
    """What is referred to.

    Attributes:
        kind: `variable`, `input`, `place` (the directory of the project, the user's home), or `unknown`.
        name: Of the variable or the input.
        default: What stands for a variable that is not set; None when there is nothing.
    """

    kind: str
    name: str
    default: str | None = None

    @property
    def variable(self) -> str:
        """The variable of the environment that is looked up."""
        return INPUT + re.sub("[^A-Za-z0-9]", "_", self.name).upper() if self.kind == "input" else self.name


def references_in(text: str) -> Iterator[Reference]:
    """What a text refers to, in its order."""
    return (_read(match[1]) for match in _REFERENCE.finditer(text))


def resolve(text: str, variables: Mapping[str, str], folder: Path, what: str) -> str:
    """A text with everything in place that it refers to.

    Args:
        text: The text.
        variables: The environment.
        folder: The directory of the project.
        what: What to call the text in an error, which never shows the text itself.

    Raises:
        ConfigError: Something is not there, or nobody knows what is meant.
    """

    def found(match: re.Match[str]) -> str:
        reference = _read(match[1])
        if reference.kind == "place":
            return _place(reference.name, folder)
        if reference.kind == "unknown":
            raise ConfigError(
                f"{what} has a reference that is not understood",
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

    return _REFERENCE.sub(found, text)


def in_usual_form(text: str, dialect: str) -> str:
    """A text of another tool, with its references as Nexus writes them."""
    if dialect == "gemini":
        return _BARE.sub(r"${\1}", text)
    return _BRACED.sub(r"${env:\1}", text) if dialect == "opencode" else text


def in_words_of(text: str, target: str) -> str:
    """A text for another tool, with its references as that tool writes them."""

    def written(match: re.Match[str]) -> str:
        reference = _read(match[1])
        if reference.kind == "variable" or (reference.kind == "input" and target not in {"nexus", "vscode"}):
            default = "" if reference.default is None or target in WITHOUT_DEFAULTS else f":-{reference.default}"
            return _FORMS.get(target, "${{{}}}").format(reference.variable + default)
        return match[0]

    return _REFERENCE.sub(written, text)


def foreign_references_in(text: str, target: str) -> Iterator[str]:
    """What another tool would take for a reference, and Nexus does not."""
    pattern = {"gemini": _BARE, "opencode": _BRACED}.get(target)
    return (match[0] for match in pattern.finditer(text)) if pattern else iter(())


def without_defaults(text: str) -> str:
    """A text in which no words stand for a variable that is not set, because they may be a secret."""
    return _REFERENCE.sub(lambda match: f"${{{_read(match[1]).name}}}" if _read(match[1]).default else match[0], text)


def without_references(text: str) -> str:
    """What a text says besides."""
    return _REFERENCE.sub("", text)


def _place(name: str, folder: Path) -> str:
    if name in _FOLDERS:
        return str(folder)
    if name == "userHome":
        return str(folder.home())
    return folder.name if name == "workspaceFolderBasename" else os.sep


def _read(inner: str) -> Reference:
    kind, colon, rest = inner.partition(":")
    if colon and kind == "input" and rest:
        return Reference("input", rest)
    if colon and kind == "env" and _NAME.fullmatch(rest):
        return Reference("variable", rest)
    if inner in _PLACES:
        return Reference("place", inner)
    name, has_default, default = inner.partition(":-")
    name = name.removeprefix("env:")
    if _NAME.fullmatch(name) and (has_default or ":" not in inner):
        return Reference("variable", name, default if has_default else None)
    return Reference("unknown", "")
