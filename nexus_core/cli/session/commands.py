"""All commands of `nexus session`; importing this fills the group."""

from __future__ import annotations

from nexus_core.cli.session import (
    changing,
    exporting,
    importing,
    listing,
    mending,
    recording,
    replaying,
    showing,
    stats,
    tree,
)
from nexus_core.cli.session.group import app

__all__ = [
    "app",
    "changing",
    "exporting",
    "importing",
    "listing",
    "mending",
    "recording",
    "replaying",
    "showing",
    "stats",
    "tree",
]
