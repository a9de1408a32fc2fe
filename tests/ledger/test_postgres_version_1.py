"""A server with schema 1: the tables are migrated when they are first used, and a copy of them is kept beside.

The tables are those that a Nexus with schema 1 made, and the rows those that it wrote (to a file, in the same columns).
"""

from __future__ import annotations

import json
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from hashlib import blake2b
from pathlib import Path
from typing import Any

import psycopg
import pytest

from nexus_core import LedgerError
from nexus_plugins.ledger.postgres import open_postgres, schema
from tests.conftest import Cli
from tests.ledger.backends import tell
from tests.ledger.test_version_1 import REPLAYS, SAMPLES, old

pytestmark = [pytest.mark.slow, pytest.mark.acceptance("R22")]

__all__ = ["old"]

TABLES = ("branches", "steps", "sessions", "aliases", "history", "blobs")
"""In an order in which each refers to rows that are there."""
FORMER = ("about", *TABLES)
ADDED = ("deletions", "erased", "names")
NAMES = {"work", "side", "branch", "second-try", "empty"}


@pytest.fixture
def old_server(old: Path, database: str) -> str:
    """A database with the tables of schema 1, and in them everything that is in the old file."""
    with psycopg.connect(database) as server, closing(sqlite3.connect(old)) as file:
        server.execute((SAMPLES / "version-1.postgres.sql").read_bytes())
        for table in TABLES:
            order = "rowid" if table in ("steps", "sessions", "blobs") else "1"
            found = file.execute(f"select * from {table} order by {order}")  # noqa: S608 - our own names
            columns = [column for column, *_ in found.description]
            into = f"insert into nexus.{table} ({', '.join(columns)}) values ({', '.join(['%s'] * len(columns))})"  # noqa: S608 - as above
            with server.cursor() as cursor:
                cursor.executemany(into, found.fetchall())
    return database


