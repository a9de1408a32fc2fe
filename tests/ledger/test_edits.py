"""Any row that is changed or deleted behind the ledger's back is found, in every table, on every backend."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol

import pytest

from nexus_core.history.ledger.ledger import StoreLedger
from nexus_core.session.importing.sources import keep_source
from nexus_core.values.ledger import NewStep
from nexus_core.values.message import Message
from nexus_core.values.parts import Image
from tests.effort import rounds
from tests.ledger.backends import Backend, add, figure, said, tell
from tests.ledger.test_ledger import PICTURE
from tests.tables import count

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
        import psycopg  # noqa: PLC0415 - only on a server

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
        from psycopg import IntegrityError  # noqa: PLC0415 - as above

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
    source = keep_source(ledger, b"said elsewhere " * 50)
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
    ledger.create("gone", head=first[1].id, data={"transcript": {"source": keep_source(ledger, b"erased")}})
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
@pytest.mark.parametrize("table", [*KEYS])
def test_a_table_that_is_emptied_is_found(backend: Backend, editor: Editor, table: str) -> None:
    _, rows = editor.fetch(f"select * from {table}")  # noqa: S608 - our own names
    editor.edit(f"delete from {table}")  # noqa: S608 - as above

    with closing(backend.open()) as ledger:
        assert bool(list(ledger.verify())) == bool(rows)
