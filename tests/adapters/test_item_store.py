"""Items in a ledger: what is given comes back, what is taken back is not deleted."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_core import Nexus, hookimpl
from nexus_core.adapters.openai_agents import NexusSession, SessionItemStore
from nexus_core.cli.commands.session.overview import read_overview
from nexus_core.cli.commands.session.stats import StepSums
from nexus_core.errors import MessageError, SessionExistsError, TurnError
from nexus_core.host.manager import get_installed_host
from nexus_core.ledger.in_memory import MemoryLedger
from nexus_core.tokens.prices import PriceList
from nexus_core.types.ledger import NewStep, Step
from nexus_core.types.payloads import ExternalTurnPayload, SessionPayload
from nexus_core.types.settings import Settings
from tests.adapters.support import ITEMS, ODD, PICTURE, answered, brought, called, said
from tests.conftest import Cli

OpenItems = Callable[[str], SessionItemStore]


class CountingLedger(MemoryLedger):
    """Knows how many steps were read."""

    read = 0

    def thread(self, tip: str, *, first: str | None = None, limit: int | None = None) -> list[Step]:
        steps = super().thread(tip, first=first, limit=limit)
        self.read += len(steps)
        return steps


class SlowLedger(MemoryLedger):
    """Adds a step only when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.may_go_on = threading.Event(), threading.Event()

    def append(self, label: str, step: NewStep, *, after: str | None) -> Step:
        self.begun.set()
        assert self.may_go_on.wait(30)
        return super().append(label, step, after=after)


@pytest.fixture
def ledger() -> CountingLedger:
    return CountingLedger()


@pytest.fixture
def nexus(work: Path, ledger: CountingLedger, nexus_home: Path) -> Iterator[Nexus]:  # noqa: ARG001 - the home must be in place
    with Nexus(work, ledger=ledger) as opened:
        yield opened


@pytest.fixture
def items(nexus: Nexus) -> SessionItemStore:
    return SessionItemStore(nexus, "chat")


@pytest.mark.parametrize("item", ODD.values(), ids=ODD)
def test_an_item_of_any_kind_comes_back_from_the_file_as_it_was(
    item: dict[str, Any], work: Path, nexus_home: Path
) -> None:
    with Nexus(work) as nexus:
        SessionItemStore(nexus, "chat").add([said("Hello."), item])

    with Nexus(work) as nexus:
        kept = SessionItemStore(nexus, "chat").read()

    assert json.dumps(kept) == json.dumps([said("Hello."), item])
    assert (nexus_home / "ledger.db").is_file()


@pytest.mark.slow
@given(batches=st.lists(st.lists(ITEMS, min_size=1, max_size=4), max_size=4))
def test_whatever_is_given_comes_back_byte_for_byte(batches: list[list[Any]]) -> None:
    with Nexus(ledger=MemoryLedger(), layers=False, installed=False) as nexus:
        items = SessionItemStore(nexus, "chat")
        for batch in batches:
            items.add(batch)

        kept = items.read()

    assert json.dumps(kept) == json.dumps([item for batch in batches for item in batch])


@pytest.mark.slow
@given(
    changes=st.lists(st.sampled_from(["add", "add", "add three", "pop", "pop", "clear"]), max_size=25), data=st.data()
)
def test_it_is_a_list_whatever_is_done_to_it(changes: list[str], data: st.DataObject) -> None:
    with Nexus(ledger=MemoryLedger(), layers=False, installed=False) as nexus:
        items, wanted = SessionItemStore(nexus, "chat"), list[Any]()
        for number, change in enumerate(changes):
            if change == "pop":
                assert items.pop() == (wanted.pop() if wanted else None)
            elif change == "clear":
                items.clear()
                wanted.clear()
            else:
                new = [said(f"{number} {each}") for each in range(3 if change == "add three" else 1)]
                items.add(new)
                wanted += new
            limit = data.draw(st.integers(1, 8))
            assert items.read(limit) == wanted[-limit:]

        assert items.read() == wanted
        assert list(nexus.ledger.verify()) == []


