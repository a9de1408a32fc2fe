"""LangGraph's threads as sessions: its own conformance tests, its own graphs, and what Nexus shows of them."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from nexus_core import Nexus
from nexus_core.errors import LedgerError, SessionExistsError, TurnError, UsageError
from nexus_core.ledger.in_memory import MemoryLedger
from nexus_core.types.ledger import NewStep
from tests.conftest import ROOT, Cli
from tests.tables import count

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def world() -> ModuleType:
    """LangGraph, and graphs over a saver."""
    return import_module("tests.adapters.checkpoint_world")


@pytest.fixture
def nexus(work: Path, nexus_home: Path) -> Iterator[Nexus]:  # noqa: ARG001 - the home must be in place
    with Nexus(work) as opened:
        yield opened


@pytest.fixture
def saver(world: ModuleType, nexus: Nexus) -> Any:
    return world.NexusSaver(nexus)


def shown(nexus: Nexus, name: str = "t") -> list[str]:
    """The texts of the messages that Nexus would send."""
    messages = nexus.session(name).messages
    return [message.content or "".join(result.text for result in message.tool_results) for message in messages]


def texts(state: Any) -> list[str]:
    return [str(message.content) for message in state["messages"]]


def test_saver_passes_the_conformance_tests_of_langgraph(
    world: ModuleType, work: Path, nexus_home: Path, ledger_url: str
) -> None:
    assert nexus_home.is_dir()

    async def make() -> AsyncIterator[Any]:
        with Nexus(work, ledger=ledger_url) as nexus:
            yield world.NexusSaver(nexus)

    report = asyncio.run(world.validate(world.checkpointer_test(name="NexusSaver")(make)))

    assert {name: result.failures for name, result in report.results.items() if result.failures} == {}
    assert all(result.passed for result in report.results.values())
    count(sum(result.tests_passed for result in report.results.values()))


def test_thread_in_a_file_has_the_history_that_langgraph_keeps(world: ModuleType, nexus: Nexus) -> None:
    theirs = world.InMemorySaver()
    world.long_graph(theirs, 5).invoke(world.asks("Look."), world.thread())

    world.long_graph(world.NexusSaver(nexus), 5).invoke(world.asks("Look."), world.thread())

    config = world.thread()
    ours, kept = list(world.NexusSaver(nexus).list(config)), list(theirs.list(config))
    assert len(ours) == len(kept) > 5
    for one, other in zip(ours, kept, strict=True):
        assert one.checkpoint["channel_values"] == other.checkpoint["channel_values"]
        assert one.metadata == other.metadata
        assert [write[1:] for write in one.pending_writes] == [write[1:] for write in other.pending_writes]
        assert (one.parent_config is None) == (other.parent_config is None)


def test_thread_continues_in_another_process_and_commands_read_it(
    world: ModuleType, work: Path, cli: Cli, nexus_home: Path
) -> None:
    assert nexus_home.is_dir()
    with Nexus(work) as nexus:
        world.tool_agent(world.NexusSaver(nexus)).invoke(world.asks("Where is the zebra?"), world.thread("hunt"))
    with Nexus(work) as nexus:
        state = world.tool_agent(world.NexusSaver(nexus), 0).invoke(world.asks("And now?"), world.thread("hunt"))

    sessions = json.loads(cli("session", "list", "--json").out)["sessions"]
    found = cli("session", "search", "zebra").out
    printed = cli("session", "show", "hunt", "--limit", "all").out

    assert len(state["messages"]) == 10
    assert [(each["label"], each["turns"]) for each in sessions] == [("hunt", 2)]
    assert "Where is the zebra?" in found
    assert printed.index("Where is the zebra?") < printed.index("-> look (1a)") < printed.index("And now?")
    assert "revert" not in printed
    assert "Where is the zebra?" in cli("session", "export", "hunt", "--format", "markdown").out
    assert "state" in cli("session", "tree").out
    assert cli("explain", "the zebra", "--session", "hunt").code == 0
    assert cli("ledger", "verify").code == 0


def test_compaction_shortens_what_the_session_sends_and_leaves_the_thread(
    world: ModuleType, nexus: Nexus, saver: Any
) -> None:
    states = [
        world.tool_agent(saver, 1).invoke(world.asks(f"Question {number}?"), world.thread()) for number in range(6)
    ]

    report = nexus.session("t").compact()
    after = world.tool_agent(saver, 0).invoke(world.asks("Last?"), world.thread())

    assert report is not None
    assert texts(after)[: len(texts(states[-1]))] == texts(states[-1])
    assert shown(nexus)[0].startswith("[Previous conversation summary]")
    assert shown(nexus)[-2:] == ["Last?", "Nothing."]
    assert len(shown(nexus)) < len(texts(after))


def test_history_that_is_rewritten_behind_a_compaction_is_shown_as_it_is(
    world: ModuleType, nexus: Nexus, saver: Any
) -> None:
    graph = world.tool_agent(saver, 1)
    for number in range(6):
        graph.invoke(world.asks(f"Question {number}?"), world.thread())
    oldest = [each for each in graph.get_state_history(world.thread()) if each.values][-2]
    assert nexus.session("t").compact() is not None

    state = world.tool_agent(saver, 0).invoke(world.asks("Anew?"), oldest.config)

    assert shown(nexus) == texts(state)


def test_session_shows_the_branch_that_was_written_last(world: ModuleType, nexus: Nexus, saver: Any) -> None:
    graph = world.long_graph(saver, 6, "x")
    graph.invoke(world.asks("Look."), world.thread())
    history = graph.get_state_history(world.thread())
    older = next(each for each in history if len(each.values.get("messages", ())) == 3)

    state = graph.invoke(world.asks("Elsewhere?"), older.config)

    assert texts(state)[2:4] == ["2: x", "Elsewhere?"]
    assert shown(nexus) == texts(state)
    assert len([*graph.get_state_history(world.thread())]) > 10


@pytest.mark.parametrize("asked", ["change", "remove", "clear"])
def test_session_shows_changed_and_removed_messages_as_the_state_has_them(
    world: ModuleType, nexus: Nexus, saver: Any, asked: str
) -> None:
    graph = world.editing_graph(saver)
    graph.invoke(world.asks("Hello."), world.thread())

    state = graph.invoke(world.asks(asked), world.thread())

    assert shown(nexus) == texts(state)
    assert texts(world.editing_graph(world.NexusSaver(nexus)).get_state(world.thread()).values) == texts(state)


def test_interrupted_graph_resumes_with_another_saver(world: ModuleType, work: Path, nexus_home: Path) -> None:
    assert nexus_home.is_dir()
    with Nexus(work) as nexus:
        waiting = world.approval_graph(world.NexusSaver(nexus)).invoke(world.asks("Clean up."), world.thread())
    with Nexus(work) as nexus:
        state = world.approval_graph(world.NexusSaver(nexus)).invoke(world.Command(resume="yes"), world.thread())

    assert waiting["__interrupt__"][0].value == "Delete it?"
    assert state["approved"] == "yes"


def test_subgraph_keeps_its_own_messages_between_runs(world: ModuleType, nexus: Nexus, saver: Any) -> None:
    theirs = world.InMemorySaver()
    for each in (theirs, saver):
        world.nested_graph(each).invoke(world.asks("One?"), world.thread())
        world.nested_graph(each).invoke(world.asks("Two?"), world.thread())
    state = world.nested_graph(saver).get_state(world.thread()).values

    spaces = {each.config["configurable"]["checkpoint_ns"] for each in saver.list(world.thread())}
    assert texts(state) == texts(world.nested_graph(theirs).get_state(world.thread()).values)
    assert spaces == {each.config["configurable"]["checkpoint_ns"] for each in theirs.list(world.thread())}
    assert len(spaces) == 2
    assert shown(nexus) == texts(state)


def test_async_graph_is_stored_as_a_blocking_one(world: ModuleType, nexus: Nexus, saver: Any) -> None:
    async def run() -> Any:
        graph = world.tool_agent(saver)
        state = await graph.ainvoke(world.asks("Look."), world.thread())
        return state, [each async for each in graph.aget_state_history(world.thread())]

    state, history = asyncio.run(run())

    assert shown(nexus) == texts(state)
    assert len(history) == 7


def test_program_killed_between_put_and_put_writes_loses_nothing_acknowledged(
    world: ModuleType, work: Path, nexus_home: Path
) -> None:
    assert nexus_home.is_dir()
    url = f"sqlite:///{work}/ledger.db"
    program = [sys.executable, "-m", "tests.adapters.checkpoint_program", str(work), url]

    outcome = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=False)

    acknowledged = [line.split() for line in outcome.stdout.splitlines()]
    assert (outcome.returncode, len(acknowledged)) == (-9, 5)
    with Nexus(work, ledger=url) as nexus:
        stored = {each.checkpoint["id"]: each for each in world.NexusSaver(nexus).list(world.thread())}
    assert [name for kind, name in acknowledged if kind == "put"] == sorted(stored)
    assert {name for kind, name in acknowledged if kind == "written"} == {
        name for name, each in stored.items() if each.pending_writes
    }


def test_writers_of_one_thread_lose_nothing_to_each_other(world: ModuleType, work: Path, nexus_home: Path) -> None:
    assert nexus_home.is_dir()
    url = f"sqlite:///{work}/ledger.db"

    def write(writer: int) -> list[str]:
        with Nexus(work, ledger=url) as nexus:
            saver = world.NexusSaver(nexus)
            messages = [world.HumanMessage(f"{writer} {number}", id=f"{writer} {number}") for number in range(5)]
            configs = [world.save(saver, "t", {"messages": messages[: end + 1]}) for end in range(5)]
        return [config["configurable"]["checkpoint_id"] for config in configs]

    with Nexus(work, ledger=url):  # the file is there
        pass
    with ThreadPoolExecutor(3) as pool:
        written = [*pool.map(write, range(3))]

    with Nexus(work, ledger=url) as nexus:
        stored = {each.checkpoint["id"]: each for each in world.NexusSaver(nexus).list(world.thread())}
    for writer, names in enumerate(written):
        for end, name in enumerate(names):
            assert texts(stored[name].checkpoint["channel_values"]) == [
                f"{writer} {number}" for number in range(end + 1)
            ]


def test_thread_grows_with_its_messages_and_not_with_their_square(
    world: ModuleType, work: Path, nexus_home: Path
) -> None:
    assert nexus_home.is_dir()
    sizes = []
    for supersteps in (20, 40):
        ledger = MemoryLedger()
        with Nexus(work, ledger=ledger) as nexus:
            world.long_graph(world.NexusSaver(nexus), supersteps).invoke(world.asks("Look."), world.thread())
            steps = [*ledger.steps()]
            sizes.append(sum(len(json.dumps(dict(step.data))) for step in steps))
            messages = sum(len(step.messages) for step in steps)
        assert messages == supersteps + 1

    assert sizes[1] < 2.1 * sizes[0]


@pytest.mark.parametrize(
    "value",
    [
        [{"a": 1}, {"a": 1}],
        ["x" * 100, "y" * 100, "x" * 100],
        [],
        [1, 2.5, None, "é\ud800\x00", b"\x00\xff"],
        {"nested": [{"deep": (1, 2)}], 3: "number"},
        {1, 2},
        b"bytes",
        float("inf"),
        None,
    ],
)
def test_values_of_channels_come_back_as_with_langgraphs_own_saver(
    world: ModuleType, saver: Any, nexus: Nexus, value: Any
) -> None:
    theirs = world.InMemorySaver()
    if isinstance(value, list) and any(isinstance(each, str) and "\ud800" in each for each in value):
        value = [each for each in value if not isinstance(each, str)]  # msgpack has no halves of characters

    config, other = (world.save(each, "t", {"data": value}) for each in (saver, theirs))

    read = world.NexusSaver(nexus).get_tuple(config).checkpoint["channel_values"]
    assert read == theirs.get_tuple(other).checkpoint["channel_values"]


def test_session_of_another_program_is_not_taken_for_a_thread(world: ModuleType, nexus: Nexus, saver: Any) -> None:
    nexus.session("t").ask("Hello.")

    with pytest.raises(SessionExistsError, match="session 't' was not created by langgraph"):
        world.tool_agent(saver).invoke(world.asks("Look."), world.thread())
    with pytest.raises(SessionExistsError):
        saver.delete_thread("t")
    assert nexus.ledger.session("t") is not None


def test_archived_thread_and_one_with_an_open_turn_take_no_checkpoints(
    world: ModuleType, nexus: Nexus, saver: Any
) -> None:
    for name in ("archived", "open"):
        world.tool_agent(saver, 0).invoke(world.asks("Look."), world.thread(name))
    nexus.ledger.update("archived", status="archived")
    nexus.session("open").ask("Hello.")

    for name in ("archived", "open"):
        with pytest.raises(TurnError, match=name):
            world.save(saver, name, {})


def test_turns_of_nexus_stay_in_a_thread_that_continues(world: ModuleType, nexus: Nexus, saver: Any) -> None:
    graph = world.editing_graph(saver)
    graph.invoke(world.asks("Hello."), world.thread())
    session = nexus.session("t")
    session.ask("And you?")
    session.record({"role": "assistant", "content": "Fine."})

    graph.invoke(world.asks("Go on."), world.thread())
    between = shown(nexus)
    state = graph.invoke(world.asks("remove"), world.thread())

    assert "Go on." in between
    assert any("And you?" in text for text in between)
    assert shown(nexus) == texts(state)


@pytest.mark.parametrize("name", ["", " ", "a\ud800", "x" * 2000])
def test_thread_id_that_cannot_be_a_name_is_refused(world: ModuleType, saver: Any, name: str) -> None:
    with pytest.raises(UsageError):
        world.save(saver, name, {})


def test_namespace_with_surrogates_is_refused(nexus: Nexus, saver: Any) -> None:
    config = {"configurable": {"thread_id": "t", "checkpoint_ns": "a\ud800", "checkpoint_id": "1"}}

    for use in (saver.get_tuple, lambda given: saver.put_writes(given, [("a", 1)], "task")):
        with pytest.raises(UsageError, match=r"the checkpoint_ns 'a\\ud800' cannot be stored as it is"):
            use(config)
    assert nexus.ledger.session("t") is None


def test_config_without_a_thread_is_refused(world: ModuleType, saver: Any) -> None:
    with pytest.raises(UsageError, match="no thread_id"):
        saver.get_tuple({"configurable": {}})
    with pytest.raises(UsageError, match="names no checkpoint"):
        saver.put_writes(world.thread(), [("a", 1)], "task")


def test_nothing_is_unpickled(world: ModuleType, nexus: Nexus, saver: Any) -> None:
    with pytest.raises(UsageError, match="would unpickle"):
        world.NexusSaver(nexus, serde=world.JsonPlusSerializer(pickle_fallback=True))
    config = world.save(saver, "t", {"data": "harmless"})
    record = nexus.ledger.session("t")
    assert record is not None
    assert record.tip is not None
    step = nexus.ledger.step(record.tip)
    assert step is not None
    data = json.loads(json.dumps(dict(step.data)).replace('["msgpack", "qGhhcm1sZXNz"]', '["pickle", "gASVAA=="]'))
    assert data != step.data
    nexus.ledger.append("t", NewStep(kind="state", closes=True, data=data), after=record.tip)

    with pytest.raises(LedgerError, match="cannot be read: Unknown serialization type: pickle"):
        saver.get_tuple(config)


def test_damaged_state_is_an_error_that_names_the_session(world: ModuleType, nexus: Nexus, saver: Any) -> None:
    world.save(saver, "t", {"data": "harmless"})
    record = nexus.ledger.session("t")
    assert record is not None
    step = NewStep(kind="state", closes=True, data={"state": {"put": {"ns": 5}}})
    nexus.ledger.append("t", step, after=record.tip)

    with pytest.raises(LedgerError, match="the state in session 't' is damaged"):
        saver.get_tuple(world.thread())


def test_encrypted_thread_shows_no_messages(world: ModuleType, nexus: Nexus) -> None:
    class Reversed:
        def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
            return "reversed", plaintext[::-1]

        def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
            assert ciphername == "reversed"
            return ciphertext[::-1]

    serde = world.EncryptedSerializer(Reversed())
    with pytest.raises(UsageError, match="encrypts"):
        world.NexusSaver(nexus, serde=serde)
    hidden = world.NexusSaver(nexus, serde=serde, messages_channel="")

    config = world.save(hidden, "t", {"messages": [world.HumanMessage("Secret.")]})

    assert texts(hidden.get_tuple(config).checkpoint["channel_values"]) == ["Secret."]
    assert shown(nexus) == []


def test_model_and_usage_of_replies_are_recorded(world: ModuleType, nexus: Nexus, saver: Any) -> None:
    usage = {
        "input_tokens": 1000,
        "output_tokens": 20,
        "total_tokens": 1020,
        "input_token_details": {"cache_read": 900, "cache_creation": 50},
        "output_token_details": {"reasoning": 5},
    }
    reply = world.AIMessage("Hi.", usage_metadata=usage, response_metadata={"model_name": "gpt-4o"})

    world.save(saver, "t", {"messages": [world.HumanMessage("Hello."), reply]})

    used = nexus.session("t").usage
    assert (used.input_tokens, used.output_tokens, used.cached_input_tokens) == (1000, 20, 900)
    assert (used.cache_write_tokens, used.reasoning_tokens) == (50, 5)
    assert [step.payload.model for step in nexus.ledger.steps()] == ["gpt-4o"]


def test_saver_closes_a_nexus_of_its_own(
    world: ModuleType, work: Path, nexus_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert nexus_home.is_dir()
    monkeypatch.chdir(work)
    saver = world.NexusSaver()
    config = world.save(saver, "t", {"data": 1})
    saver.close()
    saver.close()

    again = world.NexusSaver()
    read = again.get_tuple(config)
    again.close()

    assert read.checkpoint["channel_values"] == {"data": 1}
