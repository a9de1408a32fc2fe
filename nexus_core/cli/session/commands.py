"""All commands of `nexus session`; importing this fills the group."""

from __future__ import annotations

from nexus_core.cli.session import listing
from nexus_core.cli.session.group import app

__all__ = ["app", "listing"]
