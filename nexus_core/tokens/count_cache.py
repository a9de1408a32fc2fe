"""Token counts on disk, shared by all processes of a user.

One file in the user's cache directory holds fixed records in buckets: the digest of counter and text, the count, a
checksum. A text's digest determines its bucket, so finding it is one read, nothing is loaded at the start, and the file
cannot grow beyond its size; in a full bucket a record is overwritten. Writers need no lock: a record is one write, and
one that is damaged, lost or mixed with another fails its checksum or is not found; then the text is counted again.

A database would do the same with a slower start; an append-only file would have to be loaded and kept short.
"""

from __future__ import annotations

import os
import stat
from binascii import crc32
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from nexus_core.files.places import cache_directory
from nexus_core.types.base import blake2b

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_DIGEST_BYTES, _COUNT_BYTES, _CHECKSUM_BYTES = 16, 4, 4
_RECORD_BYTES = _DIGEST_BYTES + _COUNT_BYTES + _CHECKSUM_BYTES
_BUCKET_BYTES = 8 * _RECORD_BYTES
_BUCKET_COUNT = 1 << 14
MAX_CACHE_BYTES = _BUCKET_COUNT * _BUCKET_BYTES
"""Largest size of the file: 3 MB, for 131,072 counts."""
_EMPTY_DIGEST = bytes(_DIGEST_BYTES)
MAX_COUNT = (1 << 8 * _COUNT_BYTES) - 1
_IS_STORED: ContextVar[bool] = ContextVar("counts_are_stored", default=True)


class CountCache:
    """A file of counts. It never raises: without a usable file nothing is found and nothing stored.

    Args:
        path: The file; it and its directory are created with the first use. None for a cache without a file, which
            stores nothing.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._file: _RandomAccessFile | None = None
        self._tried = False

    @staticmethod
    def key(counter: str, text: str) -> bytes:
        """Return the key of a text for a counter of that name."""
        digest = _start_digest(counter).copy()
        digest.update(text.encode("utf-8", "surrogatepass"))
        return digest.digest()

    def find(self, key: bytes) -> int | None:
        """Return the count stored under a key, or None."""
        file = self._opened()
        bucket = file.read(_BUCKET_BYTES, _get_bucket_offset(key)) if file else b""
        at = bucket.find(key)
        if at < 0:
            return None
        record = bucket[at : at + _RECORD_BYTES]
        count = int.from_bytes(record[_DIGEST_BYTES : _DIGEST_BYTES + _COUNT_BYTES], "big")
        return count if at % _RECORD_BYTES == 0 and record == _encode_record(key, count) else None

    def keep(self, key: bytes, count: int) -> None:
        """Store a count under a key."""
        file = self._opened()
        if file and 0 <= count <= MAX_COUNT:
            offset = _get_bucket_offset(key)
            file.write(_encode_record(key, count), offset + _find_slot(file.read(_BUCKET_BYTES, offset), key))

    def _opened(self) -> _RandomAccessFile | None:
        if not self._tried:
            self._tried = True
            self._file = None if self._path is None else _open_file(self._path)
        return self._file


def get_shared_cache() -> CountCache:
    """Return the user's own cache, one per process; an empty one inside `without_stored_counts`."""
    return _open_cache(cache_directory()) if _IS_STORED.get() else CountCache(None)


@contextmanager
def without_stored_counts() -> Iterator[None]:
    """Open no file of counts in this block, not even in plugins."""
    token = _IS_STORED.set(False)
    try:
        yield
    finally:
        _IS_STORED.reset(token)


@lru_cache(maxsize=4)  # each has a file open; a process whose cache directory changes must not run out of them
def _open_cache(directory: Path) -> CountCache:
    return CountCache(directory / "token-counts-1")


@cache
def _start_digest(counter: str) -> blake2b:
    return blake2b(counter.encode() + b"\0", digest_size=_DIGEST_BYTES)


def _get_bucket_offset(key: bytes) -> int:
    return int.from_bytes(key[:4], "big") % _BUCKET_COUNT * _BUCKET_BYTES


def _encode_record(key: bytes, count: int) -> bytes:
    content = key + count.to_bytes(_COUNT_BYTES, "big")
    return content + crc32(content).to_bytes(_CHECKSUM_BYTES, "big")


def _find_slot(bucket: bytes, key: bytes) -> int:
    """Return the offset of a record in its bucket: its own former one, an empty one, or that of another record."""
    for at in range(0, _BUCKET_BYTES, _RECORD_BYTES):
        if bucket[at : at + _DIGEST_BYTES] in (key, _EMPTY_DIGEST, b""):  # beyond its end a file is empty
            return at
    return key[-1] * _RECORD_BYTES % _BUCKET_BYTES


class _RandomAccessFile:
    """A file that is read and written at offsets. After the first failure it is not used again."""

    def __init__(self, descriptor: int, *, writable: bool) -> None:
        self._descriptor = descriptor
        self._readable, self._writable = True, writable

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        # A default, and no other global name: at the end of the process modules are emptied before their objects.
        try:
            close(self._descriptor)
        except OSError:
            return

    def read(self, length: int, offset: int) -> bytes:
        if not self._readable:
            return b""
        try:
            if hasattr(os, "pread"):
                return os.pread(self._descriptor, length, offset)
            os.lseek(self._descriptor, offset, os.SEEK_SET)
            return os.read(self._descriptor, length)
        except OSError:
            self._readable = self._writable = False
            return b""

    def write(self, data: bytes, offset: int) -> None:
        if not self._writable:
            return
        try:
            if hasattr(os, "pwrite"):
                os.pwrite(self._descriptor, data, offset)
            else:
                os.lseek(self._descriptor, offset, os.SEEK_SET)
                os.write(self._descriptor, data)
        except OSError:  # a full disk; existing records can still be read
            self._writable = False


def _is_own_file(status: os.stat_result) -> bool:
    """Return True for a regular file without other hard links that the user owns: its owner controls the counts."""
    is_users = not hasattr(os, "geteuid") or status.st_uid == os.geteuid()
    return stat.S_ISREG(status.st_mode) and status.st_nlink <= 1 and is_users


def _open_file(path: Path) -> _RandomAccessFile | None:
    # Non-blocking, and not through a link: it must be a regular file of the user.
    flags = getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
    for mode, writable in ((os.O_RDWR | os.O_CREAT, True), (os.O_RDONLY, False)):
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(path, flags | mode, 0o600)
        except OSError:  # a read-only disk, or no directory at all
            continue
        if _is_own_file(os.fstat(descriptor)):
            return _RandomAccessFile(descriptor, writable=writable)
        os.close(descriptor)
    return None
