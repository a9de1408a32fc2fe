"""Opens a file below a directory, one name after the other, so that no link is followed on the way.

A path is resolved anew each time it is used: between a look at it and its use, a directory on the way may have become
a link. What a descriptor stands for stays the same.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from nexus_core.files.reading import READING

if TYPE_CHECKING:
    from collections.abc import Sequence

HAS_DIRECTORY_DESCRIPTORS = os.open in os.supports_dir_fd
"""Without them, as on Windows, a path can only be opened as a whole, and should be resolved right before."""

_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
# On Linux a directory may be passed through without being readable.
_DIRECTORY = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | _NO_LINK


def open_beneath(root: str, names: Sequence[str]) -> tuple[int, int | None]:
    """The file that `names` lead to from `root`, none of them a link.

    Returns:
        Its descriptor, to be closed; and whom the directory it lies in belongs to, None when nobody looked.

    Raises:
        OSError: ELOOP or ENOTDIR where one of them is a link; whatever else keeps a file from being opened.
    """
    if not HAS_DIRECTORY_DESCRIPTORS:
        return os.open(os.path.join(root, *names), READING), None  # noqa: PTH118 - names, not paths
    place = os.open(root, _DIRECTORY)
    try:
        for name in names[:-1]:
            inner = os.open(name, _DIRECTORY, dir_fd=place)
            os.close(place)
            place = inner
        return os.open(names[-1], READING | _NO_LINK, dir_fd=place), os.fstat(place).st_uid
    finally:
        os.close(place)


def names_beneath(root: str, path: str) -> list[str] | None:
    """The names that lead from a directory to a path inside it; None when it may lie elsewhere."""
    start = root if root.endswith(os.sep) else root + os.sep
    if not path.startswith(start):
        return None
    names = path[len(start) :].split(os.sep)  # noqa: PTH206 - `..` and all, as it came
    return None if ".." in names or "" in names else names