def test_a_large_picture_is_stored_once_and_comes_back_equal(items: SessionItemStore, nexus: Nexus) -> None:
    shown = [said("Look."), brought("c", [{"type": "input_image", "image_url": PICTURE * 30}])]

    items.add(shown)

    (step,) = nexus.ledger.steps()
    assert isinstance(step.payload, ExternalTurnPayload)
    assert step.payload.items is None
    assert items.read() == shown


def test_a_large_item_that_messages_cannot_say_is_stored_as_it_is(items: SessionItemStore) -> None:
    odd = {"type": "function_call", "name": "look", "arguments": "x" * 100_000}

    items.add([odd])

    assert items.read() == [odd]


def test_a_limit_is_understood_as_by_the_sdk(items: SessionItemStore) -> None:
    items.add([said("a"), said("b"), said("c")])

    assert items.read(0) == []
    assert items.read(2) == [said("b"), said("c")]
    assert items.read(9) == items.read(-1) == items.read() == [said("a"), said("b"), said("c")]


def test_the_newest_items_of_a_long_session_are_found_at_its_end(
    items: SessionItemStore, ledger: CountingLedger
) -> None:
    for number in range(300):
        items.add([said(str(number))])
    for _ in range(3):
        items.pop()
    ledger.read = 0

    assert items.read(2) == [said("295"), said("296")]
    assert ledger.read < 20


def test_what_was_cleared_is_not_read_again(items: SessionItemStore, ledger: CountingLedger) -> None:
    for number in range(100):
        items.add([said(str(number))])
    items.clear()
    items.add([said("new")])
    ledger.read = 0

    assert items.read() == [said("new")]
    assert ledger.read < 5


def test_nothing_is_deleted(items: SessionItemStore, nexus: Nexus) -> None:
    items.add([said("Hello."), answered("Hi.")])

    items.pop()
    items.clear()

    steps = list(nexus.ledger.steps())
    assert [step.kind for step in steps] == ["turn", "revert", "compaction"]
    assert [message.content for message in steps[0].messages] == ["Hello.", "Hi."]


def test_what_was_taken_back_is_gone_for_everybody_who_reads_the_session(nexus: Nexus) -> None:
    session = NexusSession("chat", nexus=nexus)
    asyncio.run(session.add_items([said("Hello."), said("And then?")]))

    asyncio.run(session.pop_item())

    assert [message.content for message in nexus.session("chat").messages] == ["Hello."]


def test_what_was_taken_back_still_counts_in_list_and_stats(items: SessionItemStore, nexus: Nexus) -> None:
    items.add([said("Why does login fail?")])
    items.add([answered("It expires.")])
    items.add([said("And?")])
    everything = StepSums(PriceList(get_installed_host(), Settings()))
    for step in nexus.ledger.steps():
        everything.add(step)
    before = read_overview(nexus.ledger, nexus.ledger.sessions()[0])

    items.pop()
    items.clear()

    sums = StepSums(PriceList(get_installed_host(), Settings()))
    for step in nexus.ledger.steps():
        sums.add(step)
    after = read_overview(nexus.ledger, nexus.ledger.sessions()[0])
    assert (before.turns, after.turns, after.tokens) == (2, 2, before.tokens)
    assert (sums.turns, sums.messages, sums.tokens) == (everything.turns, everything.messages, everything.tokens)
    assert (sums.turns, sums.messages) == (2, 3)


def test_taking_from_nothing_writes_nothing(items: SessionItemStore, nexus: Nexus) -> None:
    assert items.pop() is None
    items.clear()

    assert nexus.ledger.sessions() == []
    items.add([said("a")])
    items.clear()
    items.clear()
    assert items.pop() is None
    assert len(list(nexus.ledger.steps())) == 2


def test_who_takes_back_a_clearing_has_the_items_again(items: SessionItemStore, ledger: CountingLedger) -> None:
    items.add([said("a")])
    items.clear()
    items.add([said("b")])
    record = ledger.session("chat")
    assert record is not None

    ledger.append("chat", NewStep(kind="revert", closes=True, data={"restores": None}), after=record.tip)

    assert items.read() == [said("a"), said("b")]
    assert items.read(2) == [said("a"), said("b")]


def test_a_summary_does_not_bring_back_what_was_cleared(items: SessionItemStore, ledger: CountingLedger) -> None:
    items.add([said("secret")])
    items.clear()
    items.add([said("b")])
    record = ledger.session("chat")
    assert record is not None

    ledger.append("chat", NewStep(kind="compaction", closes=True, data={"summary": "b was said"}), after=record.tip)

    assert items.read() == items.read(5) == [said("b")]


