"""The one way out: data to standard output, messages to standard error, nothing that steers the terminal."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Literal, TextIO

from nexus_core.errors import FileError
from nexus_core.text.visible import visible, visible_json, visible_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nexus_core.text.progress import Progress

Style = Literal["plain", "bold", "dim", "red", "green", "yellow"]

_CODES: dict[Style, str] = {"plain": "", "bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33"}
_GAP = "  "


class ReaderLeftError(Exception):
    """Raised when whoever was reading the output has gone; that is no failure, and nobody else's broken pipe."""


class Console:
    """Prints data and messages; colours only on a terminal, and only when NO_COLOR is not set.

    Args:
        out: Where data goes; standard output by default.
        err: Where messages go; standard error by default.
    """

    def __init__(self, out: TextIO | None = None, err: TextIO | None = None) -> None:
        self._out = out or sys.stdout
        self._err = err or sys.stderr
        for stream in (self._out, self._err):
            _never_fail_to_encode(stream)

    def text(self, text: str) -> None:
        """Print text as data, with a newline at its end if it has none."""
        self._write(self._out, visible(text))

    def json(self, value: Mapping[str, object]) -> None:
        """Print a value as a JSON document that loses nothing and steers nothing; bytes are base64 there."""
        import json  # noqa: PLC0415 - only commands that print JSON pay for it

        document = visible_json(json.dumps(value, ensure_ascii=False, allow_nan=False, indent=2, default=_base64))
        if not _can_encode(document, self._out):  # only JSON's own escapes are JSON; Python's are not
            document = json.dumps(value, allow_nan=False, indent=2, default=_base64)
        self._write(self._out, document)

    def table(
        self, rows: Sequence[Sequence[str]], *, styles: Sequence[Style] = (), longest_name: int | None = None
    ) -> None:
        """Print rows as aligned columns.

        Args:
            rows: The cells; those of the heading first.
            styles: One for each row; those that are left out are plain.
            longest_name: On a terminal, a first cell with more characters stands in a line of its own.
        """
        cells = [[visible_line(cell) for cell in row] for row in rows]
        names = [""] * len(cells)
        if longest_name is not None and self._out.isatty():
            for place, row in enumerate(cells):
                if len(row[0]) > longest_name:
                    names[place], row[0] = row[0], ""
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        for place, row in enumerate(cells):
            line = _GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            style = styles[place] if place < len(styles) else "plain"
            for each in (names[place], line) if names[place] else (line,):
                self._write(self._out, self._styled(each, style, self._out))

    def message(self, text: str, *, style: Style = "plain") -> None:
        """Print a message for the person at the terminal; it never mixes with data."""
        with suppress(OSError):  # whoever prints data next will hear of it
            self._out.flush()  # where both go to one place, they come in the order in which they were printed
        self._write(self._err, self._styled(visible(text), style, self._err))

    def warning(self, text: str) -> None:
        """Print what went wrong and was worked around."""
        self.message(f"Warning: {text}", style="yellow")

    def error(self, text: str) -> None:
        """Print why the command failed."""
        self.message(f"Error: {text}", style="red")

    def progress(self, total: float) -> Progress:
        """A bar for long work, shown only to somebody at a terminal."""
        from nexus_core.text.progress import Progress  # noqa: PLC0415 - most commands are done at once

        return Progress(self._err, total)

    @staticmethod
    def _styled(line: str, style: Style, stream: TextIO) -> str:
        if style == "plain" or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not stream.isatty():
            return line
        return f"\x1b[{_CODES[style]}m{line}\x1b[0m"

    @staticmethod
    def _write(stream: TextIO, text: str) -> None:
        try:
            stream.write(text if text.endswith("\n") else text + "\n")
        except BrokenPipeError as error:
            raise ReaderLeftError from error
        except OSError as error:
            raise FileError(f"cannot print: {error.strerror}", where=getattr(stream, "name", None)) from error


def counted(number: int, noun: str) -> str:
    """How many there are of something: `1 finding`, `2 findings`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def share(part: int, total: int) -> str:
    """A part of a total in percent."""
    return f"{part / total:.1%}" if total else "-"


def _base64(value: object) -> str:
    """Bytes, which some SDKs take in the arguments of a call, as they are sent."""
    if not isinstance(value, bytes):
        raise TypeError(f"{type(value).__name__} cannot be written as JSON")
    from base64 import b64encode  # noqa: PLC0415 - few calls have any

    return b64encode(value).decode("ascii")


def _can_encode(text: str, stream: TextIO) -> bool:
    try:
        text.encode(getattr(stream, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _never_fail_to_encode(stream: TextIO) -> None:
    # An ASCII locale must cost a character its looks, not the user the command.
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="backslashreplace")
