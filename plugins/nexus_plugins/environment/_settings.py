"""What may stand under `plugins.environment` in config.json."""

from __future__ import annotations

from pydantic import Field

from nexus_core.plugin import Strict


class EnvironmentSettings(Strict):
    """Which facts are told."""

    terminal: bool = Field(
        default=True,
        description="Whether `nexus show --loaded` and `ContextLoader` name the terminal, in mode `repl`.",
    )
    host: bool = Field(
        default=True,
        description="Whether the model is told the name of this machine.",
    )
    git: bool = Field(default=False, description="Whether each message says which branch is checked out.")
