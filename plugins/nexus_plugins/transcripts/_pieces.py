"""Pieces of a conversation that its program keeps as JSON objects in files of their own."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from nexus_core import NexusError
from nexus_core.plugin.files import read_bytes
from nexus_core.plugin.transcripts import TranscriptError, is_shallow

if TYPE_CHECKING:
    from pathlib import Path

MAX_TREE_FILES = 100_000
"""Files of one conversation: more than a second is needed to look at them."""
MAX_TREE_BYTES = 1 << 28
"""Bytes of all files of one conversation: they become one text, and a transcript may have as many."""


class ConversationTree:
    """A conversation in the files of a directory tree, read within limits."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._files_left = MAX_TREE_FILES
        self._bytes_left = MAX_TREE_BYTES

    def list_files(self, folder: Path) -> list[Path]:
        """Return the JSON files of a folder, sorted. Neither the folder nor the files may be links.

        Raises:
            TranscriptError: The conversation has more files than a tree may have.
        """
        try:
            if folder.is_symlink():
                return []
            with os.scandir(folder) as entries:
                found = [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
        except OSError:
            return []
        names = sorted(name for name in found if name.endswith(".json"))
        self._files_left -= len(names)
        if self._files_left < 0:
            raise self._build_size_error()
        return [folder / name for name in names]

    def read(self, path: Path) -> dict[str, Any]:
        """Return the object in a regular file, {} if there is none that can be read.

        Raises:
            TranscriptError: The files together are larger than a tree may be.
        """
        try:
            if path.lstat().st_size > self._bytes_left:
                raise self._build_size_error()
            data = read_bytes(path, max_bytes=MAX_TREE_BYTES)
        except (NexusError, OSError) as error:
            if isinstance(error, TranscriptError):
                raise
            return {}
        self._bytes_left -= len(data or b"")
        return parse_piece(data)

    def _build_size_error(self) -> TranscriptError:
        return TranscriptError(
            f"more than {MAX_TREE_BYTES >> 20} MiB or {MAX_TREE_FILES:,} files belong to the conversation",
            code="too-large",
            path=str(self._path),
            hint="export it with its program if that is smaller, and name the export",
        )


def parse_piece(text: Any) -> dict[str, Any]:  # noqa: ANN401 - of a database
    """Return the object of a JSON text, {} if it is something else or nested too deeply."""
    try:
        value = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return {}
    return value if isinstance(value, dict) and is_shallow(value) else {}
