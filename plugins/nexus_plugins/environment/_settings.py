"""Settings under `plugins.environment` in config.json."""

from __future__ import annotations

from pydantic import Field

from nexus_core.plugin.settings import StrictModel


class EnvironmentSettings(StrictModel):
    """Settings of the facts about the machine."""

    terminal: bool = Field(
        default=True,
        description="Name the terminal in `nexus show --loaded` and `ContextLoader`, in mode `repl`.",
    )
    host: bool = Field(
        default=True,
        description="Name this machine in the prompt.",
    )
    git: bool = Field(default=False, description="Name the checked-out branch in each message.")
