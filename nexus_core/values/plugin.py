"""Facts about a plugin."""

from __future__ import annotations

from typing import Literal

from nexus_core.values.fast_dataclass import dataclass

Status = Literal["active", "disabled", "failed", "needs-extra"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginInfo:
    """One row of `nexus plugins list`."""

    name: str
    distribution: str
    version: str
    bundled: bool
    status: Status
    hooks: tuple[str, ...] = ()
    error: str | None = None
