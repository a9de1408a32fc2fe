"""What authors of plugins import besides the values in `nexus_core`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from nexus_core.config.documents import read_document as read_json
from nexus_core.config.documents import setting_error
from nexus_core.files.admission import (
    Admission,
    accepted_owners,
    is_foreign,
    real_path,
    repository_root,
)
from nexus_core.files.places import defaults_directory
from nexus_core.files.reading import read_bytes, read_text
from nexus_core.text.console import Console
from nexus_core.text.visible import visible, visible_line

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from nexus_core.config.schema import Strict
    from nexus_core.nexus import Nexus
    from nexus_core.values.declarations import InitScope as InitScope  # noqa: PLC0414 - for annotations of plugins

__all__ = [
    "Admission",
    "Console",
    "Shell",
    "Strict",
    "accepted_owners",
    "defaults_directory",
    "is_foreign",
    "read_bytes",
    "read_json",
    "read_text",
    "real_path",
    "repository_root",
    "setting_error",
    "visible",
    "visible_line",
]


def __getattr__(name: str) -> object:
    if name != "Strict":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from nexus_core.config.schema import Strict  # noqa: PLC0415 - pydantic only for those who declare settings

    return Strict


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
