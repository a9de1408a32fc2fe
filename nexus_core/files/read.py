"""Reading of regular files, and of project files without following links.

`read_text` and `read_bytes` read any regular file within a size limit. `LayerReader` reads for a layer: nothing outside
its project, and nothing that an untrusted user could have written. A file that another user puts into a directory above
yours could otherwise give instructions to your agent, and a link in a project could expose any file of yours. The
opened file is checked, not its name: between a check of a path and its use, a directory on the way may have become a
link. A descriptor keeps its meaning, so files are opened one name after the other, from the descriptor of the root.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from nexus_core.errors import FileError
from nexus_core.files.places import (
    are_trusted_owners,
    find_repository_root,
    has_untrusted_owner,
    supports_ownership,
    trusted_directory_owners,
)
from nexus_core.types.layers import SkippedFile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexus_core.types.layers import Layer

MAX_FILE_BYTES = 1024 * 1024
"""Largest file that is read; real instruction files stay below 60 kB."""

READ_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
"""Flags for opening files: a FIFO under a well-known name must not block before it is checked."""


def read_text(path: Path, *, max_bytes: int = MAX_FILE_BYTES) -> str | None:
    """Return the content of a UTF-8 file without its byte order mark, or None if there is no such file.

    Raises:
        FileError: It is not a regular file, larger than `max_bytes`, not UTF-8, or cannot be read.
    """
    data = read_bytes(path, max_bytes=max_bytes)
    return None if data is None else decode_text(path, data)


def read_bytes(path: Path, *, max_bytes: int = MAX_FILE_BYTES) -> bytes | None:
    """Return the bytes of a regular file, or None if there is no such file. Raises FileError otherwise."""
    try:
        descriptor = os.open(path, READ_FLAGS)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise file_open_error(path, error) from error
    try:
        return read_descriptor(path, descriptor, os.fstat(descriptor), max_bytes=max_bytes)
    finally:
        os.close(descriptor)


def read_descriptor(path: Path, descriptor: int, status: os.stat_result, *, max_bytes: int = MAX_FILE_BYTES) -> bytes:
    """Return the bytes of an open file, given its `os.fstat` result, or raise FileError as `read_bytes` does."""
    if not stat.S_ISREG(status.st_mode) or status.st_dev in _kernel_devices():
        raise FileError("not a regular file", where=str(path), hint="remove it or put a file in its place")
    try:
        # One byte more than its size, so that one call is enough for a file that is not being written.
        data = os.read(descriptor, min(status.st_size, max_bytes) + 1)
        while len(data) <= max_bytes and len(data) != status.st_size:
            more = os.read(descriptor, max_bytes + 1 - len(data))
            if not more:
                break
            data += more
    except OSError as error:
        raise FileError(f"cannot read: {error.strerror}", where=str(path)) from error
    if len(data) > max_bytes:
        limit = "1 MiB" if max_bytes == MAX_FILE_BYTES else f"{max_bytes} bytes"
        raise FileError(f"larger than {limit}", where=str(path), hint="shorten the file")
    return data


def decode_text(path: Path, data: bytes) -> str:
    """Decode the UTF-8 text of a file, without its byte order mark and with newlines as line ends.

    Raises:
        FileError: It is not UTF-8; names the offset.
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


def file_open_error(path: Path, error: OSError | ValueError) -> FileError:
    """Build the error for a file that cannot be opened."""
    if isinstance(error, OSError):
        return FileError(f"cannot read: {error.strerror}", where=str(path))
    return FileError("no file can have this name", where=repr(str(path)))  # a NUL or a lone surrogate in it


@cache
def _kernel_devices() -> frozenset[int]:
    """Return the devices of generated files: `/proc/self/environ` claims to be regular and holds every secret."""
    devices = set()
    for root in ("/proc", "/sys"):
        with suppress(OSError):
            devices.add(os.stat(root).st_dev)  # noqa: PTH116 - consistent with `os.open` above
    with suppress(OSError):
        devices.discard(os.stat("/").st_dev)  # noqa: PTH116 - a system without them has plain directories there
    return frozenset(devices)


HAS_DIRECTORY_DESCRIPTORS = os.open in os.supports_dir_fd
"""Without them, as on Windows, a path can only be opened as a whole, and must be resolved right before."""

_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
# On Linux a directory can be traversed without being readable.
_DIRECTORY_FLAGS = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | _NO_FOLLOW


def open_beneath(root: str, names: Sequence[str]) -> tuple[int, int | None]:
    """Open the file that `names` lead to from `root`, none of them a link.

    Returns:
        Its descriptor, to be closed by the caller; and the owner of its directory, None if that was not checked.

    Raises:
        OSError: ELOOP or ENOTDIR if one of them is a link; any other error of opening a file.
    """
    if not HAS_DIRECTORY_DESCRIPTORS:
        return os.open(os.path.join(root, *names), READ_FLAGS), None  # noqa: PTH118 - names, not paths
    place = os.open(root, _DIRECTORY_FLAGS)
    try:
        for name in names[:-1]:
            inner = os.open(name, _DIRECTORY_FLAGS, dir_fd=place)
            os.close(place)
            place = inner
        return os.open(names[-1], READ_FLAGS | _NO_FOLLOW, dir_fd=place), os.fstat(place).st_uid
    finally:
        os.close(place)


