"""Settings under `plugins.memory` in config.json."""

from __future__ import annotations

from pydantic import Field

from nexus_core.plugin.settings import StrictModel


class MemorySettings(StrictModel):
    """Settings of memory sources."""

    tool: bool = Field(
        default=False,
        description="Offer the tool `recall`, with which a model searches memories itself; the program has to run it "
        "with `nexus_plugins.memory.call`.",
    )
