"""What is whole in a damaged file is saved into a new one, and the damaged one is left alone."""

from __future__ import annotations

import random
from contextlib import closing
from pathlib import Path

import pytest

from nexus_core.errors import LedgerError
from nexus_core.history.ledger.ledger import StoreLedger
from nexus_core.history.ledger.memory import MemoryLedger
from nexus_core.values.ledger import NewStep, Step
from nexus_core.values.message import Message
from nexus_core.values.parts import Image
from nexus_plugins.ledger.sqlite import SqliteLedger, open_sqlite
from tests.ledger.backends import add, figure, said, tell, texts
from tests.ledger.test_chain import tamper
from tests.ledger.test_ledger import PICTURE
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


def test_a_file_in_which_nothing_is_whole_makes_no_new_one(path: Path, tmp_path: Path) -> None:
    path.write_bytes(b"no ledger, and never was one" * 1000)

    with (
        closing(open_sqlite(f"sqlite:///{tmp_path / 'new.db'}")) as new,
        pytest.raises(LedgerError, match="nothing in it"),
    ):
        open_sqlite(f"sqlite:///{path}").repair(new)

    assert not (tmp_path / "new.db").exists()


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
    assert report.turns == 44
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
    """One page is overwritten; what did not lie on it, and was not referred to by it, is saved."""
    fill(sqlite)
    original = contents(sqlite)
    sqlite.close()
    content = path.read_bytes()
    chance = random.Random(every)  # noqa: S311 - the same bytes every time
    pages = range(0, len(content), PAGE * every)
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
