"""Whoever changes a file behind the ledger's back is found out, with the name of the step."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from nexus_core.history.ledger.rows import StepRow, chain_of, digest_of
from nexus_core.values.ledger import NewStep, Step
from nexus_core.values.message import Message
from nexus_core.values.parts import Image
from nexus_plugins.ledger.sqlite import SqliteLedger, open_sqlite
from tests.effort import rounds
from tests.ledger.backends import add, figure, said, tell
from tests.ledger.test_ledger import PICTURE
from tests.tables import count

Change = Callable[[sqlite3.Connection, Step], object]


@pytest.fixture
def steps(sqlite: SqliteLedger) -> list[Step]:
    """A conversation with a fork, an open turn, a picture and a compaction."""
    sqlite.create("work")
    first = tell(sqlite, "work", *(f"turn {number}" for number in range(10)))
    sqlite.create("fork", head=first[4].id, origin="work")
    tell(sqlite, "fork", "another way")
    picture = Message("user", (Image(mime="image/png", data=PICTURE),))
    add(sqlite, "fork", NewStep(kind="turn", closes=True, messages=(picture,), counter="c"))
    add(sqlite, "fork", NewStep(kind="compaction", closes=True, data={"summary": "s", "first_kept": first[3].id}))
    add(sqlite, "fork", said("and?", kind="input", closes=False))
    sqlite.rename("fork", "branch")
    assert list(sqlite.verify()) == []
    return first


def tamper(path: Path, change: Callable[[sqlite3.Connection], object]) -> None:
    """Change a file with plain SQL, as somebody would who knows nothing of ledgers but how to get around triggers."""
    with closing(sqlite3.connect(path)) as connection, connection:
        triggers = connection.execute("select name, sql from sqlite_master where type = 'trigger'").fetchall()
        for name, _ in triggers:
            connection.execute(f"drop trigger {name}")
        change(connection)
        for _, text in triggers:
            connection.execute(text)


def found(sqlite: SqliteLedger) -> str:
    return "\n".join(map(str, sqlite.verify()))


EDITS = {
    "its words": "update steps set messages = replace(messages, 'turn', 'tern') where id = ?",
    "the order of its keys": (
        """update steps set messages = replace(messages, '"nexus":1,"role":"user"', '"role":"user","nexus":1')"""
        " where id = ?"
    ),
    "its data": """update steps set data = '{"model":"x"}' where id = ?""",
    "its time": "update steps set created = created + 1 where id = ?",
    "its tokens": "update steps set tokens = 999 where id = ?",
    "its sum": "update steps set total = 999 where id = ?",
    "its counter": "update steps set counter = 'd' where id = ?",
    "its kind": "update steps set kind = 'reply' where id = ?",
    "its turn": "update steps set turn = (select id from steps where parent is null) where id = ?",
    "that it closes": "update steps set closes = 0 where id = ?",
    "its compaction": "update steps set compaction = (select id from steps where parent is null) where id = ?",
    "its parent": "update steps set parent = (select id from steps where parent is null) where id = ?",
    "its branch": "update steps set branch = (select max(branch) from steps), position = 77 where id = ?",
    "its position": "update steps set position = 77 where id = ?",
    "its digest": "update steps set digest = 'zz' || substr(digest, 3) where id = ?",
    "its chain": "update steps set chain = 'zz' || substr(chain, 3) where id = ?",
    "its type": "update steps set messages = cast(messages as blob) where id = ?",
    "its emptiness": "update steps set messages = '' where id = ?",
}


@pytest.mark.acceptance("R8")
@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_a_step_that_was_edited_is_named(sqlite: SqliteLedger, path: Path, steps: list[Step], edit: str) -> None:
    tamper(path, lambda connection: connection.execute(edit, (steps[6].id,)))

    assert steps[6].id in found(sqlite)


@pytest.mark.acceptance("R8")
@pytest.mark.parametrize("place", [0, 3, 4, 6, 9])
def test_a_step_that_was_deleted_is_noticed_at_the_one_behind_it(
    sqlite: SqliteLedger, path: Path, steps: list[Step], place: int
) -> None:
    tamper(path, lambda connection: connection.execute("delete from steps where id = ?", (steps[place].id,)))

    behind = steps[place + 1].id if place < 9 else steps[place].id
    assert behind in found(sqlite)
    assert "step-missing" in found(sqlite)


@pytest.mark.acceptance("R8")
def test_steps_that_were_exchanged_are_named(sqlite: SqliteLedger, path: Path, steps: list[Step]) -> None:
    def exchange(connection: sqlite3.Connection) -> None:
        for name, position in ((steps[6].id, -1), (steps[7].id, 6), (steps[6].id, 7)):
            connection.execute("update steps set position = ? where id = ?", (position, name))

    tamper(path, exchange)

    assert steps[6].id in found(sqlite)
    assert steps[7].id in found(sqlite)


@pytest.mark.acceptance("R8")
def test_a_step_that_was_put_in_is_named(sqlite: SqliteLedger, path: Path, steps: list[Step]) -> None:
    forged = StepRow(
        *(new_name := "0" * 26, steps[9].id, new_name, steps[9].branch, 10, "turn", 1, "[]", 1, "c", "{}", 11, None),
        *(steps[9].created, "", ""),
    )
    digest = digest_of(forged)
    forged = forged._replace(digest=digest, chain=chain_of(steps[9].chain, digest))  # by somebody who knows the rules

    def put_in(connection: sqlite3.Connection) -> None:
        columns = ", ".join(StepRow._fields)
        marks = ", ".join("?" * len(forged))
        connection.execute(f"insert into steps ({columns}) values ({marks})", forged)  # noqa: S608 - our own names

    tamper(path, put_in)

    assert f"step {forged.id} of turn {forged.id}: no session leads to it [step-stray]" in found(sqlite)


OTHER_EDITS = {
    "a head": "update sessions set head = null where label = 'work'",
    "a tip": "update sessions set tip = (select id from steps where parent is null) where label = 'work'",
    "a name": "update sessions set label = 'x' where label = 'work'",
    "what is known": """update sessions set data = '{"x":1}' where label = 'work'""",
    "a time": "update sessions set updated = updated + 1 where label = 'work'",
    "an alias": "update aliases set alias = 'forks'",
    "an alias's session": "update aliases set session = (select id from sessions where label = 'work')",
    "a note": "update history set changed = changed + 1 where step = (select min(step) from history)",
    "a note that is gone": "delete from history where step = (select head from sessions where label = 'work')",
    "a session that is gone": "delete from sessions where label = 'work'",
    "a branch": "update branches set position = position + 1 where parent is not null",
    "a branch that is gone": "delete from branches where parent is not null",
    "a picture": "update blobs set content = substr(content, 2)",
    "a picture that is gone": "delete from blobs",
}


@pytest.mark.usefixtures("steps")
@pytest.mark.parametrize("edit", OTHER_EDITS.values(), ids=OTHER_EDITS)
def test_whatever_else_was_changed_is_found(sqlite: SqliteLedger, path: Path, edit: str) -> None:
    tamper(path, lambda connection: connection.execute(edit))

    assert found(sqlite) != ""


@pytest.mark.usefixtures("steps")
def test_steps_cannot_be_changed_by_accident(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        for statement in ("update steps set tokens = 0", "delete from steps"):
            with pytest.raises(sqlite3.IntegrityError, match="steps are only ever added"):
                connection.execute(statement)


@pytest.mark.acceptance("T20")
@pytest.mark.usefixtures("steps")
def test_foreign_marks_in_a_row_come_back_as_plain_data(sqlite: SqliteLedger, path: Path) -> None:
    marked = '{"__class__":"os.system","lc":1,"type":"constructor","py/object":"x"}'
    tamper(path, lambda connection: connection.execute("update steps set data = ?", (marked,)))

    kinds = {type(value) for step in sqlite.steps() for value in step.data.values()}

    assert kinds == {str, int}


@pytest.mark.acceptance("R8")
@pytest.mark.parametrize("edits", [20, pytest.param(rounds(500), marks=pytest.mark.slow)])
def test_random_edits_by_sql_are_all_found(sqlite: SqliteLedger, path: Path, steps: list[Step], edits: int) -> None:
    chance = random.Random(7)  # noqa: S311 - the same edits every time
    pristine = path.parent / "pristine.db"
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(pristine)) as copy:
        source.backup(copy)
    sqlite.close()
    missed = 0
    for _ in range(edits):
        for other in (path, Path(f"{path}-wal"), Path(f"{path}-shm")):
            other.unlink(missing_ok=True)
        path.write_bytes(pristine.read_bytes())
        victim = chance.choice(steps[2:]).id
        edit = chance.choice([*EDITS.values(), "delete from steps where id = ?"])
        tamper(path, lambda connection, edit=edit, victim=victim: connection.execute(edit, (victim,)))  # type: ignore[misc]
        with closing(open_sqlite(sqlite.url)) as again:
            missed += victim not in found(again) and "delete" not in edit

    count(edits)
    figure(f"{edits} edits with plain SQL: {missed} not found")
    assert missed == 0
