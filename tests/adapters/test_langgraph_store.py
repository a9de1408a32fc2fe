"""Items of LangGraph in a ledger, next to LangGraph's own store in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nexus_core import Nexus
from nexus_core.adapters.framework_sessions import build_state_step
from nexus_core.errors import SessionExistsError, UsageError
from nexus_core.ledger.in_memory import MemoryLedger
from tests.effort import examples

pytestmark = pytest.mark.slow

NAMES = st.sampled_from(["a", "b"])
SPACES = st.tuples(NAMES) | st.tuples(NAMES, NAMES)
VALUES = st.dictionaries(NAMES, st.integers(0, 3) | st.text(max_size=3) | st.none(), max_size=2)
CHANGES = st.lists(st.tuples(SPACES, NAMES, VALUES | st.none()), max_size=4)


@pytest.fixture(scope="module")
def world() -> SimpleNamespace:
    """LangGraph's store in memory, and ours."""
    base, ours = import_module("langgraph.store.base"), import_module("nexus_core.adapters.langgraph_store")
    memory: ModuleType = import_module("langgraph.store.memory")
    return SimpleNamespace(
        Put=base.PutOp,
        Search=base.SearchOp,
        List=base.ListNamespacesOp,
        Theirs=memory.InMemoryStore,
        Ours=ours.NexusStore,
    )


@pytest.fixture
def nexus(work: Path, nexus_home: Path) -> Iterator[Nexus]:  # noqa: ARG001 - the home must be in place
    with Nexus(work) as opened:
        yield opened


def embed(texts: list[str]) -> list[list[float]]:
    """Vectors of letters: similar texts share letters."""
    return [[float(text.count(letter)) for letter in "aeioz"] for text in texts]


def list_items(world: SimpleNamespace, store: Any) -> list[Any]:
    """Everything in a store but times."""
    everything, some, spaces = store.batch(
        [world.Search((), limit=100), world.Search(("a",), filter={"a": 1}), world.List(limit=100)]
    )
    filled = {space for space in spaces if store.search(space, limit=1)}
    return [sorted((each.namespace, each.key, repr(each.value)) for each in found) for found in (everything, some)] + [
        sorted(filled)
    ]


@settings(deadline=None, max_examples=examples(8))
@given(batches=st.lists(CHANGES, max_size=4))
def test_any_changes_leave_the_items_that_langgraphs_own_store_has(
    world: SimpleNamespace, tmp_path_factory: pytest.TempPathFactory, batches: list[Any]
) -> None:
    ledger, theirs = MemoryLedger(), world.Theirs()
    with Nexus(tmp_path_factory.getbasetemp(), home=tmp_path_factory.getbasetemp(), ledger=ledger) as nexus:
        ours = world.Ours(nexus)
        for changes in batches:
            puts = [world.Put(space, key, value) for space, key, value in changes]
            assert ours.batch(puts) == theirs.batch(puts)

        assert list_items(world, ours) == list_items(world, theirs)
        assert list_items(world, world.Ours(nexus)) == list_items(world, theirs)


def test_items_and_their_times_are_the_same_in_another_process(
    world: SimpleNamespace, work: Path, nexus_home: Path, ledger_url: str
) -> None:
    assert nexus_home.is_dir()
    value = {"text": "é\ud800\x00", "number": 1e300, "inf": float("inf"), "list": [None, True, {"deep": []}]}
    with Nexus(work, ledger=ledger_url) as nexus:
        store = world.Ours(nexus)
        store.put(("users", "1"), "prefs", {"theme": "light"})
        first = store.get(("users", "1"), "prefs")
        store.put(("users", "1"), "prefs", value)
        store.put(("users", "2"), "gone", {"a": 1})
        store.delete(("users", "2"), "gone")
        kept = store.get(("users", "1"), "prefs")
    with Nexus(work, ledger=ledger_url) as nexus:
        again = world.Ours(nexus).get(("users", "1"), "prefs")
        gone = world.Ours(nexus).get(("users", "2"), "gone")

    assert (again.value, again.created_at, again.updated_at) == (value, kept.created_at, kept.updated_at)
    assert again.created_at == first.created_at
    assert gone is None


def test_two_programs_see_each_others_items(
    world: SimpleNamespace, work: Path, nexus_home: Path, ledger_url: str
) -> None:
    assert nexus_home.is_dir()
    with Nexus(work, ledger=ledger_url) as one, Nexus(work, ledger=ledger_url) as other:
        ours, theirs = world.Ours(one), world.Ours(other)
        for number in range(3):
            ours.put(("a",), f"ours {number}", {"n": number})
            theirs.put(("a",), f"theirs {number}", {"n": number})

        assert len(ours.search(("a",))) == len(theirs.search(("a",))) == 6


