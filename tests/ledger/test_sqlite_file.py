"""The file: what is taken for a ledger, what is refused and left alone, and who may read it."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from nexus_core import NexusClosedError
from nexus_core.errors import LedgerError
from nexus_core.types.ledger import NewStep
from nexus_plugins.ledger.sqlite import SqliteLedger, open_sqlite, schema
from nexus_plugins.ledger.sqlite.database import connect_read_only
from tests.ledger.backends import tell, texts


def opened(path: Path) -> SqliteLedger:
    return open_sqlite(f"sqlite:///{path}")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def loose_umask() -> Iterator[None]:
    """Nothing is kept from anybody unless somebody says so."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.acceptance("H-10")
def test_conversations_are_kept_in_a_file_of_sqlite(path: Path) -> None:
    with closing(opened(path)) as ledger:
        ledger.create("work")
        tell(ledger, "work", "hello")

    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("select count(*) from steps").fetchone() == (1,)
        assert connection.execute("pragma journal_mode").fetchone() == ("wal",)
        assert connection.execute("pragma application_id").fetchone() == (schema.APPLICATION_ID,)
        assert connection.execute("pragma user_version").fetchone() == (schema.SCHEMA_VERSION,)


def test_the_connection_waits_for_the_disk_and_keeps_references_true(sqlite: SqliteLedger) -> None:
    sqlite.create("work")

    ((synchronous,),) = sqlite.store.read(lambda: sqlite.store.fetch("pragma synchronous"))
    ((foreign,),) = sqlite.store.read(lambda: sqlite.store.fetch("pragma foreign_keys"))

    assert (synchronous, foreign) == (2, 1)


@pytest.mark.usefixtures("loose_umask")
def test_nobody_else_can_read_it(tmp_path: Path) -> None:
    path = tmp_path / "new" / "deep" / "ledger.db"
    with closing(opened(path)) as ledger:
        ledger.create("work")
        tell(ledger, "work", "hello")

        assert {file.name: mode(file) for file in path.parent.iterdir()} == {
            "ledger.db": 0o600,
            "ledger.db-wal": 0o600,
            "ledger.db-shm": 0o600,
        }
    assert mode(path.parent) == mode(path.parent.parent) == 0o700


def test_whoever_only_looks_makes_no_file(tmp_path: Path) -> None:
    with closing(opened(tmp_path / "new" / "ledger.db")) as ledger:
        assert (ledger.session("work"), ledger.sessions(), list(ledger.steps())) == (None, [], [])
        assert (ledger.step("x"), ledger.blob("x"), list(ledger.verify())) == (None, None, [])
        assert list(tmp_path.iterdir()) == []

        ledger.create("work")

        assert [session.label for session in ledger.sessions()] == ["work"]
    assert [file.name for file in (tmp_path / "new").iterdir()] == ["ledger.db"]


def test_what_is_made_by_another_is_seen_by_whoever_looked_before(path: Path) -> None:
    with closing(opened(path)) as early, closing(opened(path)) as other:
        assert early.sessions() == []

        other.create("work")

        assert [session.label for session in early.sessions()] == ["work"]


def database(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)
        connection.commit()


def empty(path: Path) -> None:
    path.write_bytes(b"")


def words(path: Path) -> None:
    path.write_text("These are words, and more than a hundred characters of them. " * 3)


def short(path: Path) -> None:
    path.write_bytes(b"SQLite format 3\0")


def another(path: Path) -> None:
    database(path, "create table cookies (x)")


def later(path: Path) -> None:
    with closing(opened(path)) as ledger:
        ledger.create("work")
    database(path, f"pragma user_version = {schema.SCHEMA_VERSION + 1}")


def directory(path: Path) -> None:
    path.mkdir()


def pipe(path: Path) -> None:
    os.mkfifo(path)


WRONG = {
    empty: "is empty",
    words: "not a ledger",
    short: "not a ledger",
    another: "another program",
    later: "newer Nexus",
    directory: "not a regular file",
    pipe: "not a regular file",
}


@pytest.mark.acceptance("R7")
@pytest.mark.parametrize("make", WRONG, ids=lambda make: make.__name__)
@pytest.mark.parametrize("deed", ["session", "append", "verify"])
def test_what_is_no_ledger_is_refused_and_left_as_it_is(path: Path, make: object, deed: str) -> None:
    make(path)  # type: ignore[operator]
    before = path.read_bytes() if path.is_file() else None
    ledger = opened(path)

    if deed == "verify":
        message = "\n".join(map(str, ledger.verify()))
    else:
        with pytest.raises(LedgerError) as caught:
            ledger.session("work") if deed == "session" else ledger.append("work", NewStep(kind="turn"), after=None)
        message = str(caught.value)
        assert str(path) in message
        assert caught.value.hint

    assert WRONG[make] in message  # type: ignore[index]
    assert (path.read_bytes() if path.is_file() else None) == before
    assert [file.name for file in path.parent.iterdir() if file.name.startswith(".")] == []
    ledger.close()


def open_files(path: Path) -> list[Path]:
    """Return the files of a ledger that this process has open."""
    targets = [each.resolve() for each in Path("/proc/self/fd").iterdir()]
    return [target for target in targets if str(target).startswith(str(path.resolve()))]


def read_whole_ledger(path: Path) -> None:
    list(opened(path).steps())


