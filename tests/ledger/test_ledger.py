"""The behaviour that every ledger has, with one step at a time and with many."""

from __future__ import annotations

import base64
import pickle
import threading
from dataclasses import replace
from itertools import pairwise

import pytest

from nexus_core.errors import ConflictError, LedgerError, SessionExistsError, UnknownNameError, UsageError
from nexus_core.ledger.in_memory import MemoryLedger
from nexus_core.ledger.ledger import StoreLedger
from nexus_core.ledger.store import new_id, new_ids
from nexus_core.types.ledger import Ledger, NewStep, Step
from nexus_core.types.messages import Image, Message, Opaque, Text, ToolCall, ToolResult
from tests.ledger.backends import Backend, add, said, tell, texts

PICTURE = base64.b64encode(bytes(range(256)) * 8).decode()


def test_it_is_a_ledger(ledger: StoreLedger) -> None:
    assert isinstance(ledger, Ledger)


# ---- sessions ---------------------------------------------------------------------------------------------


def test_a_new_session_stands_before_the_first_turn(ledger: StoreLedger) -> None:
    made = ledger.create("work", data={"model": "m"})

    assert (made.label, made.head, made.tip, made.open_turn, made.status) == ("work", None, None, None, "active")
    assert made.data == {"model": "m"}
    assert ledger.session("work") == made


def test_there_is_no_session_that_nobody_made(ledger: StoreLedger) -> None:
    assert ledger.session("work") is None
    with pytest.raises(UnknownNameError, match="unknown session 'work'"):
        ledger.append("work", said("hello"), after=None)


def test_two_sessions_cannot_have_one_name(ledger: StoreLedger) -> None:
    ledger.create("work")

    with pytest.raises(SessionExistsError, match="session 'work' exists already"):
        ledger.create("work")


@pytest.mark.parametrize("label", ["", " ", "\n\t", "x" * 501])
def test_a_name_says_something_and_is_not_a_book(ledger: StoreLedger, label: str) -> None:
    with pytest.raises(UsageError, match="a session"):
        ledger.create(label)


def test_a_renamed_session_answers_to_both_names(ledger: StoreLedger) -> None:
    ledger.create("draft")
    tell(ledger, "draft", "one")

    renamed = ledger.rename("draft", "final")

    assert renamed.label == "final"
    assert ledger.session("draft") == ledger.session("final") == renamed
    assert [session.label for session in ledger.sessions()] == ["final"]
    add(ledger, "draft", said("two"))
    assert texts(ledger.thread(str(ledger.session("final").tip))) == ["one", "two"]  # type: ignore[union-attr]


def test_a_session_may_go_back_to_a_name_it_had(ledger: StoreLedger) -> None:
    ledger.create("a")
    ledger.rename("a", "b")

    ledger.rename("b", "a")

    assert ledger.session("a") == ledger.session("b")
    assert list(ledger.verify()) == []


def test_a_name_that_was_given_up_stays_taken(ledger: StoreLedger) -> None:
    ledger.create("a")
    ledger.rename("a", "b")

    with pytest.raises(SessionExistsError, match="as another name of 'b'"):
        ledger.create("a")
    ledger.create("c")
    with pytest.raises(SessionExistsError):
        ledger.rename("c", "a")


def test_what_is_known_of_a_session_may_change(ledger: StoreLedger) -> None:
    ledger.create("work", data={"model": "m"})
    tip = tell(ledger, "work", "one")[0].id

    archived = ledger.update("work", status="archived", data={"model": "n"})

    assert (archived.status, archived.data, archived.tip) == ("archived", {"model": "n"}, tip)
    assert ledger.sessions() == []
    assert ledger.sessions(status=None) == ledger.sessions(status="archived") == [archived]


def test_sessions_are_listed_with_those_changed_last_first(backend: Backend) -> None:
    ledger = MemoryLedger(now=iter(range(100)).__next__)
    if backend.name != "memory":
        ledger = StoreLedger(backend.open().store, now=iter(range(100)).__next__)  # type: ignore[assignment]
    for label in "abc":
        ledger.create(label)
    tell(ledger, "a", "news")

    assert [session.label for session in ledger.sessions()] == ["a", "c", "b"]
    ledger.close()


