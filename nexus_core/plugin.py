"""What authors of plugins import besides the values in `nexus_core`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from nexus_core.files.reading import read_bytes, read_text
from nexus_core.text.console import Console
from nexus_core.text.visible import visible, visible_line

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from nexus_core.nexus import Nexus

__all__ = ["Console", "Shell", "read_bytes", "read_text", "visible", "visible_line"]


class Shell(Protocol):
    """What a command of a plugin finds in `ctx.obj`.

    Attributes:
        console: Where to print; data and messages kept apart, control characters made visible.
    """

    console: Console

    @property
    def cwd(self) -> Path:
        """The directory the command is about: `-C DIR`, else the current one."""

    def nexus(self) -> AbstractContextManager[Nexus]:
        """Open a Nexus for `cwd`; problems with plugins are printed, and it is closed at the end."""
