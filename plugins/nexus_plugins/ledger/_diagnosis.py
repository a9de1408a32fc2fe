"""Findings of `nexus doctor` about the ledger's file system and SQLite release."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from nexus_core import Finding
from nexus_core.plugin.ledgers import LedgerError

if TYPE_CHECKING:
    from nexus_core import Request
    from nexus_core.plugin import LoadedLayers

_DEFAULT_FILE = "ledger.db"
"""In the user's Nexus directory; the default of `ledger.url`."""
_MIN_SAFE_VERSION = (3, 51, 3)
_PATCHED_RELEASES = {(3, 44): 6, (3, 50): 7}
"""First patch version with the same fix, of each older release that has it."""


def diagnose_ledger(request: Request, loaded: LoadedLayers) -> list[Finding]:
    """Return notes about the ledger's file system and SQLite version.

    The file is not opened.
    """
    url = loaded.settings.get("ledger.url")
    url = url if isinstance(url, str) else f"sqlite:///{request.home / _DEFAULT_FILE}"
    if not url.startswith("sqlite:"):
        return []
    import sqlite3

    from nexus_plugins.ledger.sqlite import parse_path
    from nexus_plugins.ledger.sqlite.database import describe_network_file, find_network_kind

    try:
        path = parse_path(url)
    except LedgerError:  # using the ledger reports it
        return []
    if not os.path.exists(path):  # noqa: PTH110 - Path.exists raises if the path cannot be accessed
        return []
    if kind := find_network_kind(path):
        return [Finding("ledger-on-network", describe_network_file(kind), path, is_note=True)]
    if is_safe_version(sqlite3.sqlite_version_info):
        return []
    return [Finding("old-sqlite", _describe_unsafe_version(sqlite3.sqlite_version), path, is_note=True)]


def is_safe_version(version: tuple[int, int, int]) -> bool:
    """Return True if a version of SQLite is safe for concurrent writers.

    In others, a restart of the write-ahead log can damage the file.
    """
    return version >= _MIN_SAFE_VERSION or version[2] >= _PATCHED_RELEASES.get(version[:2], version[2] + 1)


def _describe_unsafe_version(version: str) -> str:
    return (
        f"SQLite {version} can damage a file that two programs write at the same time (fixed in 3.51.3); programs that"
        " use Nexus take turns, but let no other program write to the ledger, or use a Python with a newer SQLite"
    )