def test_a_session_was_begun_and_changed_when_its_steps_were_made(ledger: StoreLedger) -> None:
    first, last = (replace(said(text), created=moment) for text, moment in (("one", 1000), ("two", 2000)))

    made = ledger.create("old", steps=[first, last])
    ledger.append("old", replace(said("three"), created=3000), after=made.tip)

    grown = ledger.session("old")
    assert grown is not None
    assert (made.created, made.updated) == (1000, 2000)
    assert (grown.created, grown.updated) == (1000, 3000)


def test_pin_and_forget_do_not_change_the_time_of_a_session(ledger: StoreLedger) -> None:
    ledger.create("old", steps=[replace(said("one"), created=1000)])

    add(ledger, "old", NewStep(kind="pin", closes=True))
    tip = add(ledger, "old", NewStep(kind="forget", closes=True))

    session = ledger.session("old")
    assert session is not None
    assert (session.updated, session.tip) == (1000, tip.id)
    assert list(ledger.verify()) == []


def test_what_is_known_may_have_changed_at_another_time(ledger: StoreLedger) -> None:
    ledger.create("work")

    assert ledger.update("work", status="archived", updated=1000).updated == 1000
    assert ledger.update("work", data={"model": "m"}).updated > 1000


# ---- steps ------------------------------------------------------------------------------------------------


def test_a_turn_is_opened_carried_on_and_closed(ledger: StoreLedger) -> None:
    ledger.create("work")

    asked = add(ledger, "work", said("how?", kind="input", closes=False))
    opened = ledger.session("work")
    replied = add(ledger, "work", said("so.", kind="reply"))
    closed = ledger.session("work")

    assert opened is not None
    assert closed is not None
    assert (opened.head, opened.tip, opened.open_turn) == (None, asked.id, asked.id)
    assert (closed.head, closed.tip, closed.open_turn) == (replied.id, replied.id, None)
    assert (asked.turn, replied.turn, replied.parent) == (asked.id, asked.id, asked.id)


def test_steps_have_positions_sums_and_their_content(ledger: StoreLedger) -> None:
    ledger.create("work")
    tell(ledger, "work", "one", "two")

    step = add(ledger, "work", said("three", tokens=5, model="m"))

    assert (step.position, step.total, step.tokens, step.counter, step.data) == (2, 7, 5, "c", {"model": "m"})
    assert texts([step]) == ["three"]
    assert ledger.step(step.id) == step
    assert ledger.step("nothing") is None


def test_another_counter_begins_another_sum(ledger: StoreLedger) -> None:
    ledger.create("work")
    tell(ledger, "work", "one", "two")

    step = add(ledger, "work", NewStep(kind="turn", closes=True, tokens=10, counter="other"))

    assert step.total == 10


@pytest.mark.acceptance("H-03", "H-07", "C-11")
def test_the_nearest_compaction_is_known_and_can_be_taken_back(ledger: StoreLedger) -> None:
    ledger.create("work")
    (first,) = tell(ledger, "work", "one")
    one = add(ledger, "work", NewStep(kind="compaction", closes=True, data={"summary": "s", "first_kept": first.id}))
    two = add(ledger, "work", NewStep(kind="compaction", closes=True, data={"summary": "t", "first_kept": first.id}))
    (after,) = tell(ledger, "work", "two")
    undone = add(ledger, "work", NewStep(kind="revert", closes=True, data={"restores": one.id}))
    (last,) = tell(ledger, "work", "three")

    assert [step.compaction for step in (first, one, two, after, undone, last)] == [
        None,
        one.id,
        two.id,
        two.id,
        one.id,
        one.id,
    ]
    assert texts(ledger.thread(last.id)) == ["one", "two", "three"]
    assert list(ledger.verify()) == []


def test_who_comes_second_is_told_to_read_again(ledger: StoreLedger) -> None:
    ledger.create("work")
    (first,) = tell(ledger, "work", "one")
    ledger.append("work", said("quick"), after=first.id)

    with pytest.raises(ConflictError, match="has moved on") as caught:
        ledger.append("work", said("slow"), after=first.id)

    assert "read the session again" in str(caught.value)
    assert len(ledger.thread(str(ledger.session("work").tip))) == 2  # type: ignore[union-attr]


