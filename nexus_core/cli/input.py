"""Input files of commands, or standard input: text, JSON and JSON Lines."""

from __future__ import annotations

import json
import os
import re
import sys
from math import isfinite
from pathlib import Path
from stat import S_ISFIFO, S_ISREG
from typing import TYPE_CHECKING, Any, NoReturn

from nexus_core.config.load import LineIndex, syntax_error
from nexus_core.errors import FileError, UsageError
from nexus_core.files.read import decode_text, read_bytes
from nexus_core.text.safety import visible_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nexus_core.cli.context import CliContext
    from nexus_core.transcripts.base import TranscriptFormat

MAX_INPUT_BYTES = 256 * 1024 * 1024
STANDARD_INPUT = "-"


def read_input_bytes(directory: Path, name: str, *, instead: str = "name a file in it") -> bytes:
    """Return the bytes of a file, or of standard input for `-`.

    Args:
        directory: The directory that `name` is relative to.
        name: A file, or `-`.
        instead: Hint for the name of a directory.

    Raises:
        UsageError: There is no such file.
        FileError: It is a directory, cannot be read, or is too large.
    """
    if name == STANDARD_INPUT:
        data: bytes | None = sys.stdin.buffer.read(MAX_INPUT_BYTES + 1) if sys.stdin else b""
    elif os.path.isdir(directory / name):  # noqa: PTH112 - Path.is_dir raises where a directory cannot be reached
        raise FileError("is a directory", where=name, hint=instead)
    else:
        data = read_bytes(directory / name, max_bytes=MAX_INPUT_BYTES)
    if data is None:
        raise UsageError("no such file", where=name)
    if len(data) > MAX_INPUT_BYTES:
        raise FileError(f"larger than {MAX_INPUT_BYTES} bytes", where=name, hint="give it in parts")
    return data


def read_transcript_bytes(
    directory: Path, name: str, formats: Sequence[TranscriptFormat], *, instead: str = "name a file in it"
) -> bytes:
    """Return the bytes of a transcript, as `read_input_bytes` does.

    Of a conversation in a database or in several files, it returns one JSON text.

    Args:
        directory: The directory that `name` is relative to.
        name: A file, or `-`.
        formats: The formats that a transcript may have.
        instead: Hint for the name of a directory.

    Raises:
        UsageError, FileError: As for `read_input_bytes`.
        TranscriptError: It is a part of such a conversation, and cannot be read.
    """
    from nexus_core.transcripts.read import gather_transcript

    gathered = None if name == STANDARD_INPUT else gather_transcript(directory / name, formats)
    if gathered is not None:
        return gathered.encode("utf-8", "replace")
    return read_input_bytes(directory, name, instead=instead)


def read_input_text(directory: Path, name: str) -> tuple[Path, str]:
    """Return the path of a file for errors, and its text.

    Raises:
        UsageError, FileError: As for `read_input_bytes`.
        FileError: It is not UTF-8.
    """
    path = Path("<stdin>") if name == STANDARD_INPUT else directory / name
    return path, decode_text(path, read_input_bytes(directory, name))


def has_unread_input() -> bool:
    """True if text is waiting at standard input: in a pipe, or in a file that is redirected to it."""
    try:
        descriptor = sys.stdin.fileno()
        status = os.fstat(descriptor)
        if S_ISREG(status.st_mode):
            return status.st_size > os.lseek(descriptor, 0, os.SEEK_CUR)
        if not S_ISFIFO(status.st_mode):
            return False
        from fcntl import ioctl
        from termios import FIONREAD

        return int.from_bytes(ioctl(descriptor, FIONREAD, bytes(4)), sys.byteorder) > 0
    except (AttributeError, ImportError, OSError, ValueError):  # closed, not a file, or a system without these calls
        return False


def note_unread_input(cli: CliContext, command: str) -> None:
    """Print that standard input is not read, if text is waiting there.

    Args:
        cli: The command.
        command: The command line that reads it.
    """
    if has_unread_input():
        cli.console.message(f"(standard input is not read; `{command}` reads it)")


def get_input_name(path: Path, name: str) -> str:
    """Return what errors call the file that was named: the name as it was given, or `<stdin>`."""
    return str(path) if name == STANDARD_INPUT else name


def decode_partial_text(cli: CliContext, name: str, data: bytes, *, fate: str) -> str:
    """Return the text of a file that may still be written to: its last character may be incomplete.

    Args:
        cli: Where to warn.
        name: The file.
        data: Its bytes.
        fate: What is done with the text: `shown`, `kept`.
    """
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        cli.console.warning(visible_line(f"{name}:{line}: not UTF-8; {fate} as � where it is not"))
        return data.decode("utf-8", "replace")


def get_input_size(directory: Path, name: str) -> int:
    """Return the size of a file in bytes for a progress bar, or 0 if it is unknown."""
    try:
        return os.stat(directory / name).st_size  # noqa: PTH116 - accepts any string
    except (OSError, ValueError):
        return 0


def parse_input_json(path: Path, part: str, text: str, line: int = 0) -> Any:  # noqa: ANN401 - what JSON may say
    """Return the JSON value of a text.

    Args:
        path: The file, for errors.
        part: What is to be read: the file, or a line of it.
        text: The whole file.
        line: The number of lines before the text.

    Raises:
        ConfigError: It is not JSON; shows where.
        FileError: It is nested too deeply.
    """
    try:
        return json.loads(part, parse_constant=_refuse_constant, parse_float=_parse_finite_float)
    except _JsonConstantError as error:
        what = "is too large a number" if str(error)[-1].isdigit() else "is not JSON"
        message, offset = f"{error} {what}", part.find(str(error))
    except json.JSONDecodeError as error:
        from nexus_core.transcripts.base import relocate_json_error

        found = relocate_json_error(part, error)
        message, offset = found.msg, found.pos
    except ValueError:  # Python reads no more digits than it prints
        most = sys.get_int_max_str_digits()
        message, offset = f"a number has more than {most} digits", _find_digits(part, most + 1)
    except RecursionError:
        raise FileError("nested too deeply", where=str(path)) from None
    lines = LineIndex(text)
    place = LineIndex(part).position(offset)
    # The input of a command is not a settings file.
    raise syntax_error(path, lines, (line + place.line, place.column), message, heading="Error")


def parse_json_lines(path: Path, text: str) -> Iterator[tuple[int, Any]] | None:
    """Return the JSON value of each line with its number from 1, or None if the text is not JSON Lines.

    Raises:
        ConfigError: A line is not JSON; shows where.
        FileError: One is nested too deeply.
    """
    lines = [(number, line) for number, line in enumerate(text.split("\n")) if line.strip()]
    if len(lines) < 2 or not _is_json_object(lines[0][1]):  # noqa: PLR2004 - one line may be anything
        return None
    return ((number + 1, parse_input_json(path, line, text, number)) for number, line in lines)


def read_tool_file(directory: Path, name: str) -> list[Any]:
    """Return a file with a list of tools."""
    path, text = read_input_text(directory, name)
    tools = parse_input_json(path, text, text)
    if not isinstance(tools, list):
        raise FileError("expected a list of tools", where=get_input_name(path, name))
    return tools


def _is_json_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _find_digits(text: str, count: int) -> int:
    found = re.search(rf"[0-9]{{{count}}}", text)
    return found.start() if found else 0


class _JsonConstantError(ValueError):
    """NaN, Infinity, or a number that would become one."""


def _parse_finite_float(number: str) -> float:
    value = float(number)
    return value if isfinite(value) else _refuse_constant(number)


def _refuse_constant(constant: str) -> NoReturn:
    raise _JsonConstantError(constant)
