"""What a new layer begins with."""

from __future__ import annotations

from typing import Literal

from nexus_core.plugin import InitFile, defaults_directory
from nexus_plugins.file_layers._discovery import SETTINGS, TEXT


def init_files(scope: Literal["local", "global"]) -> list[InitFile]:
    """For a project, templates to be filled in; for the user's own directory, the defaults, to be changed."""
    source = defaults_directory()
    if scope == "local":
        source /= "templates"
    return [InitFile(name, (source / name).read_text(encoding="utf-8")) for name in (TEXT, SETTINGS)]
