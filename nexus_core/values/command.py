"""A command group that a plugin adds to the command line."""

from __future__ import annotations

from nexus_core.values.checks import require_type
from nexus_core.values.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Command:
    """What `nexus` needs to list a command without importing it.

    Attributes:
        name: The word typed after `nexus`: lower case letters, digits and hyphens, starting with a letter.
        help: One line for the list of commands.
        target: The `typer.Typer` to load when the command runs, as `package.module:attribute`.
    """

    name: str
    help: str
    target: str

    def __post_init__(self) -> None:
        for field in ("name", "help", "target"):
            require_type(getattr(self, field), f"Command.{field}", str)
        is_word = self.name[:1].isalpha() and self.name.replace("-", "_").isidentifier()
        if not is_word or self.name != self.name.lower():
            raise ValueError(f"Command.name must be lower case letters, digits and hyphens, not {self.name!r}")
        module, _, attribute = self.target.partition(":")
        if not all(part.isidentifier() for part in (*module.split("."), attribute)):
            raise ValueError(f"Command.target must look like 'package.module:attribute', not {self.target!r}")
