"""What a command is given to read: a file by its name, or `-` for standard input."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from nexus_core.errors import FileError
from nexus_core.files.reading import decode_text, read_bytes
from nexus_core.text.visible import visible_line

if TYPE_CHECKING:
    from nexus_core.cli.shell import CommandShell

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


def read_given_text(directory: Path, name: str) -> tuple[Path, str]:
    """What errors call the file that was named, and its text.

    Raises:
        FileError: As for `read_given`, or it is not UTF-8.
    """
    path = Path("<stdin>") if name == STANDARD_INPUT else directory / name
    return path, decode_text(path, read_given(directory, name))


def decode_with_gaps(shell: CommandShell, name: str, data: bytes, *, fate: str) -> str:
    """The text of a file that somebody may be writing to: its last character may be half there.

    Args:
        shell: Where to warn.
        name: The file.
        data: Its bytes.
        fate: What is done with the text: `shown`, `kept`.
    """
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        shell.console.warning(visible_line(f"{name}:{line}: not UTF-8; {fate} as � where it is not"))
        return data.decode("utf-8", "replace")


def size_of_given(directory: Path, name: str) -> int:
    """How many bytes are to be read, for a bar; 0 where that is not known before."""
    try:
        return os.stat(directory / name).st_size  # noqa: PTH116 - of any path, also one that is none
    except (OSError, ValueError):
        return 0
