"""The log beside the file: it stays short, and it is copied into the file while nobody else can write."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from nexus_plugins.ledger.sqlite import SqliteLedger, database, open_sqlite
from tests.ledger.backends import tell

MEGABYTE = 1024 * 1024
LARGE = "a lot " * 60_000


def length(path: Path) -> int:
    return path.with_name("ledger.db-wal").stat().st_size


@pytest.fixture
def full_log(path: Path, sqlite: SqliteLedger) -> SqliteLedger:
    """A ledger whose log is as long as it gets: whatever comes next copies it."""
    sqlite.create("work")
    while length(path) < 4 * MEGABYTE - len(LARGE):
        tell(sqlite, "work", LARGE)
    return sqlite


def test_the_log_stays_short_however_much_is_written(path: Path, sqlite: SqliteLedger) -> None:
    sqlite.create("work")

    with closing(open_sqlite(f"sqlite:///{path}")) as other:
        for _ in range(9):
            tell(sqlite, "work", LARGE, LARGE)
            tell(other, "work", LARGE)

    assert path.stat().st_size > 8 * MEGABYTE
    assert length(path) < 5 * MEGABYTE


def test_a_log_that_was_kept_long_by_a_reader_is_not_longer_afterwards(path: Path, sqlite: SqliteLedger) -> None:
    sqlite.create("work")
    tell(sqlite, "work", "hello")
    with sqlite.store.snapshot() as still:
        tell(sqlite, "work", *[LARGE] * 12)
        assert len(list(still.step_rows())) == 1
    tell(sqlite, "work", LARGE)
    longest = length(path)

    tell(sqlite, "work", *[LARGE] * 12)

    assert length(path) == longest


def test_while_the_log_is_copied_nobody_can_write(full_log: SqliteLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before SQLite 3.51.3, a log that is begun anew while it is copied can damage the file."""
    refused: list[str] = []
    connect_to_file = database.connect_to_file

    def connect(path: Path) -> sqlite3.Connection:
        with closing(sqlite3.connect(path, timeout=0)) as another, pytest.raises(sqlite3.OperationalError) as caught:
            another.execute("begin immediate")
        refused.append(str(caught.value))
        return connect_to_file(path)

    monkeypatch.setattr(database, "connect_to_file", connect)
    tell(full_log, "work", LARGE, LARGE)

    assert refused == ["database is locked"]


def test_a_log_that_cannot_be_copied_is_left_to_the_next_who_writes(
    path: Path, full_log: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Path) -> sqlite3.Connection:
        raise sqlite3.OperationalError("disk I/O error")

    with monkeypatch.context() as broken:
        broken.setattr(database, "connect_to_file", fail)
        kept = tell(full_log, "work", LARGE, LARGE)
    before = path.stat().st_size
    tell(full_log, "work", LARGE)

    assert path.stat().st_size > before
    assert {step.id for step in kept} <= {step.id for step in full_log.steps()}
    assert list(full_log.verify()) == []


PRAGMAS = {
    "synchronous": 2,
    "foreign_keys": 1,
    "trusted_schema": 0,
    "cell_size_check": 1,
    "mmap_size": 0,
    "wal_autocheckpoint": 0,
}


@pytest.mark.parametrize("pragma", PRAGMAS)
def test_the_same_is_said_on_every_connection(path: Path, sqlite: SqliteLedger, pragma: str) -> None:
    """Nothing of the file is mapped into memory, and no connection copies the log of its own accord."""
    sqlite.create("work")

    ((of_writer,),) = sqlite.store.read(lambda: sqlite.store.fetch(f"pragma {pragma}"))
    with sqlite.store.snapshot() as still:
        ((of_snapshot,),) = still.fetch(f"pragma {pragma}")
    with closing(database.connect_immutable(path)) as connection:
        ((of_looker,),) = connection.execute(f"pragma {pragma}").fetchall()

    assert (of_writer, of_snapshot, of_looker) == (PRAGMAS[pragma],) * 3