def test_a_step_that_cannot_be_written_changes_nothing(ledger: StoreLedger) -> None:
    ledger.create("work")

    with pytest.raises(LedgerError, match="cannot be written as JSON"):
        ledger.append("work", NewStep(kind="turn", data={"x": object()}), after=None)
    with pytest.raises(UnknownNameError, match="unknown kind of step 'replly'"):
        ledger.append("work", NewStep(kind="replly"), after=None)  # type: ignore[arg-type]
    with pytest.raises(LedgerError, match="-1 tokens"):
        ledger.append("work", NewStep(kind="turn", tokens=-1), after=None)
    with pytest.raises(LedgerError, match="`restores` is not the id"):
        ledger.append("work", NewStep(kind="revert", data={"restores": 3}), after=None)

    assert list(ledger.steps()) == []


def test_numbers_that_json_does_not_know_become_words(ledger: StoreLedger) -> None:
    ledger.create("work")

    step = add(ledger, "work", NewStep(kind="turn", data={"x": [float("nan"), float("inf"), -float("inf"), 1.5]}))

    assert ledger.step(step.id).data == {"x": ["NaN", "Infinity", "-Infinity", 1.5]}  # type: ignore[union-attr]


def test_a_step_is_the_same_in_another_process(ledger: StoreLedger) -> None:
    ledger.create("work")
    (step,) = tell(ledger, "work", "one")

    copied = pickle.loads(pickle.dumps(step))  # noqa: S301 - our own, made a moment ago

    assert type(copied) is Step
    assert copied == step
    assert step == copied


# ---- threads and forks ------------------------------------------------------------------------------------


@pytest.mark.acceptance("H-01", "H-02")
def test_a_thread_is_read_from_its_first_step_to_its_tip(ledger: StoreLedger) -> None:
    ledger.create("work")
    steps = tell(ledger, "work", *"abcdef")

    assert texts(ledger.thread(steps[-1].id)) == list("abcdef")
    assert texts(ledger.thread(steps[3].id)) == list("abcd")
    assert texts(ledger.thread(steps[-1].id, limit=2)) == list("ef")
    assert texts(ledger.thread(steps[-1].id, limit=100)) == list("abcdef")
    assert ledger.thread(steps[-1].id, limit=0) == []
    assert texts(ledger.thread(steps[-1].id, first=steps[2].id)) == list("cdef")
    assert ledger.thread(steps[-1].id, first=steps[-1].id) == [steps[-1]]


@pytest.mark.acceptance("H-08")
def test_a_fork_sees_its_own_ancestry_only(ledger: StoreLedger) -> None:
    ledger.create("main")
    steps = tell(ledger, "main", *"abc")
    ledger.create("fork", head=steps[1].id, origin="main")
    inner = tell(ledger, "fork", "x", "y")
    ledger.create("again", head=inner[0].id, origin="fork")
    innermost = tell(ledger, "again", "q")
    tell(ledger, "main", "d")

    assert texts(ledger.thread(inner[-1].id)) == list("abxy")
    assert texts(ledger.thread(innermost[-1].id)) == list("abxq")
    assert texts(ledger.thread(innermost[-1].id, limit=3)) == list("bxq")
    assert texts(ledger.thread(innermost[-1].id, first=steps[1].id)) == list("bxq")
    assert texts(ledger.thread(str(ledger.session("main").tip))) == list("abcd")  # type: ignore[union-attr]
    assert innermost[-1].total == 4
    assert list(ledger.verify()) == []


def test_of_two_sessions_at_one_head_the_first_goes_on_in_the_branch(ledger: StoreLedger) -> None:
    ledger.create("one")
    (head,) = tell(ledger, "one", "a")
    ledger.create("two", head=head.id, origin="one")

    (second,) = tell(ledger, "two", "x")
    (first,) = tell(ledger, "one", "b")

    assert (second.branch, first.branch == head.branch) == (head.branch, False)
    assert (first.position, second.position) == (1, 1)


def test_a_fork_begins_at_the_end_of_a_turn(ledger: StoreLedger) -> None:
    ledger.create("work")
    asked = add(ledger, "work", said("how?", kind="input", closes=False))

    with pytest.raises(LedgerError, match="does not end a turn"):
        ledger.create("fork", head=asked.id)
    with pytest.raises(LedgerError, match="there is no step nowhere"):
        ledger.create("fork", head="nowhere")

    assert ledger.session("fork") is None


