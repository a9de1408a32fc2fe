"""What may stand under `plugins.policy`."""

from __future__ import annotations

from pydantic import Field

from nexus_core.plugin import Strict


class PolicySettings(Strict):
    teams: list[str] = Field(default_factory=list)
    endpoint: str | None = None
