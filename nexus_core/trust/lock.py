"""One writer at a time."""

from __future__ import annotations

import os
import sys
import time
from contextlib import contextmanager
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
    """Hold the lock file `path`, which is made and stays; the system lets go of it when the process dies.

    Raises:
        FileError: Somebody else holds it for ten seconds, or it cannot be made.
    """
    if sys.platform == "win32":  # it has no such locks; the last of two writers wins there
        yield
        return
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise FileError(f"cannot lock: {error.strerror}", where=str(path)) from error
    try:
        _wait(descriptor, path)
        yield
    finally:
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
        except OSError as error:
            raise FileError(f"cannot lock: {error.strerror}", where=str(path)) from error
        else:
            return
