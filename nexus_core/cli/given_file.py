"""What a command is given to read: a file by its name, or `-` for standard input."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from nexus_core.errors import FileError
from nexus_core.files.reading import read_bytes

if TYPE_CHECKING:
    from pathlib import Path

MAX_BYTES = 256 * 1024 * 1024
STANDARD_INPUT = "-"


def read_given(directory: Path, name: str, *, instead: str = "name a file in it") -> bytes:
    """The content of what was named.

    Args:
        directory: Where names begin.
        name: A file, or `-`.
        instead: What to do about the name of a directory.

    Raises:
        FileError: There is no such file, it is a directory, or too large.
    """
    if name == STANDARD_INPUT:
        data: bytes | None = sys.stdin.buffer.read(MAX_BYTES + 1) if sys.stdin else b""
    elif os.path.isdir(directory / name):  # noqa: PTH112 - Path.is_dir raises where a directory cannot be reached
        raise FileError("is a directory", where=name, hint=instead)
    else:
        data = read_bytes(directory / name, max_bytes=MAX_BYTES)
    if data is None:
        raise FileError("no such file", where=name)
    if len(data) > MAX_BYTES:
        raise FileError(f"larger than {MAX_BYTES} bytes", where=name, hint="give it in parts")
    return data
