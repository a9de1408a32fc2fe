"""All commands of `nexus session`; importing this fills the group."""

from __future__ import annotations

from nexus_core.cli.session import (
    changing,
    compacting,
    exporting,
    importing,
    listing,
    mending,
    pinning,
    recording,
    replaying,
    showing,
    stats,
    tree,
    undoing,
)
from nexus_core.cli.session.group import app

__all__ = [
    "app",
    "changing",
    "compacting",
    "exporting",
    "importing",
    "listing",
    "mending",
    "pinning",
    "recording",
    "replaying",
    "showing",
    "stats",
    "tree",
    "undoing",
]
