"""What a session and what it sends look like to somebody who prints them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from nexus_core.errors import LedgerError
from nexus_core.ledger.in_memory import MemoryLedger
from nexus_core.ledger.ledger import StoreLedger
from nexus_core.types.ledger import SessionRecord
from tests.session.conftest import OpenNexus, OpenSession
from tests.session.support import add_turns, says

pytestmark = pytest.mark.usefixtures("no_session_start")


class Broken(MemoryLedger):
    """Cannot be read from some moment on."""

    is_broken = False

    def session(self, label: str) -> SessionRecord | None:
        if self.is_broken:
            raise LedgerError("the disk is gone")
        return super().session(label)


def test_a_session_shows_its_name_its_model_and_its_turns(open_session: OpenSession) -> None:
    session = open_session("bakery")
    shown = [repr(session)]
    for number in range(2):
        session.ask("Why?")
        shown.append(repr(session))
        session.record(says("So.", name=f"msg_{number}"))

    assert shown == [
        "Session('bakery', model='claude-sonnet-4')",
        "Session('bakery', model='claude-sonnet-4', 1 turn)",
        "Session('bakery', model='claude-sonnet-4', 2 turns)",
    ]
    assert repr(session) == shown[-1]


def test_the_awaited_session_shows_the_same(open_nexus: OpenNexus) -> None:
    session = open_nexus().async_session("bakery", model="gpt-4o")
    asyncio.run(session.ask("Why?"))

    assert repr(session) == "AsyncSession('bakery', model='gpt-4o', 1 turn)"


def test_a_session_that_goes_on_shows_what_is_kept_of_it(open_session: OpenSession, open_nexus: OpenNexus) -> None:
    open_session("bakery").ask("Why?")
    session = open_nexus().session("bakery")

    assert session.is_open
    assert repr(session) == "Session('bakery', model='claude-sonnet-4', 1 turn)"


def test_showing_a_session_opens_and_reads_nothing(open_nexus: OpenNexus, nexus_home: Path) -> None:
    ledger = Broken()
    session = open_nexus(ledger=ledger).session("bakery", model="gpt-4o")
    session.ask("Why?")
    ledger.is_broken = True

    assert repr(session) == "Session('bakery', model='gpt-4o', 1 turn)"
    with pytest.raises(LedgerError):
        assert session.is_open
    assert repr(open_nexus(ledger=None).session("other")) == "Session('other')"
    assert not (nexus_home / "ledger.db").exists()


def test_what_is_sent_shows_how_much_it_is_and_for_whom(open_session: OpenSession) -> None:
    context = open_session().ask("Why is the sky blue?")

    taken, available = context.token_budget.total, context.token_budget.available
    assert repr(context) == f"AssembledContext(1 message, {taken:,} of {available:,} tokens, model 'claude-sonnet-4')"
    assert available > 100_000


def test_what_was_said_is_there_in_its_own_words_beside_what_is_sent(open_session: OpenSession) -> None:
    session = open_session()
    for number, words in enumerate(("Why?", "And here?")):
        session.ask(words, timezone="Europe/Paris")
        session.record(says("So.", name=f"msg_{number}"))

    assert [message.content for message in session.original_messages] == ["Why?", "So.", "And here?", "So."]
    assert [message.content.startswith("Current time: ") for message in session.messages] == [True, False, True, False]


def test_what_was_just_said_and_what_was_said_elsewhere_are_there_too(
    open_session: OpenSession, ledger: StoreLedger
) -> None:
    add_turns(ledger, "s", "Old?")
    session = open_session()
    session.ask("Why?")

    assert [message.content for message in session.original_messages] == ["Old?", "re Old?", "Why?"]
    assert [message.content for message in open_session("nobody").original_messages] == []


def test_the_awaited_session_gives_what_was_said_too(open_nexus: OpenNexus) -> None:
    async def said() -> list[str]:
        session = open_nexus().async_session("s", model="gpt-4o")
        await session.ask("Why?")
        return [message.content for message in await session.original_messages]

    assert asyncio.run(said()) == ["Why?"]
