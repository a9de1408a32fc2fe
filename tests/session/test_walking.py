"""Going back through threads, where turns ended, and how many there are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_core.errors import TurnError, UsageError
from nexus_core.ledger.in_memory import MemoryLedger
from nexus_core.ledger.ledger import StoreLedger, walk_back
from nexus_core.thread.cache import ThreadCache
from nexus_core.thread.lookup import find_sessions_with, find_turn_end, is_in_thread
from nexus_core.thread.state import add_turn, count_turns
from nexus_core.types.ledger import NewStep, Step
from tests.ledger.test_verify import tamper
from tests.session.conftest import OpenSession
from tests.session.support import add_step, add_turns, calls, says, steps_of


class Counting:
    """A ledger that notes how many steps were read."""

    def __init__(self, ledger: MemoryLedger) -> None:
        self._ledger = ledger
        self.read = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)

    def thread(self, tip: str, **options: Any) -> list[Step]:
        steps = self._ledger.thread(tip, **options)
        self.read += len(steps)
        return steps


def test_a_thread_is_walked_back_over_its_forks(ledger: MemoryLedger) -> None:
    first = add_turns(ledger, "main", "one", "two", "three")
    ledger.create("fork", head=first[1].id)
    add_turns(ledger, "fork", "four", "five")

    for at_once in (1, 2, 3, 500):
        tip = ledger.session("fork").tip  # type: ignore[union-attr]
        walked = [step.messages[0].content for step in walk_back(ledger, tip, batch_size=at_once)]

        assert walked == ["five", "four", "two", "one"]
    assert list(walk_back(ledger, None)) == []


def test_no_more_is_read_than_is_walked(ledger: MemoryLedger) -> None:
    steps = add_turns(ledger, "main", *map(str, range(100)))
    counting: Any = Counting(ledger)

    assert next(walk_back(counting, steps[-1].id, batch_size=10)) == steps[-1]

    assert counting.read == 10


def test_only_what_is_before_a_step_is_in_its_thread(ledger: MemoryLedger) -> None:
    main = add_turns(ledger, "main", "one", "two", "three")
    ledger.create("fork", head=main[1].id)
    fork = add_turns(ledger, "fork", "four")
    ledger.create("deep", head=fork[0].id)
    add_turns(ledger, "fork", "five")
    deep = add_turns(ledger, "deep", "six")
    other = add_turns(ledger, "other", "seven")

    found = [step.messages[0].content for step in (*main, *fork, *deep, *other) if is_in_thread(ledger, step, deep[0])]

    assert found == ["one", "two", "four", "six"]


@pytest.mark.parametrize("kept_in", ["sqlite"], indirect=True)
def test_a_thread_of_a_damaged_ledger_with_a_circle_ends(ledger: StoreLedger, tmp_path: Path) -> None:
    main = add_turns(ledger, "main", "one", "two")
    ledger.create("fork", head=main[0].id)
    fork = add_turns(ledger, "fork", "three", "four")
    [other] = add_turns(ledger, "other", "five")
    edit = "update steps set parent = ? where id = ?"
    tamper(tmp_path / "ledger.db", lambda file: file.execute(edit, [fork[1].id, main[0].id]))

    assert not is_in_thread(ledger, other, fork[1])
    assert {record.label for record, _ in find_sessions_with(ledger, main)} == {"fork", "main"}


def test_a_turn_ends_where_it_was_closed(open_session: OpenSession, ledger: MemoryLedger) -> None:
    session = open_session("s")
    session.ask("one")
    inside = session.record(calls("t1"))
    session.record(inside.tool_calls[0].result("x"))
    end = session.record(says("done", name="msg_2"))
    session.ask("two")
    record = ledger.session("s")
    assert record is not None

    assert find_turn_end(ledger, record, inside.turn).id == end.id
    assert find_turn_end(ledger, record, end.id).id == end.id
    with pytest.raises(TurnError, match="is inside a turn"):
        find_turn_end(ledger, record, inside.id)
    with pytest.raises(TurnError, match="is still open"):
        find_turn_end(ledger, record, str(record.open_turn))
    with pytest.raises(UsageError, match="there is no step 'x' in session 's'"):
        find_turn_end(ledger, record, "x")


@pytest.mark.acceptance("H-08")
def test_a_session_forks_from_any_closed_turn(open_session: OpenSession, ledger: MemoryLedger) -> None:
    session = open_session("s")
    for number in range(3):
        session.ask(f"question {number}")
        session.record(says("Because.", name=f"msg_{number}"))
    ends = [step for step in steps_of(ledger, "s") if step.closes]

    session.fork("f", at=ends[1].turn)

    assert [step.id for step in steps_of(ledger, "f") if step.closes] == [end.id for end in ends[:2]]
    with pytest.raises(UsageError, match="there is no step"):
        open_session("nothing was said").fork("g", at=ends[0].id)


# ---- how many -------------------------------------------------------------------------------------------------------


def test_every_step_says_how_many_turns_there_are(open_session: OpenSession, ledger: MemoryLedger) -> None:
    session = open_session("s")
    for number in range(2):
        session.ask(f"question {number}")
        step = session.record(calls("t1", name=f"msg_{number}"))
        session.record(step.tool_calls[0].result("x"))
        session.record(says("Because.", name=f"msg_{number}b"))

    numbers = [step.payload.turns for step in steps_of(ledger, "s")]

    assert numbers == [0] + [1] * 5 + [2] * 5


KINDS = st.lists(st.sampled_from(["turn", "open", "compaction", "revert"]), max_size=40)


@given(kinds=KINDS, unnumbered=st.sets(st.integers(0, 40)))
def test_turns_are_counted_alike_whether_they_are_numbered_or_not(kinds: list[str], unnumbered: set[int]) -> None:
    ledger = MemoryLedger()
    ledger.create("s")
    tip: Step | None = None
    for place, kind in enumerate(kinds):
        for step in _steps(kind):
            payload = step.payload if place in unnumbered else step.payload.replace(turns=add_turn(tip, step))
            tip = add_step(ledger, "s", NewStep(kind=step.kind, closes=step.closes, data=payload.to_json()))

    if tip is not None:
        assert count_turns(ThreadCache(ledger), tip) == sum(kind in ("turn", "open") for kind in kinds)


def _steps(kind: str) -> list[NewStep]:
    if kind == "open":
        return [
            NewStep(kind="input"),
            NewStep(kind="compaction", data={"summary": "x"}),
            NewStep(kind="reply", closes=True),
        ]
    if kind == "turn":
        return [NewStep(kind="turn", closes=True)]
    if kind == "revert":
        return [NewStep(kind="revert", closes=True, data={"restores": None})]
    return [NewStep(kind="compaction", closes=True, data={"summary": "x"})]


def test_a_few_steps_tell_how_many_turns_a_long_thread_has(open_session: OpenSession, ledger: MemoryLedger) -> None:
    session = open_session("t")
    for number in range(30):
        session.ask(f"question {number}")
        session.record(says("Because.", name=f"msg_{number}"))
    counting: Any = Counting(ledger)
    tip = ledger.step(str(ledger.session("t").tip))  # type: ignore[union-attr]
    assert tip is not None

    assert count_turns(ThreadCache(counting), tip) == 30
    assert counting.read <= 32


@pytest.mark.parametrize("is_numbered", [True, False])
def test_turns_are_counted_up_to_a_step_farther_back_than_was_read(ledger: MemoryLedger, *, is_numbered: bool) -> None:
    data = {"turns": 1} if is_numbered else {}
    ledger.create("s")
    early = add_step(ledger, "s", NewStep(kind="turn", closes=True, data=data))
    late = add_turns(ledger, "s", *map(str, range(100)))[-1]
    tail = ThreadCache(ledger)

    assert tail.read_newest(late.id, lambda _: True)[-1] == late
    assert (count_turns(tail, early), count_turns(tail, late)) == (1, 101)


def test_a_thread_that_went_on_elsewhere_is_read_from_there(ledger: MemoryLedger) -> None:
    main = add_turns(ledger, "main", "one", "two", "three")
    ledger.create("fork", head=main[0].id)
    fork = add_turns(ledger, "fork", "four", "five", "six")
    tail = ThreadCache(ledger)
    tail.read_turn(main[-1].id)

    assert tail.read_since(main[0].id, fork[-1].id) == [main[0], *fork]


@pytest.mark.parametrize("kept_in", ["sqlite"], indirect=True)
def test_a_step_that_is_fetched_by_itself_is_compared_with_what_was_recorded(
    ledger: StoreLedger, tmp_path: Path
) -> None:
    """A cut may lie far behind the summary that is sent with it."""
    ledger.create("s")
    summary = add_step(ledger, "s", NewStep(kind="compaction", closes=True, data={"summary": "They looked for it."}))
    tip = add_turns(ledger, "s", *map(str, range(40)))[-1]
    tamper(
        tmp_path / "ledger.db",
        lambda file: file.execute(
            "update steps set data = replace(data, 'They', 'Thieves') where id = ?", [summary.id]
        ),
    )
    tail = ThreadCache(ledger)

    tail.read_turn(tip.id)
    before = tail.list_changed_steps()
    fetched = [tail.get_step(summary.id) for _ in range(2)]

    assert before == ()
    assert fetched[0] is fetched[1]
    assert tail.list_changed_steps() == tail.list_changed_steps() == (summary.id,)