@pytest.mark.acceptance("C-11")
def test_a_first_step_of_another_branch_is_an_error_not_silence(ledger: StoreLedger) -> None:
    ledger.create("main")
    steps = tell(ledger, "main", *"abc")
    ledger.create("fork", head=steps[0].id)
    (inner,) = tell(ledger, "fork", "x")

    for first in (steps[1].id, steps[2].id):
        with pytest.raises(LedgerError, match="does not come before"):
            ledger.thread(inner.id, first=first)
    with pytest.raises(LedgerError, match="there is no step"):
        ledger.thread("nowhere")
    with pytest.raises(LedgerError, match="there is no step"):
        ledger.thread(inner.id, first="nowhere")


def test_every_step_is_listed_branch_by_branch(ledger: StoreLedger) -> None:
    ledger.create("main")
    steps = tell(ledger, "main", *"abc")
    ledger.create("fork", head=steps[0].id)
    tell(ledger, "fork", "x", "y")

    listed = list(ledger.steps())

    assert sorted(texts(listed)) == sorted("abcxy")
    assert [(step.branch, step.position) for step in listed] == sorted((step.branch, step.position) for step in listed)


# ---- searching --------------------------------------------------------------------------------------------


def test_words_are_found_newest_first_across_forks(ledger: StoreLedger) -> None:
    ledger.create("main")
    steps = tell(ledger, "main", "red apple", "green pear", "red cherry")
    ledger.create("fork", head=steps[1].id)
    tell(ledger, "fork", "red plum")
    tip = str(ledger.session("fork").tip)  # type: ignore[union-attr]

    assert texts(ledger.scan(tip, "red")) == ["red plum", "red apple"]
    assert texts(ledger.scan(tip, "red", limit=1)) == ["red plum"]
    assert ledger.scan(tip, "red", limit=0) == []
    assert ledger.scan(tip, "Red") == []


def test_words_of_calls_and_results_are_found_but_not_the_names_of_fields(ledger: StoreLedger) -> None:
    ledger.create("work")
    call = Message("assistant", (ToolCall("1", "search", {"query": 'say "hi"'}),))
    result = Message("tool", (ToolResult("1", "nothing\nfound"),))
    step = add(ledger, "work", NewStep(kind="turn", closes=True, messages=(call, result)))

    for text in ('say "hi"', "search", "query", "nothing\nfound"):
        assert ledger.scan(step.id, text) == [step]
    for text in ("role", "assistant", "kind", "tool_call"):
        assert ledger.scan(step.id, text) == []


def test_a_search_finds_everything_in_a_long_thread(ledger: StoreLedger) -> None:
    ledger.create("work")
    tell(ledger, "work", *(f"role {number}" for number in range(250)), "needle")
    tip = str(ledger.session("work").tip)  # type: ignore[union-attr]

    assert len(ledger.scan(tip, "role", limit=1000)) == 250
    assert texts(ledger.scan(tip, "role 7", limit=1000))[-1] == "role 7"


def test_a_search_looks_at_no_more_steps_than_it_is_told(ledger: StoreLedger) -> None:
    ledger.create("main")
    steps = tell(ledger, "main", "red 0", "red 1", "red 2", "red 3")
    ledger.create("fork", head=steps[2].id)
    tell(ledger, "fork", "green 3", "red 4")
    tip = str(ledger.session("fork").tip)  # type: ignore[union-attr]

    found = {within: texts(ledger.scan(tip, "red", within=within)) for within in (0, 1, 2, 3, 4, 5, 99)}

    assert found == {
        0: [],
        1: ["red 4"],
        2: ["red 4"],
        3: ["red 4", "red 2"],
        4: ["red 4", "red 2", "red 1"],
        5: ["red 4", "red 2", "red 1", "red 0"],
        99: ["red 4", "red 2", "red 1", "red 0"],
    }


@pytest.mark.parametrize("text", ["%", "_", "'", '"', "\\", "?", "%s", "\0", "\ud800", "é", "\n"])
def test_no_character_means_anything_but_itself_in_a_search(ledger: StoreLedger, text: str) -> None:
    ledger.create("work")
    tell(ledger, "work", "plain words", f"a{text}b")
    tip = str(ledger.session("work").tip)  # type: ignore[union-attr]

    (found,) = ledger.scan(tip, text)

    assert found.id == tip


