"""A process that talks for long holds what its window needs, not what was said since it began."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path

import pytest

from nexus_core import AgentResult, Nexus, hookimpl
from nexus_core.history.truncation import HistoryItem
from nexus_core.ledger.codec import StoredStep
from nexus_core.plugin import TextCounter
from nexus_core.testing import write_files
from nexus_core.thread.cache import STEPS_BETWEEN_TRIMS
from nexus_core.types.messages import Message
from nexus_core.types.prompt import Placement
from tests.session.conftest import OpenNexus
from tests.session.support import says

pytestmark = pytest.mark.slow

MODEL = "few-words"
KEPT = (StoredStep, HistoryItem, Message, Placement)
"""What a session makes of each turn."""


class WordCounter(TextCounter):
    name, exact = "words", True

    def count(self, text: str) -> int:
        return len(text.split())

    @hookimpl
    def nexus_token_counter(self, model: str) -> WordCounter | None:
        return self if model == MODEL else None


@pytest.fixture
def nexus(open_nexus: OpenNexus, nexus_home: Path) -> Nexus:
    write_files(nexus_home, {"config.json": f'{{"models": {{"{MODEL}": {{"window": 1500}}}}}}'})
    return open_nexus(installed=False, plugins=[WordCounter()])


def take_turns(nexus: Nexus, label: str, numbers: range) -> list[str]:
    """Take turns; return the ids of the replies."""
    session = nexus.session(label, model=MODEL)
    ids = []
    for number in numbers:
        assert session.ask(f"question {number} " + "word " * 20).placements
        ids.append(session.record(says(f"answer {number} " + "word " * 20, name=f"msg_{number}")).id)
    return ids


def whole_turn(number: int) -> list[Message]:
    return [Message("user", f"question {number}"), Message("assistant", "answer")]


def count_kept() -> int:
    gc.collect()
    return sum(type(each) in KEPT for each in gc.get_objects())


@pytest.mark.parametrize("settings", ["{}", '{"compaction": {"enabled": false}}'])
def test_a_long_session_holds_no_more_than_its_window_needs(nexus: Nexus, settings: str) -> None:
    write_files(nexus.cwd, {".nexus3/config.json": settings})
    take_turns(nexus, "s", range(150))
    early = count_kept()
    take_turns(nexus, "s", range(150, 350))

    assert count_kept() < early * 1.2


def test_an_awaited_session_holds_no_more_than_its_window_needs(nexus: Nexus) -> None:
    async def await_turns(numbers: range) -> None:
        session = nexus.async_session("s", model=MODEL)
        for number in numbers:
            await session.ask(f"question {number} " + "word " * 20)
            await session.record(says(f"answer {number} " + "word " * 20, name=f"msg_{number}"))

    asyncio.run(await_turns(range(150)))
    early = count_kept()
    asyncio.run(await_turns(range(150, 350)))

    assert count_kept() < early * 1.2


def test_a_nexus_holds_the_steps_of_the_sessions_used_last(nexus: Nexus) -> None:
    for number in range(20):
        take_turns(nexus, f"s{number}", range(4))
    early = count_kept()
    for number in range(20, 50):
        take_turns(nexus, f"s{number}", range(4))

    assert count_kept() < early * 1.1


def test_recording_whole_turns_without_asking_holds_few_of_them(nexus: Nexus) -> None:
    session = nexus.session("s", model=MODEL)
    for number in range(150):
        session.record(AgentResult(messages=whole_turn(number)))
    early = count_kept()
    for number in range(150, 150 + 2 * STEPS_BETWEEN_TRIMS):
        session.record(AgentResult(messages=whole_turn(number)))

    assert count_kept() < early * 1.2


def test_what_a_session_no_longer_holds_is_read_from_the_ledger(nexus: Nexus) -> None:
    write_files(nexus.cwd, {".nexus3/config.json": '{"compaction": {"enabled": false}}'})
    session = nexus.session("s", model=MODEL)
    first = session.ask("question 0")
    replies = [session.record(says("answer 0", name="msg_0")).id, *take_turns(nexus, "s", range(1, 120))]

    assert session.replay(replies[0]).messages == first.messages
    assert [message.content for message in session.fork("early", at=replies[1]).messages][1:3][-1] == "answer 0"
    assert len(session.messages) == 241  # the start, then a question and an answer for each turn
    assert session.messages[2].content == "answer 0"
    assert session.usage.input_tokens > 0
    assert nexus.session("s").preview("and now?").messages[-1].content.endswith("and now?")