def test_text_is_embedded_once_however_often_the_store_is_opened(world: SimpleNamespace, nexus: Nexus) -> None:
    embedded: list[str] = []

    def counting(texts: list[str]) -> list[list[float]]:
        embedded.extend(texts)
        return embed(texts)

    index = {"dims": 5, "embed": counting, "fields": ["text"]}
    store, theirs = world.Ours(nexus, index=index), world.Theirs(index={**index, "embed": embed})
    for each in (store, theirs):
        each.put(("docs",), "zoo", {"text": "zebra zoo"})
        each.put(("docs",), "sea", {"text": "ocean sea"})
        each.put(("docs",), "none", {"text": "pizzazz"}, index=False)
    again = world.Ours(nexus, index=index)
    embedded_before = list(embedded)

    found = again.search(("docs",), query="zzz")

    assert embedded_before == ["zebra zoo", "ocean sea"]
    assert embedded == ["zebra zoo", "ocean sea", "zzz"]
    assert [(item.key, item.score) for item in found] == [
        (item.key, item.score) for item in theirs.search(("docs",), query="zzz")
    ]
    assert found[0].key == "zoo"


def test_async_store_embeds_with_an_async_function(world: SimpleNamespace, nexus: Nexus) -> None:
    async def aembed(texts: list[str]) -> list[list[float]]:
        return embed(texts)

    async def run() -> Any:
        store = world.Ours(nexus, index={"dims": 5, "embed": aembed, "fields": ["text"]})
        await store.aput(("docs",), "zoo", {"text": "zebra zoo"})
        await store.aput(("docs",), "sea", {"text": "ocean sea"})
        return await store.asearch(("docs",), query="sea")

    assert [item.key for item in asyncio.run(run())] == ["sea", "zoo"]


def test_value_that_is_not_json_is_refused_and_nothing_is_stored(world: SimpleNamespace, nexus: Nexus) -> None:
    store = world.Ours(nexus)

    with pytest.raises(UsageError, match="the value of 'k' is not JSON"):
        store.batch([world.Put(("a",), "other", {}), world.Put(("a",), "k", {"x": object()})])

    assert store.search(()) == []
    assert nexus.ledger.session("langgraph-store") is None


@pytest.mark.parametrize("value", [[1], "text", 7])
def test_value_that_is_not_a_dict_is_refused_and_the_store_stays_readable(
    world: SimpleNamespace, nexus: Nexus, value: object
) -> None:
    store = world.Ours(nexus)
    store.put(("a",), "k", {"n": 1})

    with pytest.raises(UsageError, match="the value of 'k' is not a dict"):
        store.put(("a",), "k", value)

    assert store.get(("a",), "k").value == {"n": 1}
    assert world.Ours(nexus).get(("a",), "k").value == {"n": 1}


def test_store_with_a_value_that_an_older_version_took_opens_without_it(world: SimpleNamespace, nexus: Nexus) -> None:
    world.Ours(nexus).put(("a",), "k", {"n": 1})
    record = nexus.ledger.session("langgraph-store")
    assert record is not None
    step = build_state_step({"puts": [[["a"], "bad", "[1]", None], [["a"], "good", '{"n": 2}', None]]})
    nexus.ledger.append("langgraph-store", step, after=record.tip)

    items = world.Ours(nexus).search(("a",))

    assert sorted(item.key for item in items) == ["good", "k"]


@pytest.mark.parametrize(("namespace", "key"), [(("a\ud800",), "k"), (("a",), "k\udfff"), (("a",), "\ud83d\ude00")])
def test_key_or_namespace_with_surrogates_is_refused_and_nothing_is_stored(
    world: SimpleNamespace, nexus: Nexus, namespace: tuple[str, ...], key: str
) -> None:
    with pytest.raises(UsageError, match="cannot be stored as it is"):
        world.Ours(nexus).put(namespace, key, {"n": 1})

    assert nexus.ledger.session("langgraph-store") is None


def test_name_of_another_session_is_refused(world: SimpleNamespace, nexus: Nexus) -> None:
    nexus.session("chat").ask("Hello.")

    with pytest.raises(SessionExistsError, match="'chat' was not created by langgraph-store"):
        world.Ours(nexus, name="chat").put(("a",), "k", {})


def test_store_without_a_nexus_closes_its_own(
    world: SimpleNamespace, work: Path, nexus_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert nexus_home.is_dir()
    monkeypatch.chdir(work)
    store = world.Ours()
    store.put(("a",), "k", {"n": 1})
    store.close()

    again = world.Ours()
    read = again.get(("a",), "k")
    again.close()

    assert read.value == {"n": 1}
