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

READING = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
"""How files are opened: a FIFO placed under a familiar name cannot hang us before we look at it."""


def read_text(path: Path, *, max_bytes: int = MAX_BYTES) -> str | None:
    """The content of a UTF-8 file without its byte order mark, or None when there is no such file.

    Raises:
        FileError: It is not a regular file, larger than `max_bytes`, not UTF-8, or cannot be read.
    """
    data = read_bytes(path, max_bytes=max_bytes)
    return None if data is None else decode_text(path, data)


def read_bytes(path: Path, *, max_bytes: int = MAX_BYTES) -> bytes | None:
    """The bytes of a regular file, or None when there is no such file; raises FileError otherwise."""
    try:
        descriptor = os.open(path, READING)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise cannot_open(path, error) from error
    try:
        return read_opened(path, descriptor, os.fstat(descriptor), max_bytes=max_bytes)
    finally:
        os.close(descriptor)


def read_opened(path: Path, descriptor: int, facts: os.stat_result, *, max_bytes: int = MAX_BYTES) -> bytes:
    """The bytes of an open file, `facts` being what `os.fstat` says about it; raises FileError as `read_bytes` does."""
    if not stat.S_ISREG(facts.st_mode) or facts.st_dev in _kernel_devices():
        raise FileError("not a regular file", where=str(path), hint="remove it or put a file in its place")
    try:
        # One byte more than it has, so that one call is enough for a file that nobody is writing to.
        data = os.read(descriptor, min(facts.st_size, max_bytes) + 1)
        while len(data) <= max_bytes and len(data) != facts.st_size:
            more = os.read(descriptor, max_bytes + 1 - len(data))
            if not more:
                break
            data += more
    except OSError as error:
        raise FileError(f"cannot read: {error.strerror}", where=str(path)) from error
    if len(data) > max_bytes:
        limit = "1 MiB" if max_bytes == MAX_BYTES else f"{max_bytes} bytes"
        raise FileError(f"larger than {limit}", where=str(path), hint="shorten the file")
    return data


def decode_text(path: Path, data: bytes) -> str:
    """The text of a file in UTF-8, without its byte order mark, its lines ending in a newline only.

    Raises:
        FileError: It is not UTF-8; says where.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FileError(
            f"not UTF-8: byte 0x{data[error.start]:02x} at offset {error.start}",
            where=str(path),
            hint="save the file as UTF-8",
        ) from None
    text = text.removeprefix("\ufeff")
    return text.replace("\r\n", "\n") if "\r" in text else text


def cannot_open(path: Path, error: OSError | ValueError) -> FileError:
    """What to say when a file cannot be opened."""
    if isinstance(error, OSError):
        return FileError(f"cannot read: {error.strerror}", where=str(path))
    return FileError("no file can have this name", where=repr(str(path)))  # a NUL, or half a character, in it


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
