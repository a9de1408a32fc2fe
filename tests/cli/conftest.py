"""Whoever uses the command line: at a terminal, and with a program beside it."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nexus_core import Nexus
from nexus_core.testing import write_files

Answer = Callable[[str], None]


class Terminal(io.StringIO):
    """What a person types, or sees."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Answer:
    """Sit at a terminal and type this."""

    def type_in(text: str) -> None:
        monkeypatch.setattr(sys, "stdin", Terminal(text))
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
        monkeypatch.setenv("NO_COLOR", "1")

    return type_in


@pytest.fixture
def no_session_start(nexus_home: Path) -> None:
    """For tests that count messages and steps: new sessions do not say when they started."""
    write_files(nexus_home, {"config.json": '{"context": {"session_start": false}}'})


@pytest.fixture
def nexus(work: Path, nexus_home: Path) -> Iterator[Nexus]:
    """A program beside the command line, in the same home."""
    with Nexus(work, home=nexus_home) as opened:
        yield opened
