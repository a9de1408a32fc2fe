"""One writer at a time; the system lets go of a lock when the process that holds it dies."""

from __future__ import annotations

import os
import sys
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from nexus_core.errors import FileError

if sys.platform != "win32":
    import fcntl

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_PATIENCE = 10.0  # seconds; a writer is done in milliseconds
_PAUSE = 0.01


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file `path`, which is made and stays.

    Raises:
        FileError: Somebody else holds it for ten seconds, or it cannot be made.
    """
    if sys.platform == "win32":  # it has no such locks; the last of two writers wins there
        yield
        return
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise _cannot_lock(path, error) from error
    try:
        try:
            _wait(descriptor, path)
        except OSError as error:
            raise _cannot_lock(path, error) from error
        yield
    finally:
        os.close(descriptor)


@contextmanager
def locked_directory(directory: Path) -> Iterator[None]:
    """Hold a directory itself, so that no lock file is left in it.

    Where a file system cannot lock directories, nothing is held: the last of two writers wins there.

    Raises:
        FileError: Somebody else holds it for ten seconds.
    """
    descriptor = None
    try:
        if sys.platform != "win32":
            with suppress(OSError):
                descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                _wait(descriptor, directory)
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _wait(descriptor: int, path: Path) -> None:
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise FileError(
                    "another process holds the lock", where=str(path), hint="wait for it to end, then try again"
                ) from None
            time.sleep(_PAUSE)
        else:
            return


def _cannot_lock(path: Path, error: OSError) -> FileError:
    return FileError(f"cannot lock: {error.strerror}", where=str(path))
