"""Several steps at once: all of them are there, or none."""

from __future__ import annotations

import pytest

from nexus_core.errors import ConflictError, ExistsError, LedgerError
from nexus_core.history.ledger.ids import new_id, new_ids
from nexus_core.history.ledger.ledger import StoreLedger
from nexus_core.values.ledger import NewStep
from nexus_core.values.message import Message
from nexus_core.values.parts import Image
from tests.ledger.backends import Backend, add, said, tell, texts
from tests.ledger.test_ledger import PICTURE


def tip_of(ledger: StoreLedger, label: str) -> str:
    session = ledger.session(label)
    assert session is not None
    assert session.tip is not None
    return session.tip


def test_many_steps_are_what_they_are_one_by_one(backend: Backend) -> None:
    steps = [
        said("how?", kind="input", closes=False),
        said("so.", kind="reply"),
        said("what?", kind="input", closes=False),
    ]
    ledger = backend.open()
    for label in ("one", "many"):
        ledger.create(label)

    one_by_one = [add(ledger, "one", step) for step in steps]
    at_once = ledger.append_many("many", steps, after=None)

    assert [(step.kind, step.closes, step.position, step.total) for step in at_once] == [
        (step.kind, step.closes, step.position, step.total) for step in one_by_one
    ]
    assert [step.turn for step in at_once] == [at_once[0].id, at_once[0].id, at_once[2].id]
    assert ledger.thread(tip_of(ledger, "many")) == at_once
    session = ledger.session("many")
    assert session is not None
    assert (session.head, session.tip, session.open_turn) == (at_once[1].id, at_once[2].id, at_once[2].id)
    assert list(ledger.verify()) == []
    ledger.close()


def test_no_steps_change_nothing(ledger: StoreLedger) -> None:
    before = ledger.create("work")

    assert ledger.append_many("work", [], after=None) == []

    assert ledger.session("work") == before


def test_who_comes_second_adds_none_of_them(ledger: StoreLedger) -> None:
    ledger.create("work")
    (first,) = tell(ledger, "work", "one")
    tell(ledger, "work", "quick")

    with pytest.raises(ConflictError, match="has moved on"):
        ledger.append_many("work", [said("slow"), said("slower")], after=first.id)

    assert texts(ledger.thread(tip_of(ledger, "work"))) == ["one", "quick"]


def test_one_that_cannot_be_written_keeps_all_others_out(ledger: StoreLedger) -> None:
    ledger.create("work")

    with pytest.raises(LedgerError, match="cannot be written as JSON"):
        ledger.append_many("work", [said("one"), NewStep(kind="turn", data={"x": object()})], after=None)
    with pytest.raises(LedgerError, match="cannot be written as JSON"):
        ledger.create("other", steps=[said("one"), NewStep(kind="turn", data={"x": object()})])

    assert list(ledger.steps()) == []
    assert ledger.session("other") is None


def test_the_same_steps_sent_again_after_a_lost_answer_are_there_once(ledger: StoreLedger) -> None:
    ledger.create("work")
    steps = [NewStep(kind="turn", closes=True, messages=(Message("user", text),), id=new_id()) for text in "ab"]
    first = ledger.append_many("work", steps, after=None)

    again = ledger.append_many("work", steps, after=None)

    assert again == first
    assert len(list(ledger.steps())) == 2


def test_a_session_may_begin_with_steps(ledger: StoreLedger) -> None:
    made = ledger.create("work", data={"model": "m"}, steps=[said("one"), said("two", kind="input", closes=False)])

    assert texts(ledger.thread(tip_of(ledger, "work"))) == ["one", "two"]
    assert made == ledger.session("work")
    assert made.open_turn == made.tip
    assert list(ledger.verify()) == []


def test_a_fork_may_begin_with_steps(ledger: StoreLedger) -> None:
    ledger.create("main")
    steps = tell(ledger, "main", *"abc")

    ledger.create("fork", head=steps[1].id, origin="main", steps=[said("x"), said("y")])

    assert texts(ledger.thread(tip_of(ledger, "fork"))) == list("abxy")
    assert texts(ledger.thread(tip_of(ledger, "main"))) == list("abc")
    assert list(ledger.verify()) == []


def test_a_name_that_is_taken_keeps_the_steps_out(ledger: StoreLedger) -> None:
    ledger.create("work")

    with pytest.raises(ExistsError):
        ledger.create("work", steps=[said("one")])

    assert list(ledger.steps()) == []


def test_steps_may_bring_their_names_and_when_they_were_made(ledger: StoreLedger) -> None:
    name = new_id()
    step = NewStep(kind="turn", closes=True, messages=(Message("user", "hello"),), id=name, created=7)

    ledger.create("work", steps=[step])

    found = ledger.step(name)
    assert found is not None
    assert (found.id, found.created) == (name, 7)
    assert list(ledger.verify()) == []


def test_equal_steps_have_equal_digests_in_every_ledger(backend: Backend) -> None:
    step = NewStep(kind="turn", closes=True, messages=(Message("user", "hello"),), id="0" * 26, created=0)
    ledger = backend.open()

    ledger.create("work", steps=[step])

    found = ledger.step("0" * 26)
    assert found is not None
    assert found.digest == "e1c3d411b7dcd39ffe00383128e21825edeab63dcd4a85cf5fbfd9d1ddf0ff79"
    ledger.close()


def test_pictures_of_many_steps_are_kept(ledger: StoreLedger) -> None:
    shown = Message("user", (Image(mime="image/png", data=PICTURE),))

    ledger.create("work", steps=[NewStep(kind="turn", closes=True, messages=(shown,)) for _ in range(3)])

    assert [step.messages for step in ledger.thread(tip_of(ledger, "work"))] == [(shown,)] * 3


def test_many_blobs_are_kept_at_once(ledger: StoreLedger) -> None:
    digests = ledger.put_blobs([b"one", b"two", b"one"])

    assert digests[0] == digests[2] == ledger.put_blob(b"one")
    assert [ledger.blob(digest) for digest in digests] == [b"one", b"two", b"one"]
    assert ledger.put_blobs([]) == []


def test_names_made_together_are_all_different() -> None:
    names = [name for name, _ in zip(new_ids(), range(2000), strict=False)]

    assert len(set(names)) == 2000
    assert {len(name) for name in names} == {26}
    assert max(names)[:10] <= new_id()[:10]