def parts_beneath(root: str, path: str) -> list[str] | None:
    """Return the names that lead from a directory to a path inside it, or None if it may lie elsewhere."""
    start = root if root.endswith(os.sep) else root + os.sep
    if not path.startswith(start):
        return None
    names = path[len(start) :].split(os.sep)  # noqa: PTH206 - `..` must stay visible
    return None if ".." in names or "" in names else names


REASON_MISSING = "not there"
REASON_WORLD_WRITABLE = "every user may write to it"
REASON_UNTRUSTED_OWNER = "belongs to another user"
REASON_PRIVATE = "may hold your secrets"

_EXAMPLE_SUFFIXES = (".example", ".sample", ".template")

# Errors of different systems for a link that must not be one.
_LINK_ERRNOS = {errno.ELOOP, errno.ENOTDIR, errno.EMLINK}


class LayerReader:
    """Reads the files of one layer, if they may be read.

    Args:
        layer: Layers of the user's own may link to anywhere; those of a project stay inside it.

    Attributes:
        repository: The repository that the layer lies in, or None.
        root: The limit for the files of a project: its repository, or else its directory.
    """

    def __init__(self, layer: Layer) -> None:
        self._is_own = layer.is_own
        self._project = layer.project
        self.repository: Path | None = None
        self.root = layer.boundary or layer.project
        if layer.in_repository:
            self.repository = layer.boundary
        elif layer.boundary is None and not layer.is_own:
            project = real_path(layer.project)
            self.repository = find_repository_root(project)
            self.root = self.repository or project

    def read_text(self, path: Path, *, max_bytes: int = MAX_FILE_BYTES) -> str | SkippedFile:
        """Return the content of a UTF-8 file without its byte order mark, or why it is not read.

        Raises:
            FileError: It is not a regular file, larger than `max_bytes` (1 MiB), not UTF-8, or cannot be read.
        """
        data = self.read_bytes(path, max_bytes=max_bytes)
        return data if isinstance(data, SkippedFile) else decode_text(path, data)

    def read_bytes(
        self, path: Path, *, root: Path | None = None, max_bytes: int = MAX_FILE_BYTES
    ) -> bytes | SkippedFile:
        """Return the bytes of a regular file, or why it is not read: missing, outside, or untrusted owner.

        Args:
            path: The file; links on the way are followed if they stay inside.
            root: A limit without links that replaces `self.root`; None for the default.
            max_bytes: The largest size.

        Raises:
            FileError: It is not a regular file, larger than `max_bytes`, or cannot be read.
        """
        try:
            opened = self._open(str(path), root)
        except (FileNotFoundError, NotADirectoryError):
            return SkippedFile(path, REASON_MISSING)
        except (OSError, ValueError) as error:
            # Otherwise another user could stop your work with a file that you cannot open.
            if not self._is_own and has_untrusted_owner(trusted_directory_owners(self._project), path.parent, path):
                return SkippedFile(path, REASON_UNTRUSTED_OWNER)
            raise file_open_error(path, error) from error
        if isinstance(opened, str):
            return SkippedFile(path, opened)
        descriptor, owner = opened
        try:
            status = os.fstat(descriptor)
            reason = self._distrust(status, owner)
            return (
                SkippedFile(path, reason) if reason else read_descriptor(path, descriptor, status, max_bytes=max_bytes)
            )
        finally:
            os.close(descriptor)

    def _open(self, path: str, root: Path | None) -> tuple[int, int | None] | str:
        """Return the descriptor and the owner of its directory, or in a few words why it must not be read."""
        if root is None and self._is_own:
            return os.open(path, READ_FLAGS), None
        if not os.path.lexists(path):  # true of most files that are searched
            return REASON_MISSING
        limit = str(root or self.root)
        names = parts_beneath(limit, path)
        if names and HAS_DIRECTORY_DESCRIPTORS and not _is_private_file(names):
            try:
                return open_beneath(limit, names)
            except OSError as error:
                if error.errno not in _LINK_ERRNOS:
                    raise
        # Otherwise there is a link on the way. It is resolved here, once: one that appears afterwards is not followed.
        names = parts_beneath(limit, os.path.realpath(path))
        if not names or _is_private_file(names):
            return REASON_PRIVATE if names else f"leads outside {limit}"
        # The owner of a link decides where it leads.
        owners = trusted_directory_owners(self._project)
        if not self._is_own and has_untrusted_owner(owners, os.path.dirname(path), path):  # noqa: PTH120 - a name
            return REASON_UNTRUSTED_OWNER
        return open_beneath(limit, names)

    def _distrust(self, status: os.stat_result, owner: int | None) -> str:
        """Return why a file is not trusted, in a few words, or "" if no other user could have written it."""
        # The owner of the directory can replace what lies in it.
        owners = {status.st_uid} if owner is None else {status.st_uid, owner}
        if not self._is_own and not are_trusted_owners(owners, self._project):
            return REASON_UNTRUSTED_OWNER
        return REASON_WORLD_WRITABLE if status.st_mode & stat.S_IWOTH and supports_ownership() else ""


def _is_private_file(names: Sequence[str]) -> bool:
    """Return True if a file in a project is private to the user: git's, or one with environment variables."""
    # Some file systems ignore letter case.
    small = [name.lower() for name in names]
    if ".git" in small:
        return True
    file = small[-1]
    return file in {".env", ".envrc"} or (file.startswith(".env.") and not file.endswith(_EXAMPLE_SUFFIXES))


def real_path(path: Path) -> Path:
    """Return the path without links. A broken or circular link is followed as far as possible."""
    return Path(os.path.realpath(path))  # Path.resolve() fails on circles before Python 3.13
