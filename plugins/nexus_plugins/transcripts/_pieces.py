"""Pieces of a conversation that its program keeps as JSON objects in files of their own."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from nexus_core import NexusError
from nexus_core.plugin.files import read_bytes
from nexus_core.plugin.transcripts import is_shallow

if TYPE_CHECKING:
    from pathlib import Path

_MAX_PIECES = 100_000
_MAX_PIECE_BYTES = 1 << 26


def list_pieces(folder: Path) -> list[Path]:
    """Return the JSON files of a folder, sorted. Neither the folder nor the files may be links."""
    try:
        if folder.is_symlink():
            return []
        with os.scandir(folder) as entries:
            found = [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
    except OSError:
        return []
    return [folder / name for name in sorted(found) if name.endswith(".json")][:_MAX_PIECES]


def read_piece(path: Path) -> dict[str, Any]:
    """Return the object in a regular file, {} if there is none that can be read."""
    try:
        return parse_piece(read_bytes(path, max_bytes=_MAX_PIECE_BYTES))
    except NexusError:
        return {}


def parse_piece(text: Any) -> dict[str, Any]:  # noqa: ANN401 - of a database
    """Return the object of a JSON text, {} if it is something else or nested too deeply."""
    try:
        value = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return {}
    return value if isinstance(value, dict) and is_shallow(value) else {}