def rows(database: str, place: str, tables: tuple[str, ...] = TABLES) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of some tables in a schema of the server."""
    with psycopg.connect(database) as server:
        return {table: server.execute(f"select * from {place}.{table} order by 1, 2").fetchall() for table in tables}  # noqa: S608 - as above


def tables(database: str, place: str) -> list[str]:
    """The tables in a schema of the server."""
    question = "select tablename from pg_catalog.pg_tables where schemaname = %s order by 1"
    with psycopg.connect(database) as server:
        return [name for (name,) in server.execute(question, (place,)).fetchall()]


def version(database: str, place: str = "nexus") -> list[tuple[Any, ...]]:
    with psycopg.connect(database) as server:
        return server.execute(f"select version from {place}.about").fetchall()  # noqa: S608 - as above


def test_an_old_server_is_migrated_with_every_row_and_verifies(old_server: str) -> None:
    before = rows(old_server, "nexus")

    with closing(open_postgres(old_server)) as ledger:
        sessions = [session.label for session in ledger.sessions(status=None)]
        found = list(ledger.verify())

    assert version(old_server) == [(schema.SCHEMA_VERSION,)]
    assert tables(old_server, "nexus") == sorted((*FORMER, *ADDED))
    assert rows(old_server, "nexus") == before
    assert (sorted(sessions), found) == (["empty", "side", "work"], [])


def test_the_names_of_an_old_server_are_known_so_that_a_deleted_one_is_missed(old_server: str) -> None:
    with closing(open_postgres(old_server)) as ledger:
        known = {name for label in ("work", "side", "empty") for name in (label, *ledger.aliases(label))}
        with psycopg.connect(old_server) as server:
            server.execute("delete from nexus.aliases where alias = 'branch'")

        assert known == NAMES == {name for name, _ in rows(old_server, "nexus", ("names",))["names"]}
        assert [str(each) for each in ledger.verify()] == [
            "session 'side': its other name 'branch' is gone [session-changed]"
        ]


def test_a_copy_of_the_old_tables_is_kept_beside(old_server: str) -> None:
    before = rows(old_server, "nexus")

    with closing(open_postgres(old_server)) as ledger:
        tell(ledger, "empty", "Now something is said.")

    assert (version(old_server, "nexus_v1"), tables(old_server, "nexus_v1")) == ([(1,)], sorted(FORMER))
    assert rows(old_server, "nexus_v1") == before
    assert rows(old_server, "nexus") != before


def test_an_old_server_goes_on_and_sessions_can_be_deleted_from_it(old_server: str) -> None:
    with closing(open_postgres(old_server)) as ledger:
        tell(ledger, "side", "It goes on.")
        report = ledger.delete("side", reason="asked to")

        assert report.steps > 0
        assert report.copies == ("the schema nexus_v1 on the server",)
        assert [row.reason for row in ledger.deletions()] == ["asked to"]
        assert ledger.session("side") is None
        assert list(ledger.verify()) == []


def test_steps_of_a_migrated_server_cannot_be_changed(old_server: str) -> None:
    with closing(open_postgres(old_server)) as ledger:
        ledger.sessions()

    for change in ("update nexus.steps set messages = '[]', data = '{}'", "delete from nexus.steps"):
        with psycopg.connect(old_server) as server, pytest.raises(psycopg.Error, match="steps are only ever added"):
            server.execute(change)


def test_an_old_server_is_replayed_byte_for_byte(cli: Cli, old_server: str) -> None:
    replayed = {}
    for name in REPLAYS:
        outcome = cli("session", "replay", name, "--dialect", "openai", "--ledger", old_server)
        assert outcome.code == 0, outcome.err
        replayed[name] = blake2b(outcome.out.encode(), digest_size=32).hexdigest()

    assert replayed == REPLAYS


def test_of_many_that_open_an_old_server_at_once_one_migrates_it(old_server: str) -> None:
    def look(_number: int) -> list[str]:
        with closing(open_postgres(old_server)) as ledger:
            return sorted(session.label for session in ledger.sessions(status=None))

    with ThreadPoolExecutor(8) as pool:
        seen = list(pool.map(look, range(8)))

    assert seen == [["empty", "side", "work"]] * 8
    assert version(old_server) == [(schema.SCHEMA_VERSION,)]
    with closing(open_postgres(old_server)) as ledger:
        assert list(ledger.verify()) == []


def test_a_migration_that_fails_leaves_the_old_tables(old_server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = rows(old_server, "nexus")
    broken = (*schema.MIGRATIONS[1], "select 1 / 0")
    with monkeypatch.context() as patched:
        patched.setitem(schema.MIGRATIONS, 1, broken)
        with closing(open_postgres(old_server)) as ledger, pytest.raises(Exception, match="division by zero"):
            ledger.sessions()

        assert (version(old_server), tables(old_server, "nexus_v1")) == ([(1,)], [])
        assert (tables(old_server, "nexus"), rows(old_server, "nexus")) == (sorted(FORMER), before)

    with closing(open_postgres(old_server)) as ledger:
        assert list(ledger.verify()) == []


def test_an_old_server_can_be_migrated_by_its_first_command(cli: Cli, old_server: str) -> None:
    listed = json.loads(cli("session", "list", "--all", "--json", "--ledger", old_server).out)

    assert sorted(session["label"] for session in listed["sessions"]) == ["empty", "side", "work"]
    assert cli("session", "verify", "--ledger", old_server).code == 0


def test_a_version_that_others_set_back_is_refused(old_server: str) -> None:
    with closing(open_postgres(old_server)) as ledger:
        ledger.sessions()
    with psycopg.connect(old_server, autocommit=True) as server:
        server.execute("update nexus.about set version = 1")

    refusal = "its schema version is 1, but it has a later schema's table"
    with closing(open_postgres(old_server)) as ledger, pytest.raises(LedgerError, match=refusal):
        ledger.sessions()
    assert version(old_server) == [(1,)]