def read_without_writing(path: Path) -> None:
    try:
        sqlite3.connect("file:/no/such/file?mode=ro", uri=True)
    except sqlite3.OperationalError as error:
        connect_read_only(path, error)


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="there is no list of open files")
@pytest.mark.parametrize("read", [read_whole_ledger, read_without_writing])
def test_refused_file_is_closed(path: Path, read: Callable[[Path], None]) -> None:
    later(path)

    with pytest.raises(LedgerError, match="newer Nexus") as refusal:
        read(path)

    assert open_files(path) == []
    assert refusal.tb is not None  # it refers to everything that was not closed


@pytest.mark.parametrize("url", ["sqlite:", "sqlite://", "sqlite:///", "sqlite://x.db", "sqlite:////tmp/"])
def test_a_url_names_a_file(url: str) -> None:
    with pytest.raises(LedgerError, match="names no file"):
        open_sqlite(url)


def test_a_path_may_hold_any_character(tmp_path: Path) -> None:
    for name in ("a b.db", "a%20b.db", "a?mode=memory.db", "a#b.db", "ü🦊.db", "'; drop.db", ":memory:"):
        with closing(opened(tmp_path / name)) as ledger:
            ledger.create("work")

        assert (tmp_path / name).stat().st_size > 0
    assert len(list(tmp_path.iterdir())) == 7


def test_a_directory_that_cannot_be_made_is_an_error_with_its_cause(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ledger = opened(tmp_path / "file" / "ledger.db")

    with pytest.raises(LedgerError, match="Not a directory") as caught:
        ledger.create("work")

    assert str(tmp_path / "file" / "ledger.db") in str(caught.value)


def test_a_closed_ledger_says_so(sqlite: SqliteLedger) -> None:
    sqlite.create("work")
    sqlite.close()
    sqlite.close()

    with pytest.raises(NexusClosedError, match="the ledger is closed"):
        sqlite.session("work")


def test_what_one_has_written_another_reads_at_once(path: Path) -> None:
    with closing(opened(path)) as one, closing(opened(path)) as two:
        one.create("work")
        tell(one, "work", "hello")

        assert texts(two.thread(str(two.session("work").tip))) == ["hello"]  # type: ignore[union-attr]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked here")
def test_a_process_that_was_forked_has_a_connection_of_its_own(sqlite: SqliteLedger) -> None:
    sqlite.create("work")
    tell(sqlite, "work", "parent")

    child = os.fork()
    if child == 0:
        tell(sqlite, "work", "child")
        os._exit(0)
    os.waitpid(child, 0)
    tell(sqlite, "work", "parent again")

    assert texts(sqlite.thread(str(sqlite.session("work").tip))) == ["parent", "child", "parent again"]  # type: ignore[union-attr]


# ---- migrations -------------------------------------------------------------------------------------------


@pytest.fixture
def next_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    """The schema after this one."""
    statements = ("alter table sessions add column mood text", "create table moods (mood text)")
    monkeypatch.setattr(schema, "SCHEMA_VERSION", schema.SCHEMA_VERSION + 1)
    monkeypatch.setitem(schema.MIGRATIONS, schema.SCHEMA_VERSION - 1, statements)


@pytest.mark.acceptance("R22")
def test_an_older_file_is_brought_up_to_date_with_a_copy_beside(path: Path, request: pytest.FixtureRequest) -> None:
    with closing(opened(path)) as ledger:
        ledger.create("work")
        tell(ledger, "work", "hello")
    request.getfixturevalue("next_schema")

    with closing(opened(path)) as ledger:
        assert texts(ledger.thread(str(ledger.session("work").tip))) == ["hello"]  # type: ignore[union-attr]
        tell(ledger, "work", "again")

    copy = path.with_name(f"ledger.db.v{schema.SCHEMA_VERSION - 1}")
    with closing(sqlite3.connect(path)) as new, closing(sqlite3.connect(copy)) as old:
        assert new.execute("pragma user_version").fetchone() == (schema.SCHEMA_VERSION,)
        assert new.execute("select count(*) from moods").fetchone() == (0,)
        assert old.execute("pragma user_version").fetchone() == (schema.SCHEMA_VERSION - 1,)
        assert old.execute("select count(*) from steps").fetchone() == (1,)
    assert mode(copy) == 0o600


def test_a_migration_that_fails_leaves_the_file_as_it_was(
    path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    with closing(opened(path)) as ledger:
        ledger.create("work")
    request.getfixturevalue("next_schema")
    monkeypatch.setitem(
        schema.MIGRATIONS, schema.SCHEMA_VERSION - 1, ("create table moods (mood text)", "this is no statement")
    )

    with pytest.raises(LedgerError, match="syntax error"):
        opened(path).session("work")

    monkeypatch.undo()
    with closing(opened(path)) as ledger:
        assert ledger.session("work") is not None
        assert list(ledger.verify()) == []


@pytest.mark.acceptance("R6")
@pytest.mark.parametrize("fate", ["deleted", "moved", "replaced"])
@pytest.mark.skipif(os.name == "nt", reason="Windows keeps open files where they are")
def test_a_file_that_vanishes_while_open_acknowledges_nothing(sqlite: SqliteLedger, path: Path, fate: str) -> None:
    sqlite.create("work")
    tell(sqlite, "work", "kept")
    aside = path.with_name("aside.db")
    path.rename(aside)
    if fate == "deleted":
        aside.unlink()
    if fate == "replaced":
        path.write_bytes(b"")

    for _ in range(2):
        with pytest.raises(LedgerError, match="was deleted, moved or replaced while it was open; nothing was written"):
            tell(sqlite, "work", "lost")

    if fate != "moved":
        return
    aside.rename(path)
    tell(sqlite, "work", "again")
    assert list(sqlite.verify()) == []
