"""Sessions in the user's own ledger, a real file, made as a program would make them."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from nexus_core import Nexus
from nexus_core.session.session import Session
from tests.ledger.test_verify import tamper
from tests.session.support import TOOLS, says

Talk = Callable[..., Session]
TypeIn = Callable[[str], None]


class Ticking:
    """A clock of which no two looks say the same millisecond."""

    def __init__(self) -> None:
        self._last = 0

    def time_ns(self) -> int:
        self._last = max(time.time_ns(), self._last + 1_000_000)
        return self._last


@pytest.fixture(autouse=True)
def ticking(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes later has a later time and a name that sorts behind; within one millisecond that would be luck."""
    monkeypatch.setattr("nexus_core.ledger.store.time", Ticking())


@pytest.fixture
def talk(nexus: Nexus) -> Talk:
    """A session in which questions were asked and answered."""

    def make(label: str, *questions: str) -> Session:
        session = nexus.session(label, model="claude-sonnet-4", tools=TOOLS)
        for question in questions:
            session.ask(question)
            session.record(says(f"re {question}", name=f"msg {question}"))
        return session

    return make


@pytest.fixture
def torn_turn(talk: Talk, nexus: Nexus, nexus_home: Path) -> str:
    """The second of the three turns of session `main`, which cannot be read any more."""
    talk("main", "one", "two", "three")
    record = nexus.ledger.session("main")
    assert record is not None
    turns = [step.id for step in nexus.ledger.thread(str(record.tip)) if step.id == step.turn]
    nexus.close()
    change = "update steps set messages = '[' where id = ?"
    tamper(nexus_home / "ledger.db", lambda file: file.execute(change, (turns[1],)))
    return turns[1]


@pytest.fixture
def type_in(monkeypatch: pytest.MonkeyPatch) -> TypeIn:
    """Give a command something on its standard input."""

    def give(text: str) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode("utf-8", "surrogatepass"))))

    return give
