"""Queries over all sessions give what reading every session and every step gives, however few statements they take."""

from __future__ import annotations

import pickle
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nexus_core.cli.commands.session.overview import DamagedSession
from nexus_core.cli.commands.session.search import find_newest_matches
from nexus_core.cli.commands.session.stats import StepSums
from nexus_core.cli.commands.session.tree import (
    find_trees,
    group_labels_by_tip,
    read_branch_lines,
    read_branches,
    select_with_workers,
)
from nexus_core.errors import LedgerError
from nexus_core.host.manager import get_installed_host
from nexus_core.ledger import queries, search
from nexus_core.ledger.in_memory import MemoryLedger
from nexus_core.ledger.ledger import StoreLedger
from nexus_core.ledger.queries import (
    count_sessions,
    count_steps,
    find_former_names,
    find_newest_sessions,
    find_sessions_to_search,
)
from nexus_core.ledger.store import QueryableStore
from nexus_core.thread.state import add_usages, get_step_usage
from nexus_core.tokens.prices import PriceList
from nexus_core.types.ledger import NewStep
from nexus_core.types.messages import Message, Text, ToolCall, ToolResult
from nexus_core.types.settings import Settings
from nexus_plugins.ledger import _rows
from nexus_plugins.ledger._rows import SnapshotRows, SqlRows
from nexus_plugins.ledger.postgres.store import PostgresStore
from nexus_plugins.ledger.sqlite.store import SqliteStore
from tests.effort import examples
from tests.ledger.backends import said
from tests.ledger.test_properties import LABELS, NUMBERS, OPERATIONS, WORDS, Player
from tests.ledger.test_verify import tamper

DIRECTORIES = ("/a", "/a b", 'say "red"')
USAGES = st.none() | st.dictionaries(st.sampled_from(["input_tokens", "output_tokens", "cached_input_tokens"]), NUMBERS)
MORE_OPERATIONS = st.one_of(
    OPERATIONS,
    st.tuples(st.just("archive"), LABELS),
    st.tuples(st.just("work_in"), LABELS, st.sampled_from(DIRECTORIES)),
    st.tuples(st.just("employ"), LABELS, LABELS),
    st.tuples(st.just("seal"), LABELS, WORDS),
    st.tuples(st.just("delete"), LABELS),
    st.tuples(st.just("answer"), LABELS, st.sampled_from(["m", "n", None]), USAGES),
)


class QueriedPlayer(Player):
    """Does more to sessions."""

    def archive(self, label: str) -> object:
        return self.ledger.update(label, status="archived")

    def work_in(self, label: str, directory: str) -> object:
        return self.ledger.update(label, data={"cwd": directory, "other": DIRECTORIES[0]})

    def employ(self, label: str, maker: str) -> object:
        return self.ledger.update(label, data={"parent": maker})

    def seal(self, label: str, word: str) -> object:
        return self.append(label, NewStep(kind="sealed", messages=(Message("user", f"{word}, as it was sent"),)))

    def answer(self, label: str, model: str | None, usage: dict[str, int] | None) -> object:
        messages = (
            Message("assistant", (Text("Let me look."), ToolCall("1", "look", {"at": [label]}))),
            Message("tool", (ToolResult("1", "red"),)),
            Message("assistant", "Done."),
        )
        data = {"model": model, "usage": usage, "continues": usage is None}
        return self.append(label, NewStep(kind="turn", closes=True, messages=messages, data=data))

    def delete(self, label: str) -> object:
        return self.ledger.delete(label).steps


class OtherLedger:
    """A ledger whose store cannot be queried, as that of a third-party plugin."""

    def __init__(self, ledger: StoreLedger) -> None:
        self._ledger = ledger

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)


