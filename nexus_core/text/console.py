"""Terminal output: data to standard output, messages to standard error.

Rich draws what only a terminal shows: styles, Markdown and progress. It is imported there and nowhere else, because
it would add to the start-up of every piped command.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager, nullcontext, suppress
from io import BytesIO, StringIO, TextIOWrapper
from time import monotonic
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, Self, TextIO

from nexus_core.errors import FileError
from nexus_core.text.layout import COLUMN_GAP, lay_out_table, wrap_line
from nexus_core.text.safety import visible, visible_json, visible_line
from nexus_core.text.text_stream import TextStream

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from subprocess import Popen

    from rich.console import RenderableType
    from rich.spinner import Spinner

    from nexus_core.text.layout import TableLine

ConsoleStyle = Literal["plain", "bold", "dim", "red", "green", "yellow", "blue", "magenta", "cyan"]

DEFAULT_WIDTH = 100
"""Characters of a line where no terminal has a width."""
_FALLBACK_TERMINAL_WIDTH, _FALLBACK_TERMINAL_HEIGHT = 80, 24
_MIN_TERMINAL_WIDTH = 20
"""A terminal that is narrower breaks lines itself."""
_BYTE_UNITS = ("B", "kB", "MB", "GB")
_EIGHTHS = " ▏▎▍▌▋▊▉"


class OutputClosedError(Exception):
    """Raised when the reader of the output has closed it (`| head`). Not an error."""


class Console:
    """Prints data and messages.

    On a terminal with styles, bars and lines that fit its width, unless NO_COLOR or TERM=dumb asks for plain text;
    elsewhere every row and message is plain and one line, however long. FORCE_COLOR adds the styles elsewhere, too.
    Whatever is printed, its control characters and hidden characters are escaped, and no markup in it is interpreted.

    Args:
        out: The stream for data; standard output by default.
        err: The stream for messages; standard error by default.
    """

    def __init__(self, out: TextIO | None = None, err: TextIO | None = None) -> None:
        self._out = out or sys.stdout
        self._err = err or sys.stderr
        for stream in (self._out, self._err):
            _escape_unencodable(stream)
        self._pager: Pager | None = None
        self._bar: ProgressBar | None = None

    @property
    def is_terminal(self) -> bool:
        """True if data goes to a terminal."""
        return self._out.isatty()

    @property
    def is_rich(self) -> bool:
        """True if data goes to a terminal that can show more than plain text."""
        return self.is_terminal and os.environ.get("TERM") != "dumb"

    @property
    def width(self) -> int:
        """Characters of a line: those of the terminal, or the default width without one."""
        return _measure_terminal(self._out)[0] if self.is_terminal else DEFAULT_WIDTH

    def text(self, text: str, *, style: ConsoleStyle = "plain", wrap: bool = False) -> None:
        """Print text as data, with a newline at its end if it has none.

        Args:
            text: The text.
            style: How it looks on a terminal.
            wrap: True to wrap long lines between words on a terminal.
        """
        shown = visible(text)
        if wrap and self.is_terminal:
            shown = _wrap_text(shown, self.width)
        self._write_data(_style_text(shown, style, self._out))

    def json(self, value: Mapping[str, object]) -> None:
        """Print a value as a lossless JSON document without control characters. Bytes become base64."""
        document = visible_json(json.dumps(value, ensure_ascii=False, allow_nan=False, indent=2, default=_encode_bytes))
        if not _can_encode(document, self._out):  # only JSON's own escapes are JSON; Python's are not
            document = json.dumps(value, allow_nan=False, indent=2, default=_encode_bytes)
        self._write_data(document)

    def markdown(self, text: str, *, indent: str = "") -> None:
        """Print Markdown: formatted on a terminal, as it is written elsewhere.

        Nothing of it is hidden: links, images, HTML and references are shown as they are written.

        Args:
            text: The Markdown.
            indent: Printed before every line on a terminal.
        """
        if not self.is_rich:
            self.text(text)
            return
        from nexus_core.text.markdown import format_markdown

        width = max(self.width - len(indent), _MIN_TERMINAL_WIDTH)
        lines = format_markdown(visible(text), width, color=_has_styles(self._out))
        self._write_data("\n".join(f"{indent}{line}".rstrip() for line in lines))

    def stream(self) -> TextStream:
        """Return a stream for a text that arrives in pieces: formatted Markdown on a terminal, plain text elsewhere."""
        if not self.is_rich:
            return TextStream(self._write_piece)
        from nexus_core.text.markdown_stream import MarkdownStream

        color = _has_styles(self._out)
        return MarkdownStream(self._write_piece, lambda: _measure_terminal(self._out), color=color)

    @property
    def output(self) -> TextIO:
        """The stream for data, for programs that draw on a terminal themselves."""
        return self._out

    def table(
        self,
        rows: Sequence[Sequence[str]],
        *,
        styles: Sequence[ConsoleStyle] = (),
        cell_styles: Mapping[tuple[int, int], ConsoleStyle] = MappingProxyType({}),
        right: Container[int] = (),
        longest_name: int | None = None,
        bold_words: Mapping[tuple[int, int], Collection[str]] = MappingProxyType({}),
        whole: Container[int] = (),
    ) -> None:
        """Print rows as aligned columns. On a terminal, they wrap between words to fit its width.

        Args:
            rows: The cells; those of the heading first.
            styles: One for each row; missing ones are plain.
            cell_styles: Styles by row and column, instead of the row's.
            right: The columns that are aligned on the right.
            longest_name: On a terminal, a longer first cell gets a line of its own.
            bold_words: Words that are bold, by row and column.
            whole: The columns that move to a further line rather than wrap.
        """
        cells = [[visible_line(cell) for cell in row] for row in rows]
        names = [""] * len(cells)
        if longest_name is not None and self.is_terminal:
            for index, row in enumerate(cells):
                if len(row[0]) > longest_name:
                    names[index], row[0] = row[0], ""
        lines = []
        for line in lay_out_table(cells, self.width if self.is_terminal else None, right=right, whole=whole):
            style = styles[line.row] if line.row < len(styles) else "plain"
            if names[line.row]:
                lines.append(_style_text(names[line.row], style, self._out))
                names[line.row] = ""
            style = "dim" if line.is_moved and style == "plain" else style
            lines.append(self._format_line(line, style, cell_styles, bold_words))
        self._write_data("\n".join(lines))

    def format_bar(self, part: float, total: float, width: int) -> str:
        """Return a bar for a part of a total, in eighths of a character on a terminal that can show them.

        Args:
            part: The part; below 0 counts as 0, and more than the total as the total.
            total: Above 0.
            width: Characters of a bar for the total.
        """
        if not self.is_rich or not _can_encode(_EIGHTHS + "█", self._out):
            return "#" * min(round(width * part / total), width)
        full, rest = divmod(min(max(round(width * 8 * part / total), 0), width * 8), 8)
        return "█" * full + _EIGHTHS[rest] * (rest > 0)

    def message(self, text: str, *, style: ConsoleStyle = "plain") -> None:
        """Print a message for the user. It never mixes with data."""
        shown = visible(text)
        if self._err.isatty():
            shown = _wrap_text(shown, _measure_terminal(self._err)[0])
        shown = _style_text(shown, style, self._err)
        if self._pager is not None and self._pager.has_output and self._err.isatty():
            self._write_data(shown)  # else it would be drawn over the page
            return
        with suppress(OSError):  # the next write of data raises it
            self._out.flush()  # keeps the order if both streams go to one terminal or file
        with self._pause_bar():
            _write(self._err, shown)

    def warning(self, text: str) -> None:
        """Print a problem that did not stop the command."""
        self.message(f"Warning: {text}", style="yellow")

    def error(self, text: str) -> None:
        """Print why the command failed."""
        self.message(f"Error: {text}", style="red")

    @contextmanager
    def progress(self, total: float | None, what: str = "", *, unit: str = "") -> Iterator[ProgressBar]:
        """Show the progress of long work, on a terminal only, from its first half second on.

        Args:
            total: The amount of work, in any unit; None if unknown, which shows the elapsed time only.
            what: The work, as a participle: "Importing".
            unit: The plural of what is counted, for the rate: "steps" or "bytes"; "" for no rate.
        """
        with ProgressBar(self._err, total, what, unit=unit) as bar:
            before, self._bar = self._bar, bar
            try:
                yield bar
            finally:
                self._bar = before

    @contextmanager
    def paged(self) -> Iterator[None]:
        """Show data in the user's pager if it is longer than the terminal is high."""
        command = find_pager() if self.is_rich and self._pager is None else ""
        if not command:
            yield
            return
        self._pager = Pager(self._out, command)
        try:
            yield
        finally:
            pager, self._pager = self._pager, None
            pager.close()

    @contextmanager
    def unpaged(self) -> Iterator[None]:
        """Print data at once inside `paged`, because a question about it follows."""
        pager, self._pager = self._pager, None
        if pager is not None:
            pager.flush()
        try:
            yield
        finally:
            self._pager = pager

    def _format_line(
        self,
        line: TableLine,
        style: ConsoleStyle,
        cell_styles: Mapping[tuple[int, int], ConsoleStyle],
        bold_words: Mapping[tuple[int, int], Collection[str]],
    ) -> str:
        own = [cell_styles.get((line.row, column)) for column, _ in line.cells]
        bold = [bold_words.get((line.row, column), ()) for column, _ in line.cells]
        if not (any(own) or any(bold)) or not _has_styles(self._out):
            return _style_text(line.text, style, self._out)
        last = max((place for place, (_, text) in enumerate(line.cells) if text.strip()), default=-1)
        parts = []
        for place, (_, text) in enumerate(line.cells[: last + 1]):
            shown = text.rstrip() if place == last else text
            pieces = _split_at_words(shown, bold[place]) if bold[place] else [shown]
            parts.append(
                "".join(
                    _style_text(each, "bold" if at % 2 else own[place] or style, self._out)
                    for at, each in enumerate(pieces)
                )
            )
        return COLUMN_GAP.join(parts)

    def _write_data(self, text: str) -> None:
        with self._pause_bar():
            if self._pager is None:
                _write(self._out, text)
            else:
                self._pager.write(text if text.endswith("\n") else text + "\n")

    def _write_piece(self, text: str) -> None:
        """Write text as it is, at once."""
        _write(self._out, text, end="")
        try:
            self._out.flush()
        except BrokenPipeError as error:
            raise OutputClosedError from error

    def _pause_bar(self) -> AbstractContextManager[None]:
        return nullcontext() if self._bar is None else self._bar.pause()


