"""A ledger is copied without some of its sessions: what others lead to stays, and of the rest not a byte."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_core.errors import LedgerError, UnknownNameError
from nexus_core.history.ledger.ledger import StoreLedger
from nexus_core.history.ledger.memory import MemoryLedger
from nexus_core.values.ledger import NewStep
from nexus_core.values.message import Message
from nexus_core.values.parts import Image
from nexus_plugins.ledger.sqlite import SqliteLedger, open_sqlite
from tests.ledger.backends import add, said, tell, texts
from tests.ledger.test_chain import tamper
from tests.ledger.test_ledger import PICTURE

SECRET = "4711-0815"  # noqa: S105 - of no door


def thread(ledger: StoreLedger, label: str) -> list[str]:
    session = ledger.session(label)
    assert session is not None
    return texts(ledger.thread(str(session.tip)))


def without(ledger: StoreLedger, *labels: str) -> MemoryLedger:
    """A copy without some sessions, which is sound."""
    target = MemoryLedger()
    ledger.repair(target, without=labels)
    assert list(target.verify()) == []
    return target


def test_a_session_is_gone_and_the_others_are_as_they_were(ledger: StoreLedger) -> None:
    for label in ("bread", "door", "cake"):
        ledger.create(label, data={"model": label})
        tell(ledger, label, f"{label} 1", f"{label} 2")
    add(ledger, "cake", said("and?", kind="input", closes=False))

    target = MemoryLedger()
    report = ledger.repair(target, without=["door"])

    assert (report.left_out, report.sharing, report.lost) == (("door",), (), ())
    assert (report.sessions, report.steps) == (2, 5)
    assert target.session("door") is None
    assert [*target.steps()] == [step for step in ledger.steps() if "door" not in texts([step])[0]]
    assert target.sessions() == [session for session in ledger.sessions() if session.label != "door"]
    assert list(target.verify()) == []


def test_what_a_fork_has_in_common_with_it_stays_and_the_fork_is_named(ledger: StoreLedger) -> None:
    ledger.create("main")
    steps = tell(ledger, "main", *"abc")
    ledger.create("fork", head=steps[1].id, origin="main")
    tell(ledger, "fork", "x")
    ledger.create("other")
    tell(ledger, "other", "o")

    target = MemoryLedger()
    report = ledger.repair(target, without=["main"])

    assert (report.left_out, report.sharing) == (("main",), ("fork",))
    assert sorted(texts([*target.steps()])) == ["a", "b", "o", "x"]
    assert thread(target, "fork") == ["a", "b", "x"]
    assert list(target.verify()) == []
    tell(target, "fork", "y")
    assert thread(without(ledger, "fork"), "main") == ["a", "b", "c"]


def test_a_session_may_be_named_as_it_was_called_before(ledger: StoreLedger) -> None:
    for label in ("draft", "other"):
        ledger.create(label)
        tell(ledger, label, label)
    ledger.rename("draft", "final")

    target = without(ledger, "draft")

    assert [session.label for session in target.sessions()] == ["other"]
    assert target.session("draft") is None


def test_workers_go_with_the_session_that_made_them_whatever_it_is_called_now(ledger: StoreLedger) -> None:
    ledger.create("main")
    ledger.create("helper", data={"parent": "main"})
    ledger.create("its-helper", data={"parent": "helper"})
    ledger.create("other", data={"parent": "nobody"})
    for label in ("main", "helper", "its-helper", "other"):
        tell(ledger, label, label)
    ledger.rename("main", "boss")

    target = MemoryLedger()
    report = ledger.repair(target, without=["boss"])

    assert report.left_out == ("boss", "helper", "its-helper")
    assert [session.label for session in target.sessions()] == ["other"]


def test_pictures_and_prompts_stay_if_somebody_refers_to_them(ledger: StoreLedger) -> None:
    prompt = ledger.put_blob(b"a prompt")
    epoch, lonely = ledger.put_blobs([f'{{"view": "{prompt}"}}'.encode(), SECRET.encode()])
    picture = Message("user", (Image(mime="image/png", data=PICTURE),))
    ledger.create("door")
    add(ledger, "door", NewStep(kind="turn", closes=True, messages=(picture,), data={"epoch": lonely}))
    ledger.create("bread")
    add(ledger, "bread", NewStep(kind="turn", closes=True, messages=(picture,), data={"epoch": epoch}))

    with_picture, without_it = without(ledger, "door"), without(ledger, "bread")

    assert (with_picture.blob(epoch), with_picture.blob(prompt)) == (ledger.blob(epoch), b"a prompt")
    assert with_picture.blob(lonely) is None
    assert (without_it.blob(epoch), without_it.blob(prompt), without_it.blob(lonely)) == (None, None, SECRET.encode())
    assert thread(with_picture, "bread") == thread(ledger, "bread")


def test_not_a_byte_of_it_is_in_the_new_file(sqlite: SqliteLedger, path: Path, tmp_path: Path) -> None:
    sqlite.create(f"door {SECRET}", data={"task": SECRET})
    tell(sqlite, f"door {SECRET}", f"The key is {SECRET}.")
    sqlite.rename(f"door {SECRET}", "door")
    sqlite.create("bread")
    tell(sqlite, "bread", "How much flour?")
    new = tmp_path / "new.db"

    with closing(open_sqlite(f"sqlite:///{new}")) as target:
        sqlite.repair(target, without=["door"])

    assert SECRET.encode() in path.read_bytes()
    assert [file.name for file in tmp_path.glob("new*")] == ["new.db"]
    assert SECRET.encode() not in new.read_bytes()


def test_an_unknown_session_or_all_of_them_make_no_new_ledger(ledger: StoreLedger) -> None:
    ledger.create("bread")
    tell(ledger, "bread", "How much flour?")
    target = MemoryLedger()

    with pytest.raises(UnknownNameError, match="unknown session 'braed'"):
        ledger.repair(target, without=["braed"])
    with pytest.raises(LedgerError, match="nothing would be left"):
        ledger.repair(target, without=["bread"])

    assert target.sessions(status=None) == []


def test_out_of_a_damaged_ledger_nothing_is_left(sqlite: SqliteLedger, path: Path) -> None:
    for label in ("bread", "door"):
        sqlite.create(label)
        tell(sqlite, label, *"abc")
    first = next(iter(sqlite.steps()))
    sqlite.close()
    tamper(path, lambda connection: connection.execute("update steps set tokens = 99 where id = ?", (first.id,)))

    with (
        closing(open_sqlite(sqlite.url)) as damaged,
        pytest.raises(LedgerError, match="the ledger is damaged") as caught,
    ):
        damaged.repair(MemoryLedger(), without=["door"])

    assert "`nexus session repair NEW` saves what is whole" in str(caught.value)


@given(
    turns=st.lists(st.integers(0, 30), min_size=1, max_size=30),
    named=st.sets(st.integers(0, 30), min_size=1, max_size=5),
)
def test_of_any_tree_of_forks_the_others_read_as_before(turns: list[int], named: set[int]) -> None:
    ledger = MemoryLedger()
    ledger.create("0")
    tell(ledger, "0", "0")
    for number, place in enumerate(turns, 1):  # a turn somewhere, now and then in a session of its own
        label = str(place % len(ledger.sessions()))
        if place % 3 == 0:
            session, label = ledger.session(label), str(len(ledger.sessions()))
            assert session is not None
            ledger.create(label, head=session.head)
        tell(ledger, label, str(number))
    labels = {session.label for session in ledger.sessions()}
    gone = {str(each) for each in named} & labels

    if gone == labels or not gone:
        return
    target = without(ledger, *sorted(gone))

    assert {session.label: thread(target, session.label) for session in target.sessions()} == {
        label: thread(ledger, label) for label in labels - gone
    }
    wanted = {text for label in labels - gone for text in thread(ledger, label)}
    assert set(texts([*target.steps()])) == wanted
