"""Whoever uses the command line: at a terminal, and with a program beside it."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nexus_core import Nexus
from nexus_core.testing import write_files
from nexus_core.text.console import ProgressBar

Answer = Callable[[str], None]


class Terminal(io.StringIO):
    """What a person types, or sees."""

    def isatty(self) -> bool:
        return True


Watch = Callable[[], Terminal]


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Answer:
    """Sit at a terminal and type this."""

    def type_in(text: str) -> None:
        monkeypatch.setattr(sys, "stdin", Terminal(text))
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
        monkeypatch.setenv("NO_COLOR", "1")
        monkeypatch.setenv("COLUMNS", "500")  # what is asked is in one line

    return type_in


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    """Make standard error a terminal on which all work takes so long that its progress is drawn."""
    terminal = Terminal()
    close = ProgressBar.close

    def close_when_drawn(bar: ProgressBar) -> None:
        end = time.monotonic() + 10
        while "\x1b[2K" not in terminal.getvalue() and time.monotonic() < end:
            time.sleep(0.01)
        close(bar)

    def sit_down() -> Terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        monkeypatch.setattr(ProgressBar, "close", close_when_drawn)
        monkeypatch.setattr("nexus_core.text.console.PROGRESS_DELAY_SECONDS", 0)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("NO_COLOR", "1")
        return terminal

    return sit_down


@pytest.fixture
def no_session_start(nexus_home: Path) -> None:
    """For tests that count messages and steps: new sessions do not say when they started."""
    write_files(nexus_home, {"config.json": '{"context": {"session_start": false}}'})


@pytest.fixture
def nexus(work: Path, nexus_home: Path) -> Iterator[Nexus]:
    """A program beside the command line, in the same home."""
    with Nexus(work, home=nexus_home) as opened:
        yield opened
