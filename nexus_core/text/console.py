"""Terminal output: data to standard output, messages to standard error."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Literal, Self, TextIO

from nexus_core.errors import FileError
from nexus_core.text.safety import visible, visible_json, visible_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

ConsoleStyle = Literal["plain", "bold", "dim", "red", "green", "yellow"]

_STYLE_CODES: dict[ConsoleStyle, str] = {
    "plain": "",
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
}
_COLUMN_GAP = "  "


class OutputClosedError(Exception):
    """Raised when the reader of the output has closed it (`| head`). Not an error."""


class Console:
    """Prints data and messages. Colors only on a terminal, and only if NO_COLOR is not set.

    Args:
        out: The stream for data; standard output by default.
        err: The stream for messages; standard error by default.
    """

    def __init__(self, out: TextIO | None = None, err: TextIO | None = None) -> None:
        self._out = out or sys.stdout
        self._err = err or sys.stderr
        for stream in (self._out, self._err):
            _escape_unencodable(stream)

    def text(self, text: str) -> None:
        """Print text as data, with a newline at its end if it has none."""
        self._write(self._out, visible(text))

    def json(self, value: Mapping[str, object]) -> None:
        """Print a value as a lossless JSON document without control characters. Bytes become base64."""
        import json

        document = visible_json(json.dumps(value, ensure_ascii=False, allow_nan=False, indent=2, default=_encode_bytes))
        if not _can_encode(document, self._out):  # only JSON's own escapes are JSON; Python's are not
            document = json.dumps(value, allow_nan=False, indent=2, default=_encode_bytes)
        self._write(self._out, document)

    def table(
        self, rows: Sequence[Sequence[str]], *, styles: Sequence[ConsoleStyle] = (), longest_name: int | None = None
    ) -> None:
        """Print rows as aligned columns.

        Args:
            rows: The cells; those of the heading first.
            styles: One for each row; missing ones are plain.
            longest_name: On a terminal, a longer first cell gets a line of its own.
        """
        cells = [[visible_line(cell) for cell in row] for row in rows]
        names = [""] * len(cells)
        if longest_name is not None and self._out.isatty():
            for index, row in enumerate(cells):
                if len(row[0]) > longest_name:
                    names[index], row[0] = row[0], ""
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        for index, row in enumerate(cells):
            line = _COLUMN_GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            style = styles[index] if index < len(styles) else "plain"
            for each in (names[index], line) if names[index] else (line,):
                self._write(self._out, self._styled(each, style, self._out))

    def message(self, text: str, *, style: ConsoleStyle = "plain") -> None:
        """Print a message for the user. It never mixes with data."""
        with suppress(OSError):  # the next write of data raises it
            self._out.flush()  # keeps the order if both streams go to one terminal or file
        self._write(self._err, self._styled(visible(text), style, self._err))

    def warning(self, text: str) -> None:
        """Print a problem that did not stop the command."""
        self.message(f"Warning: {text}", style="yellow")

    def error(self, text: str) -> None:
        """Print why the command failed."""
        self.message(f"Error: {text}", style="red")

    def progress(self, total: float) -> ProgressBar:
        """Return a progress bar for long work, visible only on a terminal."""
        return ProgressBar(self._err, total)

    @staticmethod
    def _styled(line: str, style: ConsoleStyle, stream: TextIO) -> str:
        if style == "plain" or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not stream.isatty():
            return line
        return f"\x1b[{_STYLE_CODES[style]}m{line}\x1b[0m"

    @staticmethod
    def _write(stream: TextIO, text: str) -> None:
        try:
            stream.write(text if text.endswith("\n") else text + "\n")
        except BrokenPipeError as error:
            raise OutputClosedError from error
        except OSError as error:
            raise FileError(f"cannot print: {error.strerror}", where=getattr(stream, "name", None)) from error


def format_count(number: int, noun: str) -> str:
    """Format a number with a noun: `1 finding`, `2 findings`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def format_percent(part: int, total: int) -> str:
    """Format a part of a total in percent."""
    return f"{part / total:.1%}" if total else "-"


def _encode_bytes(value: object) -> str:
    """Encode bytes, which some SDKs use in request bodies, as base64."""
    if not isinstance(value, bytes):
        raise TypeError(f"{type(value).__name__} cannot be written as JSON")
    from base64 import b64encode

    return b64encode(value).decode("ascii")


def _can_encode(text: str, stream: TextIO) -> bool:
    try:
        text.encode(getattr(stream, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _escape_unencodable(stream: TextIO) -> None:
    # In an ASCII locale, a character is printed as an escape instead of failing the command.
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="backslashreplace")


PROGRESS_DELAY_SECONDS = 0.5
"""Seconds of work before a bar is drawn."""
_REDRAW_SECONDS = 0.1
_BAR_WIDTH = 40


class ProgressBar:
    """A bar on a terminal, removed when the work is done. Elsewhere, and for short work, nothing.

    Args:
        stream: The stream to draw on.
        total: The amount of work, in any unit.
        clock: Returns seconds.
    """

    def __init__(self, stream: TextIO, total: float, *, clock: Callable[[], float] = monotonic) -> None:
        self._stream = stream
        self._total = total
        self._clock = clock
        self._done = 0.0
        self._next = clock() + PROGRESS_DELAY_SECONDS
        self._drawn = 0
        self._watched = total > 0 and stream.isatty() and os.environ.get("TERM") != "dumb"

    def advance(self, amount: float) -> None:
        """Add completed work."""
        self._done += amount
        if self._watched and self._clock() >= self._next:
            self._next = self._clock() + _REDRAW_SECONDS
            share = min(self._done / self._total, 1)
            self._draw(f"[{'#' * int(share * _BAR_WIDTH):<{_BAR_WIDTH}}] {share:4.0%}")

    def close(self) -> None:
        """Remove the bar."""
        if self._drawn:
            self._draw("")

    def _draw(self, line: str) -> None:
        try:
            self._stream.write("\r" + line.ljust(self._drawn) + ("\r" if not line else ""))
            self._stream.flush()
        except OSError:  # the stream is closed
            self._watched = False
        self._drawn = len(line)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
