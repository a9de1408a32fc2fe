"""Which branch is checked out, as git's files have it; no program is started."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from nexus_core import NexusError
from nexus_core.plugin import read_text, real_path, repository_root, strip_hidden, visible_line

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LONGEST = 4096  # bytes of a file of git's that says where something is
# What git allows in the name of a branch, which is less than it allows in that of a file.
_BRANCH = re.compile(r"ref: refs/heads/([^\x00-\x20\x7f~^:?*\[\\]{1,250})")
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_SHORT = 12  # letters of a commit's name


def checked_out(directory: Path) -> str:
    """`Branch: main`, or the commit where no branch is; "" outside of a repository, or where git says nothing."""
    root = repository_root(directory)
    place = None if root is None else _git_directory(root)
    head = _line(place / "HEAD") if place is not None else ""
    if found := _BRANCH.fullmatch(head):
        name = visible_line(strip_hidden(found[1]))
        return f"Branch: {name}" if name != ".invalid" else ""  # what git itself writes where another file knows it
    return f"Commit: {head[:_SHORT]} (no branch)" if _COMMIT.fullmatch(head) else ""


def _git_directory(root: Path) -> Path | None:
    """Where git keeps what it knows of a work tree: in `.git`, or where that file points to."""
    marker = root / ".git"
    if marker.is_symlink():  # it may lead anywhere
        return None
    if marker.is_dir():
        return marker
    line = _line(marker)
    if not line.startswith("gitdir: "):
        return None
    place = real_path(root / line.removeprefix("gitdir: "))
    return place if _belongs(place, root) else None


def _belongs(place: Path, root: Path) -> bool:
    """Whether a directory outside of a work tree is git's for it, and not just named by a file somebody planted."""
    # A linked work tree is named there in turn; a submodule is kept in the repository that it lies in.
    named = _line(place / "gitdir")
    if named and real_path(place / named) == real_path(root / ".git"):
        return True
    return any(place.is_relative_to(above) for above in _git_directories_above(root))


def _git_directories_above(root: Path) -> Iterator[Path]:
    above = repository_root(root.parent)
    while above is not None:
        if os.path.isdir(above / ".git"):  # noqa: PTH112 - never fails
            yield above / ".git" / "modules"
        above = repository_root(above.parent)


def _line(path: Path) -> str:
    """The first line of a small file; "" when there is none, or it is no text."""
    try:
        line = (read_text(path, max_bytes=LONGEST) or "").partition("\n")[0].strip()
    except NexusError:  # a curious file is no reason to have no prompt
        return ""
    return line if "\0" not in line else ""
