"""A new ledger from the intact part of a damaged one, or without some sessions."""

from __future__ import annotations

import random
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_core.errors import LedgerError, UnknownNameError
from nexus_core.ledger.in_memory import MemoryLedger
from nexus_core.ledger.ledger import StoreLedger
from nexus_core.types.ledger import NewStep, Step
from nexus_core.types.messages import Image, Message
from nexus_plugins.ledger.sqlite import SqliteLedger, open_sqlite
from tests.ledger.backends import add, figure, said, tell, texts
from tests.ledger.test_ledger import PICTURE
from tests.ledger.test_verify import tamper
from tests.tables import count

PAGE = 4096


def fill(ledger: StoreLedger, turns: int = 40) -> list[Step]:
    """Turns of two steps, some long, a fork, pictures, a compaction, an open turn, an alias."""
    ledger.create("work", data={"model": "m"})
    for number in range(turns):
        add(ledger, "work", said(f"question {number} " + "long " * (number * 37 % 900), kind="input", closes=False))
        picture = Message("assistant", (Image(mime="image/png", data=PICTURE),))
        add(ledger, "work", NewStep(kind="reply", closes=True, messages=(picture,) * (number % 5 == 0), counter="c"))
    steps = ledger.thread(str(ledger.session("work").tip))  # type: ignore[union-attr]
    ledger.create("fork", head=steps[turns // 2 * 2 - 1].id, origin="work")
    tell(ledger, "fork", "another way", "and another")
    add(ledger, "fork", NewStep(kind="compaction", closes=True, data={"summary": "s", "first_kept": steps[4].id}))
    add(ledger, "fork", said("and?", kind="input", closes=False))
    ledger.rename("fork", "branch")
    return steps


def saved(path: Path, target: Path) -> SqliteLedger:
    """A ledger made of what is whole in a file."""
    new = open_sqlite(f"sqlite:///{target}")
    with closing(open_sqlite(f"sqlite:///{path}")) as damaged:
        damaged.repair(new)
    assert list(new.verify()) == []
    return new


def contents(ledger: StoreLedger) -> dict[str, object]:
    """What is said in each turn."""
    turns: dict[str, object] = {}
    for step in ledger.steps():
        turns[step.turn] = (turns.get(step.turn), step.messages, step.data)
    return turns


def test_a_sound_file_is_copied_with_every_digest(sqlite: SqliteLedger, path: Path, tmp_path: Path) -> None:
    fill(sqlite)

    new = saved(path, tmp_path / "new.db")

    assert list(new.steps()) == list(sqlite.steps())
    assert new.sessions() == sqlite.sessions()
    assert new.session("fork") == sqlite.session("branch")
    new.close()


def test_a_name_that_was_given_by_a_clock_set_back_is_saved(sqlite: SqliteLedger, path: Path, tmp_path: Path) -> None:
    times = iter(range(2_000_000_000_000, 0, -86_400_000))
    ledger = StoreLedger(sqlite.store, now=times.__next__)
    ledger.create("draft")
    tell(ledger, "draft", "one")

    ledger.rename("draft", "final")
    ledger.update("final", status="archived")

    with closing(saved(path, tmp_path / "new.db")) as new:
        (session,) = new.sessions(status=None)
        assert (session.label, session.status) == ("final", "archived")


def test_what_lies_in_the_log_only_is_saved_too(sqlite: SqliteLedger, path: Path, tmp_path: Path) -> None:
    fill(sqlite)
    assert Path(f"{path}-wal").stat().st_size > path.stat().st_size

    new = saved(path, tmp_path / "new.db")

    assert contents(new) == contents(sqlite)
    new.close()


def test_a_lost_turn_leaves_the_others_joined(sqlite: SqliteLedger, path: Path, tmp_path: Path) -> None:
    steps = fill(sqlite)
    sqlite.close()
    lost = steps[20].id
    tamper(path, lambda connection: connection.execute("update steps set tokens = 99 where id = ?", (lost,)))
    before = path.read_bytes()

    new = open_sqlite(f"sqlite:///{tmp_path / 'new.db'}")
    report = open_sqlite(f"sqlite:///{path}").repair(new)

    assert path.read_bytes() == before
    assert [finding.code for finding in report.lost] == ["turn-lost"]
    assert lost in report.lost[0].message
    assert list(new.verify()) == []
    read = texts(new.thread(str(new.session("work").tip)))  # type: ignore[union-attr]
    assert [text.split()[1] for text in read if text.startswith("question")] == [str(n) for n in range(40) if n != 10]
    new.close()


def test_a_compaction_whose_pinned_step_is_lost_is_left_out(sqlite: SqliteLedger, path: Path, tmp_path: Path) -> None:
    steps = fill(sqlite)
    pinned = steps[10].id
    data = {"summary": "s", "first_kept": steps[40].id, "pinned": [pinned]}
    compaction = add(sqlite, "work", NewStep(kind="compaction", closes=True, data=data))
    sqlite.close()
    tamper(path, lambda connection: connection.execute("update steps set tokens = 99 where id = ?", (pinned,)))

    with closing(open_sqlite(f"sqlite:///{tmp_path / 'new.db'}")) as new:
        report = open_sqlite(f"sqlite:///{path}").repair(new)

        assert new.step(compaction.id) is None
        assert any(f"it refers to step {pinned}, which is gone" in finding.message for finding in report.lost)


def test_turns_of_which_nothing_is_left_are_told(sqlite: SqliteLedger, path: Path, tmp_path: Path) -> None:
    steps = fill(sqlite)
    sqlite.close()
    for step in steps[20:24]:
        tamper(
            path,
            lambda connection, name=step.id: connection.execute(  # type: ignore[misc]
                "update steps set tokens = 99 where id = ?", (name,)
            ),
        )

    with closing(open_sqlite(f"sqlite:///{tmp_path / 'new.db'}")) as new:
        report = open_sqlite(f"sqlite:///{path}").repair(new)

    assert [str(finding) for finding in report.lost] == [
        f"between {steps[19].id} and {steps[24].id}: of 4 steps nothing is left [steps-lost]"
    ]
    assert report.lost[0].step == steps[24].id


def test_steps_that_may_be_of_another_turn_than_the_one_that_is_lost_are_told(
    sqlite: SqliteLedger, path: Path, tmp_path: Path
) -> None:
    steps = fill(sqlite)
    sqlite.close()
    gone = [each.id for each in (steps[21], steps[22], steps[23])]  # the end of a turn, and all of the next one
    marks = ", ".join("?" * len(gone))
    tamper(path, lambda connection: connection.execute(f"update steps set tokens = 99 where id in ({marks})", gone))  # noqa: S608 - marks only

    with closing(open_sqlite(f"sqlite:///{tmp_path / 'new.db'}")) as new:
        report = open_sqlite(f"sqlite:///{path}").repair(new)

    assert [str(finding) for finding in report.lost] == [
        f"turn {steps[20].id} is not saved: of its steps, only 1 can be read [turn-lost]",
        f"between {steps[19].id} and {steps[24].id}: of 2 steps nothing is left [steps-lost]",
    ]


def refuse_repair(path: Path, target: Path) -> str:
    """The error of repairing a file out of which no new one is made."""
    before = path.read_bytes()
    with (
        closing(open_sqlite(f"sqlite:///{target}")) as new,
        closing(open_sqlite(f"sqlite:///{path}")) as damaged,
        pytest.raises(LedgerError) as caught,
    ):
        damaged.repair(new)
    assert not target.exists()
    assert path.read_bytes() == before
    return str(caught.value)


def test_a_file_in_which_nothing_is_whole_makes_no_new_one(sqlite: SqliteLedger, path: Path, tmp_path: Path) -> None:
    sqlite.create("work")
    (only,) = tell(sqlite, "work", "a turn")
    sqlite.close()
    tamper(path, lambda connection: connection.execute("update steps set tokens = 99 where id = ?", (only.id,)))
    without_sessions(path)

    assert "nothing in it" in refuse_repair(path, tmp_path / "new.db")


@pytest.mark.acceptance("R7")
def test_repair_of_a_file_that_sqlite_cannot_open_names_recover(
    sqlite: SqliteLedger, path: Path, tmp_path: Path
) -> None:
    fill(sqlite, 4)
    sqlite.close()
    path.write_bytes(bytes(PAGE) + path.read_bytes()[PAGE:])

    message = refuse_repair(path, tmp_path / "new.db")

    assert "SQLite cannot read the file" in message
    assert f"`sqlite3 {path} .recover`" in message


def test_repair_and_verify_tell_how_far_they_have_come(ledger: StoreLedger) -> None:
    fill(ledger, 6)
    looked: list[float] = []
    done: list[float] = []

    assert list(ledger.verify(advance=looked.append)) == []
    ledger.repair(MemoryLedger(), advance=done.append)

    assert sum(looked) == len(list(ledger.steps()))
    assert sum(done) == pytest.approx(1)


def test_a_session_whose_tip_is_lost_stands_at_the_turn_before(
    sqlite: SqliteLedger, path: Path, tmp_path: Path
) -> None:
    steps = fill(sqlite)
    sqlite.close()
    tamper(path, lambda connection: connection.execute("update steps set tokens = 99 where id = ?", (steps[-1].id,)))

    new = saved(path, tmp_path / "new.db")

    assert new.session("work").tip == steps[-3].id  # type: ignore[union-attr]
    tell(new, "work", "it goes on")
    new.close()


def test_a_fork_whose_first_turn_is_lost_keeps_what_came_after(
    sqlite: SqliteLedger, path: Path, tmp_path: Path
) -> None:
    sqlite.create("main")
    steps = tell(sqlite, "main", *"abcdef")
    sqlite.create("fork", head=steps[4].id)
    (lost, *_) = tell(sqlite, "fork", *"xyz")
    sqlite.close()
    tamper(path, lambda connection: connection.execute("update steps set tokens = 99 where id = ?", (lost.id,)))

    with closing(saved(path, tmp_path / "new.db")) as new:
        fork = new.session("fork")
        assert fork is not None
        assert texts(new.thread(str(fork.tip))) == ["y", "z"]
        assert texts(new.thread(str(new.session("main").tip))) == [*"abcdef"]  # type: ignore[union-attr]


def test_an_end_whose_session_is_lost_gets_a_name(sqlite: SqliteLedger, path: Path, tmp_path: Path) -> None:
    steps = fill(sqlite)
    sqlite.close()
    tamper(path, lambda connection: connection.execute("update sessions set data = '' where label = 'work'"))

    new = open_sqlite(f"sqlite:///{tmp_path / 'new.db'}")
    report = open_sqlite(f"sqlite:///{path}").repair(new)

    found = {session.label: session.tip for session in new.sessions()}
    assert steps[-1].id in found.values()
    assert list(new.verify()) == []
    assert report.steps == len(list(new.steps()))
    new.close()


def without_sessions(path: Path) -> None:
    """Delete every record of sessions, and leave the steps."""
    tamper(path, lambda connection: connection.executescript("delete from history; delete from sessions;"))


def test_an_open_turn_whose_session_is_lost_is_saved_and_stays_open(
    sqlite: SqliteLedger, path: Path, tmp_path: Path
) -> None:
    sqlite.create("work")
    (closed,) = tell(sqlite, "work", "a turn")
    first = add(sqlite, "work", said("a question", kind="input", closes=False))
    last = add(sqlite, "work", said("not finished", kind="reply", closes=False))
    sqlite.close()
    without_sessions(path)

    new = open_sqlite(f"sqlite:///{tmp_path / 'new.db'}")
    with closing(open_sqlite(f"sqlite:///{path}")) as damaged:
        report = damaged.repair(new)

    (session,) = new.sessions()
    assert (session.head, session.tip, session.open_turn) == (closed.id, last.id, first.id)
    (finding,) = report.lost
    assert str(finding) == (
        f"the session that led to step {last.id} is gone; it is called 'recovered-1' now, and its turn is open: "
        "nothing says whether it went on [session-lost]"
    )
    assert list(new.verify()) == []
    add(new, "recovered-1", said("it goes on", kind="reply"))
    new.close()


def test_a_turn_that_went_on_is_not_saved_as_an_open_one(sqlite: SqliteLedger, path: Path, tmp_path: Path) -> None:
    sqlite.create("work")
    tell(sqlite, "work", "a turn")
    add(sqlite, "work", said("a question", kind="input", closes=False))
    answer = add(sqlite, "work", said("the answer", kind="reply"))
    sqlite.close()
    without_sessions(path)
    tamper(path, lambda connection: connection.execute("update steps set tokens = 99 where id = ?", (answer.id,)))

    with closing(saved(path, tmp_path / "new.db")) as new:
        assert texts(list(new.steps())) == ["a turn"]


def test_a_session_of_which_nothing_is_left_says_so(sqlite: SqliteLedger, path: Path) -> None:
    sqlite.create("work")
    (only,) = tell(sqlite, "work", "a turn")
    sqlite.create("other")
    tell(sqlite, "other", "another")
    sqlite.close()
    tamper(path, lambda connection: connection.execute("update steps set tokens = 99 where id = ?", (only.id,)))

    with closing(open_sqlite(f"sqlite:///{path}")) as damaged:
        report = damaged.repair(MemoryLedger())

    assert str(report.lost[-1]) == (
        f"session 'work' has nothing left that was said: step {only.id} is gone [session-moved]"
    )


def test_the_target_must_be_empty(sqlite: SqliteLedger) -> None:
    fill(sqlite, 4)

    with pytest.raises(LedgerError, match="there is something in it already"):
        sqlite.repair(sqlite)


def test_any_ledger_can_be_copied_into_any_other(ledger: StoreLedger) -> None:
    fill(ledger, 6)
    target = MemoryLedger()

    report = ledger.repair(target)

    assert report.lost == ()
    assert list(target.steps()) == list(ledger.steps())
    assert target.sessions() == ledger.sessions()


@pytest.mark.acceptance("R7")
@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_every_turn_that_is_whole_is_saved_from_a_destroyed_page(
    sqlite: SqliteLedger, path: Path, tmp_path: Path, every: int
) -> None:
    """One page is overwritten; what did not lie on it, and was not referred to by it, is saved.

    All but the first page and those that lead to other pages of a table: SQLite finds no rows without them.
    """
    fill(sqlite)
    original = contents(sqlite)
    sqlite.close()
    content = path.read_bytes()
    chance = random.Random(every)  # noqa: S311 - the same bytes every time
    leads_on = 5  # the first byte of such a page
    pages = [page for page in range(PAGE, len(content), PAGE) if content[page] != leads_on]
    assert len(pages) >= len(content) // PAGE - 2
    pages = pages[::every]
    for page in pages:
        damaged = bytearray(content)
        damaged[page : page + PAGE] = chance.randbytes(PAGE)
        path.write_bytes(damaged)

        with closing(saved(path, tmp_path / f"new-{page}.db")) as new:
            rescued = contents(new)

        assert path.read_bytes() == damaged
        assert all(original[turn] == content for turn, content in rescued.items())
        # At most some turns lie on a page, and all those with a picture refer to one blob.
        assert len(rescued) >= len(original) - 13, page

    count(len(pages))
    figure(f"{len(pages)} of {len(content) // PAGE} pages destroyed, one at a time")


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

    sqlite.close()
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

    assert "`nexus ledger repair NEW` saves what is whole" in str(caught.value)


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
