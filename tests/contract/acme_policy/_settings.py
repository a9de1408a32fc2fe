"""What may stand under `plugins.policy`."""

from __future__ import annotations

from pydantic import Field

from nexus_core.plugin.settings import StrictModel


class PolicySettings(StrictModel):
    teams: list[str] = Field(default_factory=list)
    endpoint: str | None = None
