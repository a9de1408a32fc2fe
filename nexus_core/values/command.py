"""A command group that a plugin adds to the command line."""

from __future__ import annotations

import re
from dataclasses import dataclass

_NAME = re.compile(r"[a-z][a-z0-9-]*")
_TARGET = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class Command:
    """What `nexus` needs to list a command without importing it.

    Attributes:
        name: The word typed after `nexus`: lower case, digits and hyphens.
        help: One line for the list of commands.
        target: The `typer.Typer` to load when the command runs, as `package.module:attribute`.
    """

    name: str
    help: str
    target: str

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"Command.name must be lower case letters, digits and hyphens, not {self.name!r}")
        if not _TARGET.fullmatch(self.target):
            raise ValueError(f"Command.target must look like 'package.module:attribute', not {self.target!r}")
