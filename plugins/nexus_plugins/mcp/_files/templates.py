"""What a new mcp.json begins with."""

from __future__ import annotations

from typing import Literal

from nexus_core.plugin import InitFile, defaults_directory
from nexus_plugins.mcp._files.reader import FILE


def init_files(_scope: Literal["local", "global"]) -> list[InitFile]:
    """An mcp.json without servers, for a project and for the user alike."""
    return [InitFile(FILE, (defaults_directory() / FILE).read_text(encoding="utf-8"))]
