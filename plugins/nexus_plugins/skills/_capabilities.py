"""How things stand with a guide: whether what it needs is there, and whether it was ever used."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal, NamedTuple

from nexus_plugins.skills._used import read_used

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from nexus_core.plugin import Settings
    from nexus_plugins.skills._guide import Guide

Status = Literal["used", "ready", "unready"]
"""Ready and used before; ready; something that it needs is missing."""

Credentials = Literal["none", "configured", "broken", "absent"]
"""Whether it needs variables at all; whether all, some or none of them are set."""


class Capability(NamedTuple):
    """A guide, and how things stand with it.

    Attributes:
        guide: The guide.
        status: Whether it can be used.
        missing: The variables and programs that it needs and that are not there.
        credentials: How many of its variables are set; their values are nobody's business.
    """

    guide: Guide
    status: Status
    missing: tuple[str, ...]
    credentials: Credentials

    @property
    def facts(self) -> dict[str, object]:
        """The same for programs."""
        return {
            "name": self.guide.name,
            "category": self.guide.category,
            "status": self.status,
            "missing": list(self.missing),
        }


def capabilities_of(guides: Mapping[str, Guide], home: Path, settings: Settings) -> list[Capability]:
    """What of some guides the settings let an agent know, and how things stand with it, in the same order."""
    enabled, disabled = settings.get("skills.enabled"), settings.get("skills.disabled")
    unwanted = set(disabled) if isinstance(disabled, list) else set()
    wanted = [
        guide
        for name, guide in guides.items()
        if name not in unwanted and (not isinstance(enabled, list) or name in enabled)
    ]
    used = read_used(home) if wanted else frozenset()
    return [judge(guide, is_used=bool(used) and os.path.realpath(guide.path) in used) for guide in wanted]


def judge(guide: Guide, *, is_used: bool) -> Capability:
    """How things stand with a guide in the environment of this process."""
    unset = [name for name in guide.variables if not os.environ.get(name)]
    missing = (*unset, *(name for name in guide.programs if not _is_installed(name)))
    status: Status = "unready" if missing else "used" if is_used else "ready"
    return Capability(guide, status, missing, _credentials(len(guide.variables), len(unset)))


def _credentials(needed: int, unset: int) -> Credentials:
    if not needed:
        return "none"
    if not unset:
        return "configured"
    return "broken" if unset < needed else "absent"


def _is_installed(program: str) -> bool:
    from shutil import which  # noqa: PLC0415 - most guides need no program

    # What a project puts into a directory that is only named relative to it is no program of the user's.
    places = [place for place in os.environ.get("PATH", "").split(os.pathsep) if os.path.isabs(place)]  # noqa: PTH117 - as PATH has it
    return which(program, path=os.pathsep.join(places)) is not None if places else False