def test_nexus_reads_the_session_as_one_of_its_own(items: SessionItemStore, nexus: Nexus) -> None:
    items.add([said("What is here?")])
    items.add([called("c1"), brought("c1", "README.md")])
    items.add([answered("A README.")])

    session = nexus.session("chat", model="gpt-4o")
    context = session.ask("Read it.")

    assert [message.role for message in context.messages] == ["user", "assistant", "tool", "assistant", "user"]
    assert session.messages[2].tool_results[0].text == "README.md"
    (record,) = nexus.ledger.sessions()
    assert (record.label, record.payload.cwd) == ("chat", str(nexus.cwd))


def test_what_was_cleared_is_not_sent_by_nexus_either(items: SessionItemStore, nexus: Nexus) -> None:
    items.add([said("secret"), answered("secret")])
    items.clear()
    items.add([said("Hello."), answered("Hi.")])

    sent = nexus.session("chat", model="gpt-4o").ask("And?").messages

    assert [message.content for message in sent[:-1]] == ["Hello.", "Hi."]


def test_what_nexus_recorded_is_given_as_items(items: SessionItemStore, nexus: Nexus) -> None:
    session = nexus.session("chat", model="gpt-4o")
    session.ask("Hello.")
    session.record({"choices": [{"message": {"role": "assistant", "content": "Hi."}, "finish_reason": "stop"}]})

    items.add([said("And?")])
    start, *others = items.read()

    assert start["content"].startswith("[Session started: ")
    assert [(item["role"], item["content"]) for item in others] == [
        ("user", "Hello."),
        ("assistant", "Hi."),
        ("user", "And?"),
    ]


def test_tokens_are_counted_and_their_sum_goes_on(items: SessionItemStore, nexus: Nexus) -> None:
    items.add([said("Why does login fail?"), answered("It expires.")])
    items.pop()
    items.clear()
    items.add([said("And?")])

    steps = list(nexus.ledger.steps())
    assert steps[0].tokens > 8
    assert steps[-1].total == sum(step.tokens for step in steps)
    assert all(step.counter.startswith("tiktoken:") for step in steps)


def test_an_open_turn_is_not_closed_by_somebody_else(items: SessionItemStore, nexus: Nexus) -> None:
    nexus.session("chat", model="gpt-4o").ask("Hello.")

    with pytest.raises(TurnError, match=r"a turn is open in session 'chat'\n.*interrupt\(\) ends it"):
        items.add([said("And?")])


def test_session_of_another_framework_is_refused(items: SessionItemStore, nexus: Nexus) -> None:
    nexus.ledger.create("chat", data=SessionPayload(model="", framework="pydantic-ai").to_json())

    for use in (items.read, items.pop, items.clear, lambda: items.add([said("a")])):
        with pytest.raises(SessionExistsError, match="session 'chat' was created by pydantic-ai"):
            use()
    assert list(nexus.ledger.steps()) == []


def test_an_archived_session_takes_nothing(items: SessionItemStore, nexus: Nexus) -> None:
    items.add([said("a")])
    nexus.ledger.update("chat", status="archived")

    with pytest.raises(TurnError, match="'chat' is archived"):
        items.add([said("b")])
    with pytest.raises(TurnError, match="'chat' is archived"):
        items.pop()
    assert items.read() == [said("a")]


@pytest.mark.parametrize(("item", "where"), [("text", r"items\[1\]"), ({"x": {1, 2}}, r"items\[1\]\.x")])
def test_what_is_no_item_is_named_and_nothing_of_the_list_is_kept(
    item: object, where: str, items: SessionItemStore
) -> None:
    with pytest.raises(MessageError, match=where):
        items.add([said("a"), item])

    assert items.read() == []


