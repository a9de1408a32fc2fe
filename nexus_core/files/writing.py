"""Writes whole files and whole trees, or nothing at all."""

from __future__ import annotations

import os
import stat
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
    ensure_new(root)
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


def ensure_new(root: Path) -> None:
    """Nothing is at `root`, and the directory for it is there.

    Raises:
        FileError: It is not so.
    """
    parent = str(root.parent)
    if os.path.lexists(root):
        raise FileError("already exists", where=str(root), hint="choose another name or remove it first")
    if not os.path.lexists(parent):
        raise FileError("no such directory", where=parent, hint="make it first")
    if not os.path.isdir(parent):  # noqa: PTH112 - Path.is_dir raises where a directory cannot be reached
        raise FileError("not a directory", where=parent, hint="name a directory")


def make_directories(directory: Path, *, mode: int) -> None:
    """Make a directory and those above it that are missing; each gets `mode`, and no more than the umask lets it.

    Raises:
        FileError: One of them cannot be made, or something else is in its place.
    """
    missing = [each for each in (directory, *directory.parents) if not each.exists()]
    try:
        for each in reversed(missing):
            each.mkdir(mode=mode, exist_ok=True)
    except OSError as error:
        raise FileError(f"cannot make the directory: {error.strerror}", where=str(directory)) from error
    if not os.path.isdir(directory):  # noqa: PTH112 - never fails
        raise FileError("not a directory", where=str(directory), hint="remove it or give it another name")


def current_umask() -> int:
    """Which permissions a new file does not get."""
    # It can only be read by setting it; what another thread makes in between is private rather than open.
    os.umask(umask := os.umask(0o077))
    return umask


def write_text_atomically(path: Path, text: str, *, mode: int = 0o600) -> None:
    """Make `text` the content of a file, as UTF-8: a reader, or a crash at any moment, finds the old file or the new.

    Args:
        path: The file; its directory must exist.
        text: Its new content.
        mode: Its permissions, whatever the umask.

    Raises:
        FileError: It is a link or otherwise no regular file, or it cannot be written.
    """
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise FileError(f"cannot write: {error.reason}", where=str(path)) from error
    write_bytes_atomically(path, data, mode=mode)


def write_bytes_atomically(path: Path, data: bytes, *, mode: int = 0o600) -> None:
    """As `write_text_atomically`, whatever the content."""
    try:
        _require_replaceable(path)
        _replace(path, data, mode)
    except OSError as error:
        raise FileError(f"cannot write: {error.strerror}", where=str(path)) from error


def _require_replaceable(path: Path) -> None:
    """Refuse what a file would take the place of for good: a link, a device, a pipe, a directory."""
    try:
        kind = path.lstat().st_mode
    except FileNotFoundError:
        return
    if stat.S_ISLNK(kind):
        raise FileError("is a link", where=str(path), hint="put the file itself in its place")
    if not stat.S_ISREG(kind):
        raise FileError("is not a regular file", where=str(path), hint="name a file, or one that is not there yet")


def _replace(path: Path, data: bytes, mode: int) -> None:
    # Beside its destination, for the same reason; nobody else can open it until it has its mode.
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.chmod(file.fileno() if os.chmod in os.supports_fd else temporary, mode)  # noqa: PTH101 - by descriptor
            os.fsync(file.fileno())
        os.replace(temporary, path)  # noqa: PTH105 - both are names here
    except BaseException:  # also an interrupt leaves nothing behind
        Path(temporary).unlink(missing_ok=True)
        raise
    _sync_directory(path.parent)


def _sync_directory(directory: Path) -> None:
    if os.name == "nt":  # directories cannot be opened there
        return
    # Without this, a power failure could bring the old file back.
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
