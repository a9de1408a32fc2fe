"""Listing of the files below a directory, bounded and without following links.

Nothing is opened. Directories with generated or downloaded files are skipped: version control, `node_modules`, virtual
environments (`pyvenv.cfg`) and caches (`CACHEDIR.TAG`).
"""

from __future__ import annotations

import os
from collections import deque
from typing import TYPE_CHECKING

from nexus_core.types.base import dataclass

if TYPE_CHECKING:
    from pathlib import Path

MAX_FILES = 20_000
"""Listing this many takes about a tenth of a second; repositories of one project are smaller."""
MAX_DIRECTORIES = 10_000

_SKIPPED_DIRECTORIES = frozenset(
    {".git", ".hg", ".svn", ".jj", "node_modules", "bower_components", "__pycache__", ".venv", "venv", ".tox", ".nox"}
)
# Each of these holds complete copies of the repository.
_WORKTREE_DIRECTORIES = ((".claude", "worktrees"), (".git", "worktrees"))
_SKIP_MARKERS = frozenset({"pyvenv.cfg", "CACHEDIR.TAG"})


@dataclass(frozen=True, slots=True)
class FileListing:
    """The regular files below a directory.

    Attributes:
        root: The directory, without links.
        files: The files, those of a directory before those below it, sorted by name.
        links: The links, whatever they lead to; none is followed.
        is_complete: False if a limit ended the search.
    """

    root: Path
    files: tuple[Path, ...]
    links: tuple[Path, ...]
    is_complete: bool


def list_files(root: Path, *, max_files: int = MAX_FILES, max_directories: int = MAX_DIRECTORIES) -> FileListing:
    """Return the regular files below a directory, the nearest first, without following links or leaving the device.

    Args:
        root: The directory, without links.
        max_files: Number of files after which the search ends.
        max_directories: Number of directories after which the search ends.
    """
    files: list[Path] = []
    links: list[Path] = []
    pending = deque([root])
    device = _lstat_device(root)
    seen = 0
    while pending:
        directory = pending.popleft()
        seen += 1
        if seen > max_directories or len(files) > max_files:
            return FileListing(root, tuple(files[:max_files]), tuple(links), is_complete=False)
        inner, found, linked = _scan_directory(directory)
        if directory != root and _SKIP_MARKERS.intersection(found):
            continue
        files += [directory / name for name in found]
        links += [directory / name for name in linked[:max_files]]
        pending += [directory / name for name in inner if _lstat_device(directory / name) == device]
    return FileListing(root, tuple(files[:max_files]), tuple(links), is_complete=len(files) <= max_files)


def _scan_directory(directory: Path) -> tuple[list[str], list[str], list[str]]:
    """Return the names of directories, regular files and links in a directory, sorted. Empty if it cannot be listed."""
    inner: list[str] = []
    files: list[str] = []
    links: list[str] = []
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if (
                        entry.name not in _SKIPPED_DIRECTORIES
                        and (directory.name, entry.name) not in _WORKTREE_DIRECTORIES
                    ):
                        inner.append(entry.name)
                elif entry.is_file(follow_symlinks=False):
                    files.append(entry.name)
                elif entry.is_symlink():
                    links.append(entry.name)
    except OSError:
        return [], [], []
    return sorted(inner), sorted(files), sorted(links)


def _lstat_device(directory: Path) -> int:
    try:
        return os.lstat(directory).st_dev
    except OSError:
        return -1