# ---- blobs ------------------------------------------------------------------------------------------------


def test_bytes_are_kept_once_under_their_digest(ledger: StoreLedger) -> None:
    first, second = ledger.put_blob(b"\0\xffbytes"), ledger.put_blob(b"\0\xffbytes")

    assert first == second
    assert ledger.blob(first) == b"\0\xffbytes"
    assert ledger.blob("nothing") is None


def test_pictures_are_stored_once_and_come_back_as_they_were(ledger: StoreLedger) -> None:
    ledger.create("work")
    spoken = Message(
        "user",
        (
            Image(mime="image/png", data=PICTURE),
            Opaque("gemini", {"inlineData": {"data": PICTURE, "nexus_blob": "mine"}}),
            Image(data="small"),
            Text(PICTURE),
        ),
    )

    first = add(ledger, "work", NewStep(kind="turn", closes=True, messages=(spoken,)))
    second = add(ledger, "work", NewStep(kind="turn", closes=True, messages=(spoken,)))

    assert first.messages == second.messages == (spoken,)
    assert len(list(ledger.store.blob_rows())) == 1
    stored = ledger.store.read(lambda: ledger.store.step(first.id))
    assert stored is not None
    assert stored.messages.count(PICTURE) == 1  # words stay words
    assert ledger.scan(second.id, PICTURE, limit=1) == [second]


def test_a_blob_that_is_named_in_a_message_is_not_fetched(ledger: StoreLedger) -> None:
    ledger.create("work")
    digest = ledger.put_blob(b"secret")
    spoken = Message("user", (Opaque("x", {"data": {"nexus_blob": digest}, "nexus_blob": {"nexus_blob": digest}}),))

    step = add(ledger, "work", NewStep(kind="turn", closes=True, messages=(spoken,)))

    assert ledger.step(step.id).messages == (spoken,)  # type: ignore[union-attr]


# ---- many hands -------------------------------------------------------------------------------------------


def test_many_threads_share_one_ledger(ledger: StoreLedger) -> None:
    ledger.create("shared")

    def work(number: int) -> None:
        ledger.create(f"own-{number}")
        for turn in range(10):
            tell(ledger, f"own-{number}", f"{number}.{turn}")
            while True:
                try:
                    tell(ledger, "shared", f"{number}.{turn}")
                    break
                except ConflictError:
                    continue

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    spoken = texts(ledger.thread(str(ledger.session("shared").tip)))  # type: ignore[union-attr]
    assert sorted(spoken) == sorted(f"{number}.{turn}" for number in range(6) for turn in range(10))
    assert len(list(ledger.steps())) == 120
    assert list(ledger.verify()) == []


@pytest.mark.acceptance("R9")
def test_a_clock_that_goes_backwards_changes_nothing_in_the_order(backend: Backend) -> None:
    times = iter(range(2_000_000_000_000, 0, -86_400_000))
    opened = MemoryLedger(now=times.__next__)
    ledger = opened if backend.name == "memory" else StoreLedger(backend.open().store, now=times.__next__)
    ledger.create("work")
    steps = tell(ledger, "work", *"abc")
    ledger.create("fork", head=steps[1].id)
    tell(ledger, "fork", "x")

    assert texts(ledger.thread(steps[-1].id)) == list("abc")
    assert texts(ledger.thread(str(ledger.session("fork").tip))) == list("abx")  # type: ignore[union-attr]
    assert [step.created for step in steps] == sorted((step.created for step in steps), reverse=True)
    assert list(ledger.verify()) == []
    ledger.close()


def test_a_session_is_asked_for_the_names_it_had(ledger: StoreLedger) -> None:
    ledger.create("a")
    ledger.create("other")
    for name in ("c", "b", "a"):
        ledger.rename("a", name)

    assert ledger.aliases("a") == ledger.aliases("c") == ["b", "c"]
    assert ledger.aliases("other") == []
    with pytest.raises(UnknownNameError, match="unknown session 'x'"):
        ledger.aliases("x")


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

    with pytest.raises(SessionExistsError):
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


def test_names_made_together_are_sorted_in_batches() -> None:
    names = [name for name, _ in zip(new_ids(), range(2000), strict=False)]

    assert sum(name > after for name, after in pairwise(names)) <= 3
