"""What `nexus doctor` says about the ledger."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from nexus_core import Finding
from nexus_core.plugin import LedgerError

if TYPE_CHECKING:
    from nexus_core import Request
    from nexus_core.plugin import Loaded

_USUAL = "ledger.db"
"""In the user's own directory, where no setting says otherwise."""
_SOUND = (3, 51, 3)
_ALSO_SOUND = {(3, 44): 6, (3, 50): 7}
"""Earlier releases that have the same fix."""


def diagnose(request: Request, loaded: Loaded) -> list[Finding]:
    """What is not as it should be about the file in which conversations are kept; nothing is opened."""
    url = loaded.settings.get("ledger.url")
    url = url if isinstance(url, str) else f"sqlite:///{request.home / _USUAL}"
    if not url.startswith("sqlite:"):
        return []
    import sqlite3  # noqa: PLC0415 - only the doctor asks, and many keep nothing

    from nexus_plugins.ledger.sqlite import path_of  # noqa: PLC0415 - as above
    from nexus_plugins.ledger.sqlite.network import network_of, without_log  # noqa: PLC0415 - as above

    try:
        path = path_of(url)
    except LedgerError:  # whoever wants to keep something hears of it
        return []
    if not os.path.exists(path):  # noqa: PTH110 - Path.exists raises where it cannot be reached
        return []
    if kind := network_of(path):
        return [Finding("ledger-on-network", without_log(kind), path, is_note=True)]
    if is_sound(sqlite3.sqlite_version_info):
        return []
    return [Finding("old-sqlite", _about(sqlite3.sqlite_version), path, is_note=True)]


def is_sound(version: tuple[int, int, int]) -> bool:
    """Whether a release of SQLite is without the fault by which a log that is begun anew can damage a file."""
    return version >= _SOUND or version[2] >= _ALSO_SOUND.get(version[:2], version[2] + 1)


def _about(version: str) -> str:
    return (
        f"SQLite {version} can damage a file that two programs write at one moment (mended in 3.51.3); Nexus's own take"
        " turns, but let no other program write to the ledger, or use a Python with a newer SQLite"
    )