def _split_at_words(text: str, words: Collection[str]) -> list[str]:
    """Split a text so that every second piece is one of the words. `_` separates words, too, as in `foo_bar`."""
    return re.split(rf"(?<![^\W_])({'|'.join(map(re.escape, words))})(?![^\W_])", text)


def _write(stream: TextIO, text: str, end: str = "\n") -> None:
    try:
        stream.write(text if text.endswith("\n") else text + end)
    except BrokenPipeError as error:
        raise OutputClosedError from error
    except OSError as error:
        raise FileError(f"cannot print: {error.strerror}", where=getattr(stream, "name", None)) from error


def _has_styles(stream: TextIO) -> bool:
    """True if styles may be written to a stream."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return os.environ.get("TERM") != "dumb" and stream.isatty()


def _style_text(text: str, style: ConsoleStyle, stream: TextIO) -> str:
    if style == "plain" or not text or not _has_styles(stream):
        return text
    from rich.style import Style

    ending = "\n" if text.endswith("\n") else ""
    return Style.parse(style).render(text.removesuffix("\n")) + ending


def _wrap_text(text: str, width: int) -> str:
    return "\n".join(part for line in text.split("\n") for part in wrap_line(line, width))


def _measure_terminal(stream: TextIO) -> tuple[int, int]:
    """Return the columns and lines of a terminal, or those of COLUMNS and LINES."""
    try:
        columns, lines = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError):  # not a file of the operating system
        columns, lines = 0, 0
    columns = _read_number("COLUMNS") or columns or _FALLBACK_TERMINAL_WIDTH
    return max(columns, _MIN_TERMINAL_WIDTH), _read_number("LINES") or lines or _FALLBACK_TERMINAL_HEIGHT


def _read_number(variable: str) -> int:
    value = os.environ.get(variable, "")
    return int(value) if value.isascii() and value.isdigit() else 0


def format_count(number: int, noun: str) -> str:
    """Format a number with a noun: `1 finding`, `2 findings`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def format_percent(part: int, total: int) -> str:
    """Format a part of a total in percent."""
    return format_share(part / total, digits=1) if total else "-"


