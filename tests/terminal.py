"""A real terminal for tests: what a program writes when a person looks at it, and types."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, Self

import pyte

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_TIMEOUT_SECONDS = 30
_STYLE = re.compile(r"\x1b\[[0-9;]*m")


class Screen(NamedTuple):
    """What a program wrote to a terminal, and its exit code."""

    code: int
    written: str

    @property
    def text(self) -> str:
        """The text without styles, with the line ends of a file."""
        return _STYLE.sub("", self.written).replace("\r\n", "\n")


def run_in_terminal(
    arguments: Sequence[str],
    cwd: Path,
    *,
    columns: int = 80,
    rows: int = 24,
    keys: Mapping[str, str] | None = None,
    variables: Mapping[str, str] = MappingProxyType({}),
) -> Screen:
    """Run `nexus` with a terminal as its input, output and error stream.

    Args:
        arguments: The arguments of the command.
        cwd: Where to run it.
        columns: Characters of a line.
        rows: Lines of the terminal.
        keys: What to type once a text is on the screen.
        variables: Environment variables; those that change how a terminal is used are unset otherwise.
    """
    process, own = _start_program(arguments, cwd, columns, rows, variables)
    written, waiting = b"", dict(keys or {})
    end = time.monotonic() + _TIMEOUT_SECONDS
    try:
        while time.monotonic() < end:
            if not _wait_for_data(own):
                if process.poll() is not None:
                    break
                continue
            try:
                data = os.read(own, 65536)
            except OSError:  # the other side is closed
                break
            if not data:
                break
            written += data
            for text in [each for each in waiting if each.encode() in written]:
                os.write(own, waiting.pop(text).encode())
        code = process.wait(timeout=max(end - time.monotonic(), 1))
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        os.close(own)
    return Screen(code, written.decode("utf-8", "replace"))


class _AnsweringScreen(pyte.HistoryScreen):
    """A screen that answers a program's questions about the cursor, as terminals do."""

    def __init__(self, columns: int, rows: int, descriptor: int) -> None:
        super().__init__(columns, rows, history=10_000)
        self._descriptor = descriptor

    def write_process_input(self, data: str) -> None:
        os.write(self._descriptor, data.encode())


class TerminalProgram:
    """A `nexus` command that a person uses: a real terminal with a screen, and keys to press.

    Args:
        arguments: As for `run_in_terminal`.
        cwd, columns, rows, variables: As there.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        cwd: Path,
        *,
        columns: int = 80,
        rows: int = 24,
        variables: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.process, self._own = _start_program(arguments, cwd, columns, rows, variables)
        self._screen = _AnsweringScreen(columns, rows, self._own)
        self._stream = pyte.ByteStream(self._screen)
        self.written = b""

    @property
    def lines(self) -> list[str]:
        """The lines of the screen, and those that have scrolled away."""
        columns = range(self._screen.columns)
        gone = ["".join(row[each].data for each in columns).rstrip() for row in self._screen.history.top]
        return [*gone, *(line.rstrip() for line in self._screen.display)]

    @property
    def text(self) -> str:
        """What is and was on the screen."""
        return "\n".join(self.lines)

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._own, keys.encode())

    def wait_for(self, text: str, *, times: int = 1, seconds: float = _TIMEOUT_SECONDS) -> None:
        """Wait until a text is on the screen so many times, wherever its lines are wrapped."""
        end = time.monotonic() + seconds
        expected = " ".join(text.split())
        while " ".join(self.text.split()).count(expected) < times:
            assert self._read(end), f"no {text!r} on the screen:\n{self.text}"

    def wait(self) -> int:
        """Wait until the program ends, and return its exit code."""
        end = time.monotonic() + _TIMEOUT_SECONDS
        while self.process.poll() is None and self._read(end):
            pass
        return self.process.wait(timeout=max(end - time.monotonic(), 1))

    def _read(self, end: float) -> bool:
        """Read what the program writes. Return False if it has ended, or if the time is over."""
        while not _wait_for_data(self._own):
            if time.monotonic() > end or self.process.poll() is not None:
                return False
        try:
            data = os.read(self._own, 65536)
        except OSError:  # the other side is closed
            return False
        self.written += data
        self._stream.feed(data)
        return bool(data)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._own)


def _start_program(
    arguments: Sequence[str], cwd: Path, columns: int, rows: int, variables: Mapping[str, str]
) -> tuple[subprocess.Popen[bytes], int]:
    """Start `nexus` at a new terminal; return it with our side of the terminal."""
    own, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    unset = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "PAGER", "NEXUS_PAGER", "LESS")
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    environment |= {"TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8", **variables}
    # The first terminal that a new session opens is its own; a pager reads keys from there. The shell opens it, since
    # code that runs between fork and exec is not safe beside the threads of a test.
    taken = ["/bin/sh", "-c", 'exec 0<>"$0" && exec "$@"', os.ttyname(theirs)]
    try:
        process = subprocess.Popen(
            [*taken, sys.executable, "-m", "nexus_core", *arguments],
            cwd=cwd,
            env=environment,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
    except BaseException:
        os.close(own)
        raise
    finally:
        os.close(theirs)
    return process, own


def _wait_for_data(descriptor: int) -> bool:
    """Return True if there is something to read within a moment. Unlike `select`, it takes any descriptor."""
    poller = select.poll()
    poller.register(descriptor, select.POLLIN)
    return bool(poller.poll(50))
