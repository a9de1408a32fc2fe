"""Finds the repository that a directory belongs to."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.files.ownership import owners_beside
from nexus_core.files.paths import with_parents

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

NOWHERE = (-1, -1)
"""Instead of the device and inode of what is not there, or cannot be looked at."""


class Level(NamedTuple):
    """A directory: the one that somebody works in, or one above it.

    Attributes:
        path: Its name.
        identity: Its device and inode, `NOWHERE` when it cannot be looked at.
        owner: Who it belongs to.
        is_link: Whether it is a link to a directory.
        is_limit: Whether no repository is looked for here and above: in the user's home directory (a repository there
            holds settings, not the projects below it), and at the root of the file system.
        marker_owner: Who its `.git` belongs to; None when it has none. What is in it is never looked at.
    """

    path: Path
    identity: tuple[int, int] = NOWHERE
    owner: int = -1
    is_link: bool = False
    is_limit: bool = False
    marker_owner: int | None = None


def levels_above(directory: Path) -> list[Level]:
    """The directory itself and all above it, nearest first; each is looked at once."""
    home = _identity(os.path.expanduser("~"))  # noqa: PTH111 - Path.home() fails without a home
    *below, root = with_parents(directory)
    return [*(_level(path, str(path), home) for path in below), Level(root, _identity(str(root)), is_limit=True)]


def repository_of(levels: Sequence[Level]) -> Path | None:
    """The nearest of some levels, each right above the one before, that is a repository; None when there is none.

    The search ends where another file system begins. A repository of a stranger does not count.
    """
    first = levels[0]
    for level in levels:
        if level.is_limit or level.identity[0] != first.identity[0]:
            return None
        if level.marker_owner is not None:
            owners = owners_beside(first.owner)
            if level.marker_owner in owners or not owners:
                return level.path
    return None


def repository_root(directory: Path) -> Path | None:
    """The nearest directory at or above `directory` that is a repository; None when there is none."""
    return repository_of(levels_above(directory))


def _identity(place: str) -> tuple[int, int]:
    try:
        facts = os.stat(place)  # noqa: PTH116 - faster
    except (OSError, ValueError):
        return NOWHERE
    return facts.st_dev, facts.st_ino


def _level(path: Path, name: str, home: tuple[int, int]) -> Level:
    try:
        facts = os.lstat(name)
        is_link = stat.S_ISLNK(facts.st_mode)
        if is_link:
            facts = os.stat(name)  # noqa: PTH116 - faster
    except (OSError, ValueError):
        return Level(path)
    place = facts.st_dev, facts.st_ino
    is_limit = place == home
    marker = f"{name}/.git"
    has_marker = not is_limit and os.path.exists(marker)  # noqa: PTH110 - never fails
    # A link that leads nowhere marks nothing; of one that leads somewhere, its own owner counts.
    return Level(path, place, facts.st_uid, is_link, is_limit, os.lstat(marker).st_uid if has_marker else None)
