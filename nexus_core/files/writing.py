"""Writes whole trees of files or nothing at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from nexus_core.errors import FileError

if TYPE_CHECKING:
    from collections.abc import Mapping


def write_tree(root: Path, files: Mapping[str, str]) -> None:
    """Make the new directory `root` holding `files` (relative path to content): all of it, or none of it.

    Raises:
        FileError: `root` exists already, or its parent cannot be written.
    """
    if os.path.lexists(root):
        raise FileError("exists already", where=str(root), hint="choose another name or remove it first")
    if not root.parent.is_dir():
        raise FileError("no such directory", where=str(root.parent), hint="make it first")
    try:
        # Beside its destination, because only a rename within one file system is atomic.
        with tempfile.TemporaryDirectory(prefix=f".{root.name}-", dir=root.parent) as scratch:
            staged = Path(scratch) / root.name
            for name, content in files.items():
                path = staged / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(content, encoding="utf-8", newline="\n")
            staged.rename(root)
    except OSError as error:
        raise FileError(f"cannot write: {error.strerror}", where=str(root)) from error
