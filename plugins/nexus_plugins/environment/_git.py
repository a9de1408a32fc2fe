"""The checked-out branch, read from git's files without running git."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from nexus_core import NexusError
from nexus_core.plugin import read_text
from nexus_core.plugin.files import find_repository_root, real_path
from nexus_core.plugin.text import strip_hidden, visible_line

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAX_FILE_BYTES = 4096  # HEAD, gitdir and .git files hold one path or name
# The characters that git allows in the name of a branch.
_BRANCH = re.compile(r"ref: refs/heads/([^\x00-\x20\x7f~^:?*\[\\]{1,250})")
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_COMMIT_CHARACTERS = 12


def describe_checkout(directory: Path) -> str:
    """Return `Branch: main`, or the commit without a branch, or "" outside of a repository or if it is unknown."""
    root = find_repository_root(directory)
    git_directory = None if root is None else _find_git_directory(root)
    head = _read_first_line(git_directory / "HEAD") if git_directory is not None else ""
    if found := _BRANCH.fullmatch(head):
        name = visible_line(strip_hidden(found[1]))
        return f"Branch: {name}" if name != ".invalid" else ""  # git's placeholder with the reftable format
    return f"Commit: {head[:_COMMIT_CHARACTERS]} (no branch)" if _COMMIT.fullmatch(head) else ""


def _find_git_directory(root: Path) -> Path | None:
    """Return git's directory of a work tree: `.git`, or the directory that the file `.git` names."""
    marker = root / ".git"
    if marker.is_symlink():  # its target may be any directory
        return None
    if marker.is_dir():
        return marker
    line = _read_first_line(marker)
    if not line.startswith("gitdir: "):
        return None
    directory = real_path(root / line.removeprefix("gitdir: "))
    return directory if _belongs_to_tree(directory, root) else None


def _belongs_to_tree(directory: Path, root: Path) -> bool:
    """Return True if a directory is really git's for a work tree, and not only named by a planted file."""
    # The directory of a linked work tree names it in turn; that of a submodule is in the repository around it.
    linked = _read_first_line(directory / "gitdir")
    if linked and real_path(directory / linked) == real_path(root / ".git"):
        return True
    return any(directory.is_relative_to(above) for above in _list_parent_git_directories(root))


def _list_parent_git_directories(root: Path) -> Iterator[Path]:
    above = find_repository_root(root.parent)
    while above is not None:
        if os.path.isdir(above / ".git"):  # noqa: PTH112 - never fails
            yield above / ".git" / "modules"
        above = find_repository_root(above.parent)


def _read_first_line(path: Path) -> str:
    """Return the first line of a small file, or "" if it is missing or not text."""
    try:
        line = (read_text(path, max_bytes=MAX_FILE_BYTES) or "").partition("\n")[0].strip()
    except NexusError:  # an unreadable file must not break the prompt
        return ""
    return line if "\0" not in line else ""
