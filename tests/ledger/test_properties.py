"""Whatever is done in whatever order, every ledger answers as the one in memory does."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nexus_core.errors import NexusError
from nexus_core.ledger.in_memory import MemoryStore
from nexus_core.ledger.ledger import StoreLedger
from nexus_core.ledger.store import LedgerStore, new_id
from nexus_core.types.ledger import NewStep, Step
from nexus_core.types.messages import Message
from nexus_plugins.ledger.sqlite.store import SqliteStore
from tests.ledger.backends import Backend, clock, names

LABELS = st.sampled_from(["a", "b", "c", "d"])
WORDS = st.sampled_from(["red", "green", "blue", "red \0 \ud800"])
NUMBERS = st.integers(0, 40)
STEPS = st.builds(
    lambda kind, closes, word, tokens, counter: NewStep(
        kind=kind, closes=closes, messages=(Message("user", word),), tokens=tokens, counter=counter, data={"w": word}
    ),
    st.sampled_from(["input", "reply", "turn", "compaction", "interrupted"]),
    st.booleans(),
    WORDS,
    NUMBERS,
    st.sampled_from(["c", "d"]),
)
OPERATIONS = st.one_of(
    st.tuples(st.just("create"), LABELS),
    st.tuples(st.just("fork"), LABELS, LABELS, NUMBERS),
    st.tuples(st.just("append"), LABELS, STEPS),
    st.tuples(st.just("append"), LABELS, STEPS),
    st.tuples(st.just("append"), LABELS, STEPS),
    st.tuples(st.just("late"), LABELS, STEPS, NUMBERS),
    st.tuples(st.just("revert"), LABELS, NUMBERS),
    st.tuples(st.just("rename"), LABELS, LABELS),
    st.tuples(st.just("update"), LABELS, WORDS),
    st.tuples(st.just("read"), LABELS, NUMBERS),
    st.tuples(st.just("scan"), LABELS, WORDS, NUMBERS),
)


class Player:
    """Does to a ledger what it is told, and notes what comes of it."""

    def __init__(self, store: LedgerStore) -> None:
        self.ledger = StoreLedger(store, now=clock(), name=names())
        self.notes: list[Any] = []

    def play(self, operation: tuple[Any, ...]) -> None:
        verb, *given = operation
        try:
            self.notes.append(getattr(self, verb)(*given))
        except NexusError as error:
            self.notes.append((type(error), error.what))

    def create(self, label: str) -> object:
        return self.ledger.create(label)

    def fork(self, label: str, source: str, number: int) -> object:
        return self.ledger.create(label, head=self.some(number), origin=source)

    def append(self, label: str, step: NewStep) -> object:
        session = self.ledger.session(label)
        return self.ledger.append(label, step, after=session.tip if session else None)

    def late(self, label: str, step: NewStep, number: int) -> object:
        return self.ledger.append(label, step, after=self.some(number))

    def revert(self, label: str, number: int) -> object:
        return self.append(label, NewStep(kind="revert", closes=True, data={"restores": self.some(number)}))

    def rename(self, label: str, new: str) -> object:
        return self.ledger.rename(label, new)

    def update(self, label: str, word: str) -> object:
        return self.ledger.update(label, data={"word": word})

    def read(self, label: str, number: int) -> object:
        session = self.ledger.session(label)
        if session is None or session.tip is None:
            return session
        tip = session.tip
        steps = self.ledger.thread(tip), self.ledger.thread(tip, limit=number)
        return (*steps, self.ledger.thread(tip, first=self.some(number) or tip))

    def scan(self, label: str, word: str, number: int) -> object:
        session = self.ledger.session(label)
        return self.ledger.scan(session.tip, word, limit=number) if session and session.tip else None

    def some(self, number: int) -> str | None:
        steps = sorted(step.id for step in self.ledger.steps())
        return steps[number % len(steps)] if steps else None

    def everything(self) -> object:
        ledger = self.ledger
        return ledger.sessions(status=None), list(ledger.steps()), list(ledger.verify())


@pytest.mark.acceptance("A-05", "H-07")
@settings(max_examples=15, deadline=None)
@given(operations=st.lists(OPERATIONS, max_size=30))
def test_sqlite_answers_as_memory_does(operations: list[tuple[Any, ...]]) -> None:
    compare_sqlite(operations)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(operations=st.lists(OPERATIONS, max_size=40))
def test_sqlite_answers_as_memory_does_at_length(operations: list[tuple[Any, ...]]) -> None:
    compare_sqlite(operations)


def compare_sqlite(operations: list[tuple[Any, ...]]) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        store = SqliteStore("sqlite:", Path(scratch) / "ledger.db")
        compare(operations, store)
        store.close()


def compare(operations: list[tuple[Any, ...]], store: LedgerStore) -> None:
    """Both are told the same and say the same, and nothing that was recorded ever changes."""
    model, other = Player(MemoryStore()), Player(store)
    recorded: dict[str, object] = {}
    for operation in (("create", "a"), *operations):
        model.play(operation)
        other.play(operation)
        assert other.notes[-1] == model.notes[-1], operation
        steps = {step.id: step for step in model.ledger.steps()}
        assert {name: steps[name] for name in recorded} == recorded
        recorded = dict(steps)
    assert other.everything() == model.everything()
    assert list(model.ledger.verify()) == []
    keep_invariants(other.ledger)


def keep_invariants(ledger: StoreLedger) -> None:
    """What is true of every ledger at every moment."""
    steps = {step.id: step for step in ledger.steps()}
    assert len({(step.branch, step.position) for step in steps.values()}) == len(steps)
    for step in steps.values():
        before = steps[step.parent] if step.parent else None
        assert step.position == (before.position + 1 if before else 0)
        assert step.turn == (step.id if before is None or before.closes else before.turn)
        assert (step.kind == "compaction") == (step.compaction == step.id)
        assert step.compaction is None or step.compaction in steps
    for session in ledger.sessions(status=None):
        assert session.tip is None or session.tip in steps
        assert session.head is None or steps[session.head].closes
        assert (session.open_turn is None) == (session.tip == session.head)
    keep_notes(ledger, steps)


def keep_notes(ledger: StoreLedger, steps: Mapping[str, Step]) -> None:
    """Every head a session has had is noted once, and nothing else is."""
    notes = Counter((note.session, note.step) for note in ledger.store.history_rows())
    assert set(notes.values()) <= {1}
    assert {name for _, name in notes} <= {step.id for step in steps.values() if step.closes}
    for row in ledger.store.session_rows():
        heads = sorted((name for session, name in notes if session == row.id), key=lambda name: steps[name].position)
        assert (heads[-1] if heads else None) == row.head
        if heads:  # from where it began, it was on the end of each turn up to its head
            line = ledger.thread(heads[-1], first=heads[0])
            assert heads == [step.id for step in line if step.closes]


@given(st.lists(st.integers(0, 1 << 48), min_size=2, max_size=50))
def test_names_sort_by_the_time_they_were_made(times: list[int]) -> None:
    made = [(created, new_id(created)) for created in times]

    assert {len(name) for _, name in made} == {26}
    assert len({name for _, name in made}) == len(made)
    assert [created for created, _ in sorted(made, key=lambda pair: pair[1])] == sorted(times)


@pytest.mark.parametrize("rounds", [2])
def test_a_ledger_that_is_opened_again_says_the_same(backend: Backend, rounds: int) -> None:
    if backend.name == "memory":
        pytest.skip("it is forgotten")
    first = backend.open()
    player = Player(first.store)
    for operation in (("create", "a"), ("append", "a", NewStep(kind="turn", closes=True)), ("rename", "a", "b")):
        player.play(operation)
    before = player.everything()
    first.close()

    for _ in range(rounds):
        again = backend.open()
        assert (again.sessions(status=None), list(again.steps()), list(again.verify())) == before
        again.close()
