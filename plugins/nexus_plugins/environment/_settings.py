"""What may stand under `plugins.environment` in config.json."""

from __future__ import annotations

from pydantic import Field

from nexus_core.plugin import Strict


class EnvironmentSettings(Strict):
    """Which facts are told."""

    terminal: bool = Field(
        default=True, description="Whether the terminal is named, in mode `repl` and outside of sessions."
    )
    host: bool = Field(default=True, description="Whether sessions are told the machine's name.")
    git: bool = Field(default=False, description="Whether each message says which branch is checked out.")