@contextmanager
def small_limits() -> Iterator[None]:
    """One session is looked through by itself, and three steps of each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(queries, "_FIRST_SESSIONS", 1)
        patch.setattr(search, "MAX_SEARCHED_STEPS", 3)
        yield


def compare_queries(ledger: StoreLedger) -> None:
    """Every query gives what the same function gives where the store cannot be queried."""
    other: Any = OtherLedger(ledger)
    assert isinstance(ledger.store, QueryableStore)
    for status in (None, "active", "archived"):
        for directory in (None, *DIRECTORIES, "/"):
            for limit in (None, 1, 2, 50):
                ask = partial(find_newest_sessions, status=status, directory=directory, limit=limit)
                assert ask(ledger) == ask(other)
    assert count_sessions(ledger) == count_sessions(other)
    assert count_steps(ledger) == len(list(ledger.store.step_rows()))
    assert find_former_names(ledger) == find_former_names(other)
    compare_step_rows(ledger)
    compare_sums(ledger)
    compare_searches(ledger)
    compare_trees(ledger)


def compare_sums(ledger: StoreLedger) -> None:
    """What is counted in stored steps is what is counted in decoded ones, and what the messages say."""
    prices = PriceList(get_installed_host(), Settings())
    stored, decoded = StepSums(prices), StepSums(prices)
    steps = list(ledger.steps())
    for step in steps:
        stored.add(step)
        decoded.add(pickle.loads(pickle.dumps(step)))  # noqa: S301 - our own, which has everything decoded
    said = [message for step in steps if step.kind != "sealed" for message in step.messages]
    usage = [get_step_usage(step) for step in steps if step.kind in ("reply", "turn")]
    assert stored.to_json() == decoded.to_json()
    assert stored.usage == decoded.usage
    assert (stored.messages, stored.all_usage) == (len(said), add_usages(filter(None, usage)))
    assert stored.tools == Counter(call.name for message in said for call in message.tool_calls)
    for step in steps:
        stored.take_back(step)
    assert (stored.turns, stored.messages, stored.tools, stored.tokens) == (0, 0, Counter(), Counter())
    assert (stored.calls, stored.usage) == (Counter(), {})


def compare_step_rows(ledger: StoreLedger) -> None:
    """Steps that are read page by page are those that are read branch by branch, and end with the same error."""
    with ledger.store.snapshot() as still:
        assert isinstance(still, SnapshotRows)
        one_by_one = outcome(still._read_steps_after("", -1))  # noqa: SLF001 - the simple way to read them
        for at_once in (1, 2, 3, 500):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(_rows, "_STEPS_PER_FETCH", at_once)
                assert outcome(still.step_rows()) == one_by_one


def outcome(rows: Iterator[Any]) -> tuple[list[Any], bool]:
    """What was read, and whether it ended with an error."""
    read: list[Any] = []
    try:
        for row in rows:
            read.append(row)  # noqa: PERF402 - what was read before an error counts, too
    except LedgerError:
        return read, True
    return read, False


def compare_searches(ledger: StoreLedger) -> None:
    for text in ("red", "green", "e", '"', "\\", "nowhere", "red \0 \ud800"):
        for limit in (1, 2, 20):
            found: list[Any] = []
            for records in (find_sessions_to_search(ledger, text), ledger.sessions(status=None)):
                damaged: list[DamagedSession] = []
                found.append((find_newest_matches(ledger, records, text, limit, damaged), damaged))
            assert found[0] == found[1]


def compare_trees(ledger: StoreLedger) -> None:
    other: Any = OtherLedger(ledger)
    records = ledger.sessions(status=None)
    trees, damaged = find_trees(ledger, records)
    assert (trees, damaged) == find_trees(other, records)
    for tree in trees:
        assert [*read_branch_lines(ledger, tree, group_labels_by_tip(records), [])] == [
            *read_branch_lines(other, tree, group_labels_by_tip(records), [])
        ]
        for label in tree.labels:
            assert select_with_workers(trees, label) == workers_naively(trees, label)


def workers_naively(trees: list[Any], label: str) -> list[Any]:
    found = [tree for tree in trees if label in tree.labels]
    for tree in found:
        found += [each for each in trees if each.maker in tree.labels and each not in found]
    return found


def play(operations: list[tuple[Any, ...]], store: Any) -> StoreLedger:
    player = QueriedPlayer(store)
    for operation in (("create", "a"), *operations):
        player.play(operation)
    return player.ledger


@settings(max_examples=examples(60), deadline=None)
@given(operations=st.lists(MORE_OPERATIONS, max_size=40))
def test_queries_of_a_file_give_what_reading_all_of_it_gives(operations: list[tuple[Any, ...]]) -> None:
    with tempfile.TemporaryDirectory() as scratch, small_limits():
        store = SqliteStore("sqlite:", Path(scratch) / "ledger.db")
        compare_queries(play(operations, store))
        store.close()


@pytest.mark.slow
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(operations=st.lists(MORE_OPERATIONS, max_size=30))
def test_queries_of_a_server_give_what_reading_all_of_it_gives(
    database: str, operations: list[tuple[Any, ...]]
) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("drop schema if exists nexus cascade")
    store = PostgresStore(database)
    with small_limits():
        compare_queries(play(operations, store))
    store.close()


@settings(max_examples=examples(40), deadline=None)
@given(operations=st.lists(MORE_OPERATIONS, min_size=8, max_size=40), number=NUMBERS, change=st.integers(0, 6))
def test_queries_of_a_damaged_file_find_the_same_damage(
    operations: list[tuple[Any, ...]], number: int, change: int
) -> None:
    with tempfile.TemporaryDirectory() as scratch, small_limits():
        path = Path(scratch) / "ledger.db"
        store = SqliteStore("sqlite:", path)
        ledger = play(operations, store)
        steps = sorted(step.id for step in ledger.steps())
        ledger.close()
        statement = (
            "delete from steps where id = ?",
            "update steps set messages = '[1]' where id = ?",
            "update steps set messages = cast(x'ff22' as text) where id = ?",
            "delete from branches where id = (select branch from steps where id = ?)",
            "update steps set position = 'x' where id = ?",
            "update steps set position = position + 7 where id = ?",
            "update steps set branch = x'00' where id = ?",
        )[change]
        name = steps[number % len(steps)] if steps else ""

        def change_row(file: sqlite3.Connection) -> None:
            file.execute("pragma foreign_keys = off")
            file.execute(statement, (name,))

        tamper(path, change_row)

        again = StoreLedger(SqliteStore("sqlite:", path))
        compare_step_rows(again)
        if change < 4:  # steps that are in the wrong place stop other commands
            compare_searches(again)
        if change in (0, 1, 3):  # a text that cannot be decoded is only seen where it is read
            compare_trees(again)
        again.close()


def test_the_root_of_a_tree_is_the_first_step_of_each_thread() -> None:
    ledger = MemoryLedger()
    ledger.create("main")
    steps = ledger.append_many("main", [said("one"), said("two"), said("three")], after=None)
    for number, step in enumerate(steps):
        ledger.create(f"fork {number}", head=step.id)
        ledger.append(f"fork {number}", said("x"), after=step.id)
    ledger.create("alone", steps=[said("y")])

    records = ledger.sessions(status=None)
    trees, _ = find_trees(ledger, records)

    for tree in trees:
        threads = {record.label: ledger.thread(str(record.tip)) for record in tree.sessions}
        assert {steps[0].id for steps in threads.values()} == {tree.root}
        branches = {branch.id: branch for branch in read_branches(ledger, tree, [])}
        assert branches.keys() == {step.branch for steps in threads.values() for step in steps}
    assert sum(len(tree.labels) for tree in trees) == len(records)


# ---- how many statements --------------------------------------------------------------------------------------------


class CountingStore(SqliteStore):
    """A file that counts what it is asked."""

    statements = 0

    def fetch(self, statement: str, *bound: object) -> list[Any]:
        self.statements += 1
        return super().fetch(statement, *bound)


@pytest.mark.parametrize("sessions", [20, 200])
def test_the_number_of_statements_does_not_grow_with_the_number_of_sessions(sessions: int, tmp_path: Path) -> None:
    store = CountingStore("sqlite:", tmp_path / "ledger.db")
    ledger = StoreLedger(store)
    for number in range(sessions):
        ledger.create(f"s{number}", steps=[said("one"), said("two")], data={"parent": "s0"} if number else {})
    records = ledger.sessions(status=None)

    counts = {}
    for name, work in {
        "list": lambda: find_newest_sessions(ledger, limit=5),
        "search": lambda: list(find_sessions_to_search(ledger, "nowhere")),
        "stats": lambda: (count_sessions(ledger), count_steps(ledger)),
        "tree": lambda: find_trees(ledger, records),
        "names": lambda: find_former_names(ledger),
        "steps": lambda: store.read(lambda: list(SqlRows.step_rows(store))),
    }.items():
        store.statements = 0
        cast("Callable[[], object]", work)()
        counts[name] = store.statements
    ledger.close()

    searched = 2 if sessions < queries._FIRST_SESSIONS else 4  # noqa: SLF001 - it is the limit
    assert counts == {"list": 2, "search": searched, "stats": 2, "tree": 1, "names": 1, "steps": 1}
