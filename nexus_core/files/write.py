"""Atomic writing of files and directories, and locks for a single writer.

The system releases a lock when the process that holds it dies.
"""

from __future__ import annotations

import os
import stat
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from nexus_core.errors import FileError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

if sys.platform != "win32":
    import fcntl

_LOCK_TIMEOUT_SECONDS = 10.0  # seconds; a writer is done in milliseconds
_LOCK_RETRY_SECONDS = 0.01


@contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Hold the lock file `path`, which is created and stays.

    Raises:
        FileError: Another process holds it for ten seconds, or it cannot be created.
    """
    if sys.platform == "win32":  # without such locks, the last of two writers wins
        yield
        return
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise _lock_error(path, error) from error
    try:
        try:
            _acquire_lock(descriptor, path)
        except OSError as error:
            raise _lock_error(path, error) from error
        yield
    finally:
        os.close(descriptor)


@contextmanager
def directory_lock(directory: Path) -> Iterator[None]:
    """Lock a directory itself, so that no lock file is left in it.

    If a file system cannot lock directories, nothing is locked: the last of two writers wins there.

    Raises:
        FileError: Another process holds it for ten seconds.
    """
    descriptor = None
    try:
        if sys.platform != "win32":
            with suppress(OSError):
                descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                _acquire_lock(descriptor, directory)
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _acquire_lock(descriptor: int, path: Path) -> None:
    deadline = time.monotonic() + _LOCK_TIMEOUT_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise FileError(
                    "another process holds the lock", where=str(path), hint="wait for it to end, then try again"
                ) from None
            time.sleep(_LOCK_RETRY_SECONDS)
        else:
            return


def _lock_error(path: Path, error: OSError) -> FileError:
    return FileError(f"cannot lock: {error.strerror}", where=str(path))


def write_tree(root: Path, files: Mapping[str, str]) -> None:
    """Create the new directory `root` with `files` (relative path to content) atomically.

    Raises:
        FileError: `root` exists already, or its parent cannot be written.
    """
    require_new_path(root)
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


def require_new_path(root: Path) -> None:
    """Raise unless nothing exists at `root` and its parent directory does.

    Raises:
        FileError: Something exists at `root`, or its parent directory does not.
    """
    parent = str(root.parent)
    if os.path.lexists(root):
        raise FileError("already exists", where=str(root), hint="choose another name or remove it first")
    if not os.path.lexists(parent):
        raise FileError("no such directory", where=parent, hint="create it first")
    if not os.path.isdir(parent):  # noqa: PTH112 - Path.is_dir raises for an unreachable directory
        raise FileError("not a directory", where=parent, hint="name a directory")


def make_directories(directory: Path, *, mode: int) -> None:
    """Create a directory and its missing parents. Each gets `mode`, restricted by the umask.

    Raises:
        FileError: One of them cannot be created, or something else has its name.
    """
    missing = [each for each in (directory, *directory.parents) if not each.exists()]
    try:
        for each in reversed(missing):
            each.mkdir(mode=mode, exist_ok=True)
    except OSError as error:
        raise FileError(f"cannot create the directory: {error.strerror}", where=str(directory)) from error
    if not os.path.isdir(directory):  # noqa: PTH112 - never fails
        raise FileError("not a directory", where=str(directory), hint="remove it or give it another name")


def current_umask() -> int:
    """Return the permission bits that a new file does not get."""
    # It can only be read by setting it; files that another thread creates meanwhile are private rather than open.
    os.umask(umask := os.umask(0o077))
    return umask


def write_text_atomically(path: Path, text: str, *, mode: int = 0o600) -> None:
    """Replace the content of a file as UTF-8: a reader, or a crash at any moment, sees the old file or the new.

    Args:
        path: The file; its directory must exist.
        text: Its new content.
        mode: Its permissions, whatever the umask.

    Raises:
        FileError: It is a link or not a regular file, or it cannot be written.
    """
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise FileError(f"cannot write: {error.reason}", where=str(path)) from error
    write_bytes_atomically(path, data, mode=mode)


def write_bytes_atomically(path: Path, data: bytes, *, mode: int = 0o600) -> None:
    """Replace the content of a file as `write_text_atomically` does, with bytes."""
    try:
        _require_replaceable(path)
        _replace_file(path, data, mode)
    except OSError as error:
        raise FileError(f"cannot write: {error.strerror}", where=str(path)) from error


def _require_replaceable(path: Path) -> None:
    """Raise for something that a file would destroy by replacing it: a link, a device, a pipe, a directory."""
    try:
        kind = path.lstat().st_mode
    except FileNotFoundError:
        return
    if stat.S_ISLNK(kind):
        raise FileError("is a link", where=str(path), hint="put the file itself in its place")
    if not stat.S_ISREG(kind):
        raise FileError("is not a regular file", where=str(path), hint="name a regular file, or a new one")


def _replace_file(path: Path, data: bytes, mode: int) -> None:
    # Beside its destination, because only a rename within one file system is atomic; mkstemp makes it private.
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.chmod(file.fileno() if os.chmod in os.supports_fd else temporary, mode)  # noqa: PTH101 - by descriptor
            os.fsync(file.fileno())
        os.replace(temporary, path)  # noqa: PTH105 - both are names here
    except BaseException:  # an interrupt must leave nothing behind either
        Path(temporary).unlink(missing_ok=True)
        raise
    _sync_directory(path.parent)


def _sync_directory(directory: Path) -> None:
    if os.name == "nt":  # directories cannot be opened there
        return
    # Without this, a power failure could restore the old file.
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