def test_nothing_is_lost_where_many_write_at_once(items: SessionItemStore) -> None:
    def write(name: int) -> None:
        for number in range(10):
            items.add([said(f"{name} {number}"), said("again")])
            items.pop()

    threads = [threading.Thread(target=write, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(items.read()) == 40


def test_a_session_has_a_nexus_of_its_own_where_it_is_given_none(
    work: Path, nexus_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(work)

    async def converse() -> list[Any]:
        session = NexusSession("chat")
        await session.add_items([said("Hello.")])
        session.close()
        again = NexusSession("chat")
        await again.add_items([])
        kept = await again.get_items()
        again.close()
        again.close()
        return kept

    assert asyncio.run(converse()) == [said("Hello.")]
    assert (nexus_home / "ledger.db").is_file()


def test_a_nexus_that_was_given_stays_open(nexus: Nexus) -> None:
    NexusSession("chat", nexus=nexus).close()

    assert nexus.ledger.sessions() == []


def test_who_is_cancelled_while_something_is_kept_learns_it_when_it_is_kept(work: Path, nexus_home: Path) -> None:  # noqa: ARG001 - the home must be in place
    ledger = SlowLedger()

    async def cancel(session: NexusSession) -> None:
        adding = asyncio.create_task(session.add_items([said("Hello.")]))
        await asyncio.to_thread(ledger.begun.wait, 30)
        for _ in range(2):
            adding.cancel()
            await asyncio.sleep(0.01)
            assert not adding.done()
        ledger.may_go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await adding
        assert await session.get_items() == [said("Hello.")]

    with Nexus(work, ledger=ledger) as nexus:
        asyncio.run(cancel(NexusSession("chat", nexus=nexus)))


def test_the_loop_goes_on_while_something_is_kept(work: Path, nexus_home: Path) -> None:  # noqa: ARG001 - as above
    ledger = SlowLedger()

    async def converse(session: NexusSession) -> None:
        adding = asyncio.create_task(session.add_items([said("Hello.")]))
        await asyncio.to_thread(ledger.begun.wait, 30)
        assert not adding.done()  # the loop is free, and this is the proof of it
        ledger.may_go_on.set()
        await adding

    with Nexus(work, ledger=ledger) as nexus:
        asyncio.run(converse(NexusSession("chat", nexus=nexus)))


def test_adapters_need_no_framework_to_be_imported() -> None:
    program = (
        "import sys, nexus_core.adapters.openai_agents, nexus_core.adapters.langgraph;"
        "print(sorted({'agents', 'openai', 'langchain', 'langchain_core', 'langgraph'} & set(sys.modules)))"
    )

    outcome = subprocess.run([sys.executable, "-c", program], text=True, capture_output=True, check=True)

    assert outcome.stdout == "[]\n"


def test_what_is_added_in_pieces_is_one_turn_for_whoever_counts_and_shows(
    work: Path, nexus_home: Path, cli: Cli
) -> None:
    with Nexus(work, home=nexus_home) as nexus:
        items = SessionItemStore(nexus, "chat")
        items.add([said("One?")])
        items.add([called("t1"), brought("t1"), answered("One.")])
        items.add([said("Two?"), answered("Two.", "msg_2")])
        items.add([said("Three?")])
        items.add([answered("Three.", "msg_3")])

    listed = json.loads(cli("session", "list", "--json").out)["sessions"][0]
    added_up = json.loads(cli("session", "stats", "chat", "--json").out)
    shown = json.loads(cli("session", "show", "chat", "-n", "1", "--json").out)["turns"]
    drawn = cli("session", "tree", "chat").out.splitlines()

    assert (listed["turns"], added_up["turns"], added_up["models"][0]["replies"]) == (3, 3, 4)
    assert [len(turn["steps"]) for turn in shown] == [2]
    assert drawn[0] == "3 turns, 1 branch, 1 session"
    assert cli("session", "fork", "chat", "again", "--at", drawn[1].split()[1]).code == 0
    assert "One." in cli("session", "show", "again").out


def test_whoever_watches_hears_of_items_that_are_added(work: Path, nexus_home: Path) -> None:  # noqa: ARG001 - the home must be in place
    heard: list[tuple[str, str, int]] = []

    class Watcher:
        @hookimpl
        def nexus_step_recorded(self, step: Step, session: str) -> None:
            heard.append((session, step.kind, len(step.messages)))

    with Nexus(work, ledger="memory:", plugins=[Watcher()]) as nexus:
        SessionItemStore(nexus, "chat").add([said("Hello."), said("Are you there?")])

    assert heard == [("chat", "turn", 2)]