def format_share(share: float, *, digits: int = 0) -> str:
    """Format a share in percent. Only nothing is 0%, and only all of it is 100%: `<1%`, `>99%`."""
    smallest = 10 ** -(digits + 2)
    if 0 < share < smallest / 2:
        return f"<{smallest:.{digits}%}"
    if 1 - smallest / 2 <= share < 1:
        return f">{1 - smallest:.{digits}%}"
    return f"{share:.{digits}%}"


def format_bytes(size: float) -> str:
    """Format a number of bytes with a unit: `512 B`, `2.1 MB`."""
    for unit in _BYTE_UNITS[:-1]:
        if size < 1000:  # noqa: PLR2004 - the factor of SI units
            return f"{size:.0f} {unit}" if unit == _BYTE_UNITS[0] else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} {_BYTE_UNITS[-1]}"


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


DEFAULT_PAGER = "less -FRX"
_LESS_OPTIONS = "FRX"
"""Options of `less` unless its command or LESS has some: quit if it fits, keep colors, leave the text on the screen."""


def find_pager() -> str:
    """Return the shell command of the user's pager, or "" if there is none to use."""
    for variable in ("NEXUS_PAGER", "PAGER"):
        if variable in os.environ:
            command = os.environ[variable].strip()
            break
    else:
        command = DEFAULT_PAGER
    if command in ("", "cat"):
        return ""
    try:
        program = next((word for word in shlex.split(command) if "=" not in word), "")
    except ValueError:  # the shell will say what is wrong with it
        return command
    return command if shutil.which(program) else ""


