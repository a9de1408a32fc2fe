"""Remembers which guides were used, in a small file of the user's own directory."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from nexus_core import NexusError
from nexus_core.plugin import locked, make_directories, read_text, write_text_atomically

if TYPE_CHECKING:
    from pathlib import Path

FILE = "used-skills.json"
MAX_REMEMBERED = 1000


def read_used(home: Path) -> frozenset[str]:
    """The files of the guides that were used before; none where that cannot be told."""
    return frozenset(_read(home))


def mark_used(home: Path, guide: Path) -> None:
    """Remember that a guide was used; the longest forgotten make room.

    Raises:
        FileError: It cannot be written down.
    """
    name = os.path.realpath(guide)
    if name in _read(home):
        return
    make_directories(home, mode=0o700)
    with locked(home / "used-skills.lock"):
        used = [each for each in _read(home) if each != name]  # somebody else may have written meanwhile
        write_text_atomically(home / FILE, _encoded([*used, name][-MAX_REMEMBERED:]), mode=0o600)


def _read(home: Path) -> list[str]:
    import json  # noqa: PLC0415 - a prompt without guides needs none

    try:
        document = json.loads(read_text(home / FILE) or "{}")
    except (NexusError, ValueError, RecursionError):  # a memory that is lost costs a star, not the prompt
        return []
    used = document.get("used") if isinstance(document, dict) else None
    return [each for each in used if isinstance(each, str)] if isinstance(used, list) else []


def _encoded(used: list[str]) -> str:
    import json  # noqa: PLC0415 - as above

    return json.dumps({"schema": 1, "used": used}, indent=1) + "\n"  # in ASCII: a path may have half a character in it
