"""Findings of `nexus doctor` about skills."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from nexus_core import Finding
from nexus_plugins.skills._guides import find_guides

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from nexus_core.plugin import LoadedLayers


def diagnose_skills(loaded: LoadedLayers) -> list[Finding]:
    """Return findings about unusable and odd guides, and settings that name unknown skills."""
    found = find_guides(loaded)
    faults = (
        Finding(
            "odd-skill" if fault.is_used else "unusable-skill",
            fault.message,
            fault.path,
            fault.line,
            is_note=fault.is_note,
        )
        for fault in found.faults
    )
    return [*faults, *_find_missing(loaded, found.guides)]


def _find_missing(loaded: LoadedLayers, guides: Collection[str]) -> Iterator[Finding]:
    """Yield findings about unknown skills: a note, since other projects may have them, unless the name is close."""
    for key in ("skills.enabled", "skills.disabled"):
        names = loaded.settings.get(key)
        origins = loaded.settings.origins.get(f"/{key.replace('.', '/')}")
        path, line = (origins[0].path, origins[0].line) if origins else (None, 0)
        for name in names if isinstance(names, list) else ():
            if name not in guides:
                nearest = get_close_matches(str(name), sorted(guides), n=1)
                hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
                message = f"{key}: there is no skill {name!r} here{hint}"
                yield Finding("unknown-name", message, path, line, is_note=not nearest)
