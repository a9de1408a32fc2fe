"""Reads text files that somebody else wrote, without being led astray by them."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING

from nexus_core.errors import FileError

if TYPE_CHECKING:
    from pathlib import Path

MAX_BYTES = 1024 * 1024
"""The largest file that is read; real instruction files stay below 60 kB."""


def read_text(path: Path, *, max_bytes: int = MAX_BYTES) -> str | None:
    """The content of a UTF-8 file without its byte order mark, or None when there is no such file.

    Raises:
        FileError: It is not a regular file, larger than `max_bytes`, not UTF-8, or cannot be read.
    """
    data = read_bytes(path, max_bytes=max_bytes)
    if data is None:
        return None
    try:
        return data.decode("utf-8").removeprefix("\ufeff").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise FileError(
            f"not UTF-8: byte 0x{data[error.start]:02x} at offset {error.start}",
            where=str(path),
            hint="save the file as UTF-8",
        ) from None


def read_bytes(path: Path, *, max_bytes: int = MAX_BYTES) -> bytes | None:
    """The bytes of a regular file, or None when there is no such file; raises FileError otherwise."""
    # Non-blocking, so that a FIFO placed under a familiar name cannot hang us before we look at it.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(path, flags)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise FileError(f"cannot read: {error.strerror}", where=str(path)) from error
    except ValueError:  # a NUL, or half a character, in the name
        raise FileError("no file can have this name", where=repr(str(path))) from None
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode) or facts.st_dev in _kernel_devices():
            raise FileError("not a regular file", where=str(path), hint="remove it or put a file in its place")
        with open(descriptor, "rb", closefd=False) as file:
            data = file.read(max_bytes + 1) or b""  # None is nothing yet, from what only looks like a file
    except OSError as error:
        raise FileError(f"cannot read: {error.strerror}", where=str(path)) from error
    finally:
        os.close(descriptor)
    if len(data) > max_bytes:
        limit = "1 MiB" if max_bytes == MAX_BYTES else f"{max_bytes} bytes"
        raise FileError(f"larger than {limit}", where=str(path), hint="shorten the file")
    return data


@cache
def _kernel_devices() -> frozenset[int]:
    """Where files are made up as they are read: `/proc/self/environ` calls itself regular and holds every secret."""
    devices = set()
    for root in ("/proc", "/sys"):
        with suppress(OSError):
            devices.add(os.stat(root).st_dev)  # noqa: PTH116 - as `os.open` above
    with suppress(OSError):
        devices.discard(os.stat("/").st_dev)  # noqa: PTH116 - a system without them has plain directories there
    return frozenset(devices)
