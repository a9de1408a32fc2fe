"""Which files may be read on behalf of a layer: none outside its project, and none that a stranger could have written.

Whoever can put a file into a directory above yours could otherwise speak to your agent, and whoever can put a link
into a project could have it read any file of yours.
"""

from __future__ import annotations

import os
import stat
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nexus_core.values.layer import Layer

SUPERUSER = 0
HAS_OWNERS = hasattr(os, "geteuid")
WRITABLE = "anybody may write to it"
FOREIGN = "belongs to somebody else"


class Admission:
    """Decides about the files of one layer; what it has to look up, it looks up once.

    Args:
        layer: Layers of the user's own may link to anywhere; those of a project stay inside it.
    """

    def __init__(self, layer: Layer) -> None:
        self._is_own = layer.is_own
        # Whoever knows the boundary has looked at the place already, without links.
        self._project = layer.project if layer.boundary else real_path(layer.project)
        self._boundary = layer.boundary
        self._in_repository = layer.in_repository

    @cached_property
    def repository(self) -> Path | None:
        """The repository that the layer lies in, if any."""
        if self._boundary is not None:
            return self._boundary if self._in_repository else None
        return repository_root(self._project)

    @cached_property
    def root(self) -> Path:
        """What the files of a project must not lie outside of: its repository, else its directory."""
        return self._boundary or self.repository or self._project

    @cached_property
    def _owners(self) -> frozenset[int]:
        return accepted_owners(self._project)

    def objection(self, path: Path) -> str:
        """Why a file must not be read, in a few words; "" when it may, or when it is not there."""
        if not os.path.lexists(path):
            return ""
        if not self._is_own and self._is_linked(path) and not real_path(path).is_relative_to(self.root):
            return f"leads outside {self.root}"
        return self.distrust(path)

    def resolve(self, path: Path) -> Path:
        """The file to read: the path itself, or what it leads to."""
        return real_path(path) if self._is_linked(path) else path

    def distrust(self, path: Path) -> str:
        """Who else could have written a file, in a few words; "" when nobody."""
        if not HAS_OWNERS:
            return ""
        # The directory too: its owner decides what lies in it. And the link too: its owner decides what it means.
        if not self._is_own and is_foreign(self._owners, path.parent, path, self.resolve(path)):
            return FOREIGN
        try:
            return WRITABLE if path.stat().st_mode & stat.S_IWOTH else ""
        except OSError:
            return ""  # whoever reads it will learn why it cannot be read

    def _is_linked(self, path: Path) -> bool:
        """Whether there is a link on the way to a file; outside the project nobody has looked yet."""
        while path != self._project:
            if path == path.parent or os.path.islink(path):  # noqa: PTH114 - never fails
                return True
            path = path.parent
        return False


def repository_root(directory: Path) -> Path | None:
    """The nearest directory at or above `directory` that has a `.git`, or None.

    The search ends at the user's home directory (a repository there holds settings, not the projects below it), at the
    root of the file system, and where another file system begins. What is in `.git` is never looked at, and one that
    belongs to a stranger does not count.
    """
    home = os.path.realpath(os.path.expanduser("~"))  # noqa: PTH111 - Path.home() fails without a home
    place, device, owners = str(directory), _device(directory), None
    while place not in {home, os.path.dirname(place)} and _device(place) == device:  # noqa: PTH120 - many times faster
        marker = os.path.join(place, ".git")  # noqa: PTH118 - as above
        if os.path.exists(marker):  # noqa: PTH110 - never fails
            owners = owners or accepted_owners(directory)
            if not is_foreign(owners, Path(marker)):
                return Path(place)
        place = os.path.dirname(place)  # noqa: PTH120 - as above
    return None


def accepted_owners(directory: Path) -> frozenset[int]:
    """Who may speak in a directory: its owner, you, and the superuser. Empty where files have no owners."""
    if not HAS_OWNERS:
        return frozenset()
    try:
        return frozenset({directory.stat().st_uid, os.geteuid(), SUPERUSER})
    except OSError:
        return frozenset({os.geteuid(), SUPERUSER})


def is_foreign(owners: frozenset[int], *paths: Path) -> bool:
    """Whether one of some files, directories or links belongs to none of `owners`."""
    for path in paths:
        try:
            if owners and path.lstat().st_uid not in owners:
                return True
        except OSError:
            continue  # not there, or not to be seen: then it cannot be read either
    return False


def real_path(path: Path) -> Path:
    """The path without links; of a link that leads nowhere or in a circle, as far as it can be followed."""
    return Path(os.path.realpath(path))  # Path.resolve() fails on circles before Python 3.13


def _device(path: Path | str) -> int:
    try:
        return os.stat(path).st_dev  # noqa: PTH116 - as above
    except OSError:
        return -1
