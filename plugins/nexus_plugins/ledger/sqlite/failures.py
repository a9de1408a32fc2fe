"""What SQLite says went wrong, in words that help."""

from __future__ import annotations

import os
import shutil
import sqlite3
from typing import TYPE_CHECKING

from nexus_core.plugin import LedgerError, UnreachableError

if TYPE_CHECKING:
    from pathlib import Path

TROUBLE = (sqlite3.Error, UnicodeDecodeError)
"""What SQLite raises; the second, when its own message quotes a damaged file."""

_SOUND = "what was recorded before is intact"
_KNOWN = {
    "SQLITE_FULL": ("the disk is full", f"free some space and try again; {_SOUND}"),
    "SQLITE_IOERR": (
        "the disk refuses to read or write",
        f"free some space or check the disk, and try again; {_SOUND}",
    ),
    "SQLITE_READONLY": ("it cannot be written", "make the file and its directory writable"),
    "SQLITE_CANTOPEN": ("it cannot be opened", "create its directory, and make it readable and writable"),
    "SQLITE_PERM": ("it may not be opened", "make the file and its directory readable and writable"),
    "SQLITE_BUSY": ("another program keeps it locked", "try again; `fuser` says who has it open"),
    "SQLITE_CORRUPT": (
        "it is damaged",
        "`nexus session verify` says where, `nexus session repair` saves what is whole into a new file",
    ),
    "SQLITE_NOTADB": ("it is not a ledger", "name another file; this one is left as it is"),
}

_CLOSED = ("SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_BUSY")
"""What says nothing about the file's content."""


def failure(error: sqlite3.Error | UnicodeDecodeError, path: Path) -> LedgerError:
    """The error to raise for what SQLite said about a file."""
    name = getattr(error, "sqlite_errorname", "") or "SQLITE_CORRUPT" * isinstance(error, UnicodeDecodeError)
    for known, (what, hint) in _KNOWN.items():
        if name.startswith(known):
            why = _room(path) if known in ("SQLITE_FULL", "SQLITE_IOERR") else _barrier(path)
            kind = UnreachableError if known in _CLOSED else LedgerError
            return kind(f"the ledger cannot be used: {what}{why} ({error})", where=str(path), hint=hint)
    return LedgerError(f"the ledger cannot be used: {error}", where=str(path))


def refused(error: OSError, path: Path) -> UnreachableError:
    """The error to raise for what the system said about a file."""
    hint = "check that the directory exists, and can be read and written"
    return UnreachableError(f"the ledger cannot be used: {error.strerror}", where=str(path), hint=hint)


def _room(path: Path) -> str:
    try:
        return f", {shutil.disk_usage(path.parent).free:,} bytes are free"
    except OSError:
        return ""


def _barrier(path: Path) -> str:
    """What keeps a file from being written, as far as the system tells."""
    try:
        if os.statvfs(path.parent).f_flag & os.ST_RDONLY:
            return ", its file system is read only"
    except (OSError, AttributeError):  # not there, or not known here
        return ""
    return "" if os.access(path.parent, os.W_OK) else ", its directory may not be written"
