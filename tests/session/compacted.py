"""Conversations that grow too long, and those who summarize them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from nexus_core import Nexus, Section, hookimpl
from nexus_core.ledger.ledger import StoreLedger
from nexus_core.session.session import Session
from nexus_core.testing import write_files
from nexus_core.types.compaction import SummaryRequest
from nexus_core.types.ledger import Step
from tests.session.support import calls, says, steps_of
from tests.session.test_prefix import Words as MoodyWords

AVAILABLE = 1125
"""What the model `words` leaves for a call: its window without the reserve."""


class Words(MoodyWords):
    """A model that counts words, without a memory."""

    @hookimpl
    def nexus_current_sections(self) -> list[Section]:
        return []


class Fake:
    """A summarizer that says what it is told to, and remembers what it was asked."""

    def __init__(self, answer: Any = "They looked at numbers.") -> None:
        self.answer = answer
        self.asked: list[SummaryRequest] = []

    def __call__(self, request: SummaryRequest) -> Any:
        self.asked.append(request)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer(request) if callable(self.answer) else self.answer


def configure(home: Path, **compaction: Any) -> None:
    """Settings of the user's own."""
    write_files(home, {"config.json": json.dumps({"compaction": compaction})})


def exchange(session: Session, number: int, words: int = 50) -> None:
    """A turn of one question and one answer, each of so many words and some."""
    session.ask(f"question {number} " + "word " * words)
    session.record(says(f"answer {number} " + "word " * words, name=f"msg_{number}"))


def work(session: Session, number: int, rounds: int = 1, words: int = 20) -> None:
    """Some rounds of a tool loop in the turn that is open."""
    for round_ in range(rounds):
        step = session.record(calls(f"c{number}_{round_}", name=f"msg_{number}_{round_}"))
        session.record(step.tool_calls[0].result("found " * words))


def long_session(nexus: Nexus, turns: int = 6, label: str = "s", words: int = 50) -> Session:
    """A session of some turns."""
    session = nexus.session(label, model="words")
    for number in range(turns):
        exchange(session, number, words)
    return session


def compactions(ledger: StoreLedger, label: str = "s") -> list[Step]:
    """The compactions of a session, oldest first."""
    return [step for step in steps_of(ledger, label) if step.kind == "compaction"]
