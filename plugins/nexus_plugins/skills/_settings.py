"""Settings under `plugins.skills` in config.json."""

from __future__ import annotations

from pydantic import Field

from nexus_core.plugin.settings import StrictModel


class SkillsSettings(StrictModel):
    """Settings of skills."""

    tool: bool = Field(
        default=False,
        description="Offer the tool `read_skill`, for agents without a shell; the program has to run it with "
        "`nexus_plugins.skills.call`.",
    )
