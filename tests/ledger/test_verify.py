"""Changes behind the ledger's back are found in every table, on every backend."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol

import pytest

from nexus_core.ledger.ledger import StoreLedger
from nexus_core.ledger.store import StepRow, compute_chain_digest, compute_step_digest
from nexus_core.transfer.importer import BackgroundCompressor
from nexus_core.types.ledger import NewStep, Step
from nexus_core.types.messages import Image, Message
from nexus_plugins.ledger.sqlite import SqliteLedger, open_sqlite
from tests.effort import rounds
from tests.ledger.backends import Backend, add, figure, said, tell
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


def store_file(ledger: StoreLedger, content: bytes) -> str:
    with BackgroundCompressor(content) as file:
        return file.store(ledger)


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
    digest = compute_step_digest(forged)
    forged = forged._replace(
        digest=digest, chain=compute_chain_digest(steps[9].chain, digest)
    )  # by somebody who knows the rules

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


KEYS = {
    "branches": ("id",),
    "steps": ("id",),
    "sessions": ("id",),
    "aliases": ("alias",),
    "history": ("session", "step"),
    "blobs": ("digest",),
    "names": ("name",),
    "deletions": ("id",),
    "erased": ("kind", "name", "deletion"),
}


class Editor(Protocol):
    """A database that is edited behind the ledger's back."""

    def fetch(self, statement: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        """The names of the columns, and the rows."""

    def edit(self, statement: str, *bound: object) -> bool:
        """Change something, whatever triggers and foreign keys say; False if the database itself refuses."""

    def restore(self) -> None:
        """Put everything back."""


class SqliteEditor:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.content = path.read_bytes()

    def fetch(self, statement: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        with closing(sqlite3.connect(self.path)) as connection:
            cursor = connection.execute(statement)
            return [column[0] for column in cursor.description], cursor.fetchall()

    def edit(self, statement: str, *bound: object) -> bool:
        with closing(sqlite3.connect(self.path)) as connection, connection:
            triggers = connection.execute("select name, sql from sqlite_master where type = 'trigger'").fetchall()
            for name, _ in triggers:
                connection.execute(f"drop trigger {name}")
            try:
                connection.execute(statement, bound)
            except sqlite3.IntegrityError:
                connection.rollback()
                return False
            for _, text in triggers:
                connection.execute(text)
        return True

    def restore(self) -> None:
        for beside in ("-wal", "-shm"):
            Path(f"{self.path}{beside}").unlink(missing_ok=True)
        self.path.write_bytes(self.content)


class PostgresEditor:
    def __init__(self, url: str) -> None:
        import psycopg

        self.connection = psycopg.connect(url, autocommit=True)
        self.connection.execute("set session_replication_role = replica")  # neither triggers nor foreign keys
        self.connection.execute("set search_path = nexus")
        self.connection.execute("create schema pristine")
        for table in KEYS:
            self.connection.execute(f"create table pristine.{table} as table nexus.{table}")

    def fetch(self, statement: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        cursor = self.connection.execute(statement)
        return [column.name for column in cursor.description or ()], cursor.fetchall()

    def edit(self, statement: str, *bound: object) -> bool:
        from psycopg import IntegrityError

        try:
            self.connection.execute(statement.replace("?", "%s"), bound)
        except IntegrityError:
            return False
        return True

    def restore(self) -> None:
        for table in KEYS:
            self.connection.execute(f"truncate nexus.{table} cascade")
        for table in KEYS:
            self.connection.execute(f"insert into nexus.{table} table pristine.{table}")


def fill_everything(ledger: StoreLedger) -> None:
    """A ledger with rows of every kind: names, forks, pictures, prompts, settings, an imported file, deletions."""
    view = ledger.put_blob(b'[{"id":"a","title":"A","kind":"workspace","order":1,"text":"rules"}]')
    prompt = ledger.put_blob(f'{{"system":"rules","tools":[],"view":"{view}"}}'.encode())
    settings = ledger.put_blob(b'{"budget":{}}')
    sent = {"epoch": prompt, "view": view, "setup": settings}
    source = store_file(ledger, b"said elsewhere " * 50)
    ledger.create("work", data={"transcript": {"source": source}})
    first = tell(ledger, "work", *(f"turn {number}" for number in range(4)))
    add(ledger, "work", NewStep(kind="turn", closes=True, messages=(Message("user", "sent"),), data=sent))
    ledger.create("fork", head=first[2].id, origin="work")
    tell(ledger, "fork", "another way")
    picture = Message("user", (Image(mime="image/png", data=PICTURE),))
    add(ledger, "fork", NewStep(kind="turn", closes=True, messages=(picture,), counter="c"))
    add(ledger, "fork", NewStep(kind="compaction", closes=True, data={"summary": "s", "first_kept": first[1].id}))
    add(ledger, "fork", said("and?", kind="input", closes=False))
    ledger.rename("fork", "side")
    ledger.rename("side", "branch")
    ledger.create("same place", head=first[3].id)
    ledger.create("empty")
    ledger.create("gone", head=first[1].id, data={"transcript": {"source": store_file(ledger, b"erased")}})
    tell(ledger, "gone", "erased", "and erased")
    ledger.delete("gone", reason="a test")
    ledger.create("gone too")
    ledger.delete("gone too")
    assert list(ledger.verify()) == []


@pytest.fixture
def editor(backend: Backend) -> Iterator[Editor]:
    if backend.name == "memory":
        pytest.skip("nothing else can change it")
    with closing(backend.open()) as ledger:
        fill_everything(ledger)
    if backend.name == "sqlite":
        yield SqliteEditor(Path(backend.url.removeprefix("sqlite:///")))
        return
    editor = PostgresEditor(backend.url)
    yield editor
    editor.connection.close()


def changed(value: Any, chance: random.Random) -> Any:
    """Another value of the same type."""
    if value is None:
        return "0" * 26
    if isinstance(value, int):
        return value + chance.choice((-1, 1, 1000))
    if isinstance(value, bytes):
        return bytes([value[0] ^ 1]) + value[1:]
    at = chance.randrange(len(value)) if value else 0
    return value[:at] + ("x" if value[at : at + 1] != "x" else "y") + value[at + 1 :]


def every_edit(editor: Editor, chance: random.Random) -> Iterator[tuple[str, tuple[object, ...]]]:
    """A deletion of every row, and a change of every column of every row."""
    for table, keys in KEYS.items():
        columns, rows = editor.fetch(f"select * from {table} order by 1, 2")  # noqa: S608 - our own names
        where = " and ".join(f"{key} = ?" for key in keys)
        for row in rows:
            bound = tuple(row[columns.index(key)] for key in keys)
            yield f"delete from {table} where {where}", bound  # noqa: S608 - as above
            for column, value in zip(columns, row, strict=True):
                new = changed(value, chance)
                yield f"update {table} set {column} = ? where {where}", (new, *bound)  # noqa: S608 - as above


def missed_edits(editor: Editor, edits: list[tuple[str, tuple[object, ...]]], look: Callable[[], bool]) -> list[str]:
    """The edits that are not found, of those that the database lets through."""
    missed = []
    for statement, bound in edits:
        if not editor.edit(statement, *bound):
            continue
        count(1)
        if not look():
            missed.append(f"{statement} {bound}")
        editor.restore()
    return missed


@pytest.mark.acceptance("R8")
@pytest.mark.parametrize("number", [60, pytest.param(rounds(600), marks=pytest.mark.slow)])
def test_random_edits_and_deletions_in_every_table_are_found(backend: Backend, editor: Editor, number: int) -> None:
    chance = random.Random(11)  # noqa: S311 - the same edits every time
    every = list(every_edit(editor, chance))
    edits = chance.sample(every, min(number, len(every)))

    def look() -> bool:
        with closing(backend.open()) as ledger:
            return bool(list(ledger.verify()))

    missed = missed_edits(editor, edits, look)

    figure(f"{len(edits)} of {len(every)} edits by SQL ({backend.name}): {len(missed)} not found")
    assert missed == []


@pytest.mark.acceptance("R8")
def test_a_trigger_of_somebody_else_is_found(backend: Backend, editor: Editor) -> None:
    if backend.name == "sqlite":
        with closing(sqlite3.connect(Path(backend.url.removeprefix("sqlite:///")))) as connection:
            connection.execute("create trigger theirs after insert on steps begin delete from blobs; end")
    else:
        editor.edit("create rule theirs as on insert to blobs do instead nothing")

    with closing(backend.open()) as ledger:
        (finding,) = ledger.verify()

    assert finding.code == "ledger-damaged"
    assert "'theirs'" in finding.message


@pytest.mark.acceptance("R8")
@pytest.mark.parametrize("table", [*KEYS])
def test_a_table_that_is_emptied_is_found(backend: Backend, editor: Editor, table: str) -> None:
    _, rows = editor.fetch(f"select * from {table}")  # noqa: S608 - our own names
    editor.edit(f"delete from {table}")  # noqa: S608 - as above

    with closing(backend.open()) as ledger:
        assert bool(list(ledger.verify())) == bool(rows)
