"""Opens a file below a directory, one name after the other, so that no link is followed on the way.

A path is resolved anew each time it is used: between a look at it and its use, a directory on the way may have become
a link. What a descriptor stands for stays the same.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.files.reading import READING

if TYPE_CHECKING:
    from collections.abc import Sequence

HAS_DIRECTORY_DESCRIPTORS = os.open in os.supports_dir_fd
"""Without them, as on Windows, a path can only be opened as a whole, and should be resolved right before."""

_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
# On Linux a directory may be passed through without being readable.
_DIRECTORY = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | _NO_LINK


class Opened(NamedTuple):
    """An open file; whoever gets it closes `descriptor`.

    Attributes:
        descriptor: The file.
        facts: What is known about the file.
        owners: Whom it belongs to, and as far as that is known, the directory it lies in: that one, too, decides what
            the file says.
    """

    descriptor: int
    facts: os.stat_result
    owners: tuple[int, ...]


def open_file(path: str) -> Opened:
    """The file at a path, wherever links on the way lead to; raises OSError when it cannot be opened."""
    descriptor = os.open(path, READING)
    facts = os.fstat(descriptor)
    return Opened(descriptor, facts, (facts.st_uid,))


def open_beneath(root: str, names: Sequence[str]) -> Opened:
    """The file that `names` lead to from `root`, none of them a link.

    Raises:
        OSError: ELOOP or ENOTDIR where one of them is a link; whatever else keeps a file from being opened.
    """
    if not HAS_DIRECTORY_DESCRIPTORS:
        return open_file(os.path.join(root, *names))  # noqa: PTH118 - names, not paths
    place = os.open(root, _DIRECTORY)
    try:
        for name in names[:-1]:
            inner = os.open(name, _DIRECTORY, dir_fd=place)
            os.close(place)
            place = inner
        owner = os.fstat(place).st_uid
        descriptor = os.open(names[-1], READING | _NO_LINK, dir_fd=place)
    finally:
        os.close(place)
    facts = os.fstat(descriptor)
    return Opened(descriptor, facts, (facts.st_uid, owner))


def names_beneath(root: str, path: str) -> list[str] | None:
    """The names that lead from a directory to a path inside it; None when it may lie elsewhere."""
    start = root if root.endswith(os.sep) else root + os.sep
    if not path.startswith(start):
        return None
    names = path[len(start) :].split(os.sep)  # noqa: PTH206 - `..` and all, as it came
    return None if ".." in names or "" in names else names
