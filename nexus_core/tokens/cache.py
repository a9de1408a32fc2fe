"""Counts that were made before, by this process or another.

One file in the user's cache directory holds fixed records in buckets: the digest of counter and text, the count, a
checksum. A text's digest says its bucket, so finding it is one read, nothing is loaded at the start, and the file
cannot grow beyond its size; in a full bucket a record gives way. Writers need no lock: a record is written at once, and
one that is damaged, lost or half another's fails its checksum or is not found; then the text is counted again.

A database would do the same with a slower start; an append-only file would have to be loaded whole, and be kept short.
"""

from __future__ import annotations

import os
import stat
from binascii import crc32
from functools import cache
from typing import TYPE_CHECKING

from nexus_core.files.places import cache_directory
from nexus_core.values.hashing import blake2b

if TYPE_CHECKING:
    from pathlib import Path

_DIGEST, _COUNT, _CHECK = 16, 4, 4
_RECORD = _DIGEST + _COUNT + _CHECK
_BUCKET = 8 * _RECORD
_BUCKETS = 1 << 14
MAX_BYTES = _BUCKETS * _BUCKET
"""How large the file can become: 3 MB, for 131,072 counts."""
_NOTHING = bytes(_DIGEST)
MAX_COUNT = (1 << 8 * _COUNT) - 1


class CountCache:
    """A file of counts. It never fails: without a usable file nothing is found and nothing kept.

    Args:
        path: The file; it and its directory are made when there is something to keep.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: _RandomFile | None = None
        self._tried = False

    @staticmethod
    def key(counter: str, text: str) -> bytes:
        """The key of a text for a counter of that name."""
        digest = _begun(counter).copy()
        digest.update(text.encode("utf-8", "surrogatepass"))
        return digest.digest()

    def find(self, key: bytes) -> int | None:
        """The count that was kept under a key."""
        file = self._opened()
        bucket = file.read(_BUCKET, _offset(key)) if file else b""
        at = bucket.find(key)
        if at < 0:
            return None
        record = bucket[at : at + _RECORD]
        count = int.from_bytes(record[_DIGEST : _DIGEST + _COUNT], "big")
        return count if at % _RECORD == 0 and record == _record(key, count) else None

    def keep(self, key: bytes, count: int) -> None:
        """Keep a count under a key."""
        file = self._opened()
        if file and 0 <= count <= MAX_COUNT:
            offset = _offset(key)
            file.write(_record(key, count), offset + _place(file.read(_BUCKET, offset), key))

    def _opened(self) -> _RandomFile | None:
        if not self._tried:
            self._tried = True
            self._file = _open(self._path)
        return self._file


def shared_cache() -> CountCache:
    """The user's own cache, one for the process."""
    return _cache_in(cache_directory())


@cache
def _cache_in(directory: Path) -> CountCache:
    return CountCache(directory / "token-counts-1")


@cache
def _begun(counter: str) -> blake2b:
    return blake2b(counter.encode() + b"\0", digest_size=_DIGEST)


def _offset(key: bytes) -> int:
    return int.from_bytes(key[:4], "big") % _BUCKETS * _BUCKET


def _record(key: bytes, count: int) -> bytes:
    content = key + count.to_bytes(_COUNT, "big")
    return content + crc32(content).to_bytes(_CHECK, "big")


def _place(bucket: bytes, key: bytes) -> int:
    """Where in a bucket a record goes: over its own former one, to an empty place, or over another's."""
    for at in range(0, _BUCKET, _RECORD):
        if bucket[at : at + _DIGEST] in (key, _NOTHING, b""):  # beyond its end a file is empty
            return at
    return key[-1] * _RECORD % _BUCKET


class _RandomFile:
    """A file that is read and written at places; after the first failure it is left alone."""

    def __init__(self, descriptor: int, *, writable: bool) -> None:
        self._descriptor = descriptor
        self._readable, self._writable = True, writable

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
        except OSError:  # a full disk; what is there can still be read
            self._writable = False


def _is_own_file(facts: os.stat_result) -> bool:
    """Whether it is a file, under no other name, and the user's: whoever owns it says what was counted."""
    is_users = not hasattr(os, "geteuid") or facts.st_uid == os.geteuid()
    return stat.S_ISREG(facts.st_mode) and facts.st_nlink <= 1 and is_users


def _open(path: Path) -> _RandomFile | None:
    # Non-blocking, and not through a link: whatever lies there must be a file of the user's own.
    flags = getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
    for mode, writable in ((os.O_RDWR | os.O_CREAT, True), (os.O_RDONLY, False)):
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(path, flags | mode, 0o600)
        except OSError:  # a read-only disk, or no place at all
            continue
        if _is_own_file(os.fstat(descriptor)):
            return _RandomFile(descriptor, writable=writable)
        os.close(descriptor)
    return None