class Pager:
    """Text for a terminal, which goes to a pager as soon as it is longer than the terminal is high.

    Args:
        stream: The terminal.
        command: A shell command that reads the text from its standard input.
    """

    def __init__(self, stream: TextIO, command: str) -> None:
        self._stream = stream
        self._command = command
        self._width, self._height = _measure_terminal(stream)
        self._held: list[str] = []
        self._lines = 0
        self._process: Popen[str] | None = None
        self._is_usable = True

    @property
    def has_output(self) -> bool:
        """True if text was written that the terminal does not show yet."""
        return bool(self._held) or self._process is not None

    def write(self, text: str) -> None:
        """Add text.

        Raises:
            OutputClosedError: The user has left the pager.
        """
        if not self._is_usable:
            _write(self._stream, text)
        elif self._process is not None:
            self._send(text)
        else:
            self._held.append(text)
            self._lines += sum(1 + (len(line) - 1) // self._width if line else 1 for line in text.splitlines())
            if self._lines >= self._height:
                self._start()

    def flush(self) -> None:
        """Print the text that is held back, unless the pager runs already. Later text begins a new page."""
        if self._process is None and self._held:
            held, self._held, self._lines = self._held, [], 0
            _write(self._stream, "".join(held))
            with suppress(OSError):
                self._stream.flush()

    def close(self) -> None:
        """Print what is left, and wait until the user leaves the pager."""
        if self._process is None:
            self.flush()
            return
        # The terminal sends an interrupt to both, and the pager has its own use for it.
        is_main = threading.current_thread() is threading.main_thread()
        before = signal.signal(signal.SIGINT, signal.SIG_IGN) if is_main else None
        try:
            with suppress(OSError):  # the user has left it
                if self._process.stdin is not None:
                    self._process.stdin.close()
            self._process.wait()
        finally:
            if is_main:
                signal.signal(signal.SIGINT, before)

    def _start(self) -> None:
        environment = {"LESS": _LESS_OPTIONS, "LV": "-c", **os.environ}
        with suppress(OSError):
            self._stream.flush()
        try:
            self._process = subprocess.Popen(  # noqa: S602 - it is the user's own command, as git runs it
                self._command,
                shell=True,
                stdin=subprocess.PIPE,
                stdout=self._stream.fileno(),
                env=environment,
                encoding=self._stream.encoding,
                errors=self._stream.errors,
            )
        except OSError:  # no shell, or no process
            self._is_usable = False
            self.flush()
            return
        held, self._held = self._held, []
        self._send("".join(held))

    def _send(self, text: str) -> None:
        if self._process is None or self._process.stdin is None:
            return
        try:
            self._process.stdin.write(text)
            self._process.stdin.flush()
        except BrokenPipeError as error:
            raise OutputClosedError from error


PROGRESS_DELAY_SECONDS = 0.5
"""Seconds of work before it is shown."""
_REDRAW_SECONDS = 0.1
_BAR_WIDTH = 30
_ERASE_LINE = "\r\x1b[2K"
_MIN_FORECAST_SHARE = 0.02
"""Share of the work from which the remaining time is estimated."""
_MIN_RATE_SECONDS = 0.2
"""Seconds after which a rate says something."""
_SECONDS_PER_MINUTE = 60


class ProgressBar:
    """The state of long work on a terminal, removed when it is done. Elsewhere, and for short work, nothing.

    It is drawn by a thread of its own, so that time passes on the screen while nothing else happens.

    Args:
        stream: The stream to draw on.
        total: The amount of work, in any unit; None if it is not known.
        what: The work, as a participle.
        unit: The plural of what is counted.
        delay: Seconds before it is shown; None for the usual ones.
    """

    def __init__(
        self,
        stream: TextIO,
        total: float | None,
        what: str = "",
        *,
        unit: str = "",
        delay: float | None = None,
    ) -> None:
        self._stream = stream
        self._total = total
        self._what = what
        self._unit = unit
        self._done = 0.0
        self._begin = monotonic()
        self._lock = threading.RLock()
        self._is_drawn = False
        self._closed = threading.Event()
        if total != 0 and stream.isatty() and os.environ.get("TERM") != "dumb":
            threading.Thread(
                target=self._keep_drawing, args=(PROGRESS_DELAY_SECONDS if delay is None else delay,), daemon=True
            ).start()

    def advance(self, amount: float) -> None:
        """Add completed work."""
        self._done += amount

    def close(self) -> None:
        """Remove it from the terminal, for good."""
        with self._lock:
            self._closed.set()
            self._erase()

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Remove it from the terminal while something else is printed."""
        with self._lock:
            self._erase()
            yield

    def describe(self) -> str:
        """Return the rate and the remaining time, or the elapsed time if the remaining time is not known."""
        elapsed = monotonic() - self._begin
        rate = self._done / elapsed if elapsed > _MIN_RATE_SECONDS else 0
        facts = [_format_rate(rate, self._unit)] if rate and self._unit else []
        if self._total and rate and self._done >= self._total * _MIN_FORECAST_SHARE:
            facts.append(f"{_format_seconds(max(self._total - self._done, 0) / rate)} left")
        else:
            facts.insert(0, _format_seconds(elapsed))
        return ", ".join(facts)

    def _keep_drawing(self, delay: float) -> None:
        """Draw it again and again until it is closed, in a thread."""
        if self._closed.wait(delay):
            return
        from rich.console import Console as RichConsole
        from rich.spinner import Spinner

        width = _measure_terminal(self._stream)[0]
        console = RichConsole(
            file=StringIO(), force_terminal=True, no_color=not _has_styles(self._stream), width=width - 1
        )
        if not _can_encode("━⠋", self._stream):
            console.file = TextIOWrapper(BytesIO(), encoding="ascii")
        spinner = Spinner("line" if console.options.ascii_only else "dots")
        while not self._closed.is_set():
            with console.capture() as captured:
                console.print(self._build_line(spinner), end="", no_wrap=True)
            with self._lock:
                if not self._closed.is_set():
                    self._write(f"{_ERASE_LINE}{captured.get().rstrip()}")
                    self._is_drawn = True
            self._closed.wait(_REDRAW_SECONDS)

    def _build_line(self, spinner: Spinner) -> RenderableType:
        from rich.progress_bar import ProgressBar as RichBar
        from rich.table import Table
        from rich.text import Text

        cells: list[RenderableType] = [Text(self._what)] if self._what else []
        if self._total:
            share = min(self._done / self._total, 1)
            cells += [RichBar(total=1, completed=share, width=_BAR_WIDTH), Text(f"{share:4.0%}")]
        else:
            cells.insert(0, spinner)
        cells.append(Text(self.describe(), style="dim"))
        line = Table.grid(*("" for _ in cells), padding=(0, 1))
        line.add_row(*cells)
        return line

    def _erase(self) -> None:
        if self._is_drawn:
            self._write(_ERASE_LINE)
            self._is_drawn = False

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # the terminal is closed
            self._closed.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _format_rate(rate: float, unit: str) -> str:
    return f"{format_bytes(rate)}/s" if unit == "bytes" else f"{rate:,.0f} {unit}/s"


def _format_seconds(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), _SECONDS_PER_MINUTE)
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
