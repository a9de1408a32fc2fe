"""How often the server is waited for, and what becomes of a change when that goes wrong in the middle."""

from __future__ import annotations

import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import groupby
from pathlib import Path
from typing import IO, Any

import psycopg
import pytest
from psycopg import errors

from nexus_core.errors import ConflictError, LedgerError
from nexus_core.ledger.ledger import StoreLedger
from nexus_core.types.ledger import NewStep, Step
from nexus_core.types.messages import Message
from nexus_plugins.ledger.postgres import open_postgres
from nexus_plugins.ledger.postgres.connection import BoundStatement, PipelineConnection, connect_to_server
from nexus_plugins.ledger.postgres.store import PostgresStore
from nexus_plugins.ledger.sqlite import open_sqlite
from tests.ledger.backends import add, said, tell, texts
from tests.ledger.experiments import CUT
from tests.ledger.test_ledger import PICTURE
from tests.ledger.test_rebuild import fill

pytestmark = pytest.mark.slow


@pytest.fixture
def ledger(database: str) -> Iterator[StoreLedger]:
    with closing(open_postgres(database)) as opened:
        yield opened


def thread(ledger: StoreLedger, label: str = "work") -> list[str]:
    """What was said in a session."""
    session = ledger.session(label)
    return texts(ledger.thread(str(session.tip))) if session and session.tip else []


# ---- how often --------------------------------------------------------------------------------------------


class Wire:
    """What libpq writes down of each message between here and the server."""

    def __init__(self, file: IO[str]) -> None:
        self.file = file

    def journeys(self, work: Callable[[], object]) -> int:
        """How often the server was waited for: something was sent, and then something came."""
        before = self.file.seek(0, 2)
        work()
        self.file.seek(before)
        directions = re.findall(r"^[-0-9:. ]+\t([FB])\t", self.file.read(), re.MULTILINE)
        return [way for way, _ in groupby(directions)].count("F")


@pytest.fixture
def wire(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Wire]:
    if sys.platform != "linux":
        pytest.skip("libpq is traced on Linux only")
    with (tmp_path / "wire").open("w+") as file:

        def traced(url: str) -> psycopg.Connection[Any]:
            connection = connect_to_server(url)
            connection.pgconn.trace(file.fileno())
            return connection

        monkeypatch.setattr("nexus_plugins.ledger.postgres.store.connect_to_server", traced)
        yield Wire(file)


@pytest.mark.parametrize("steps", [1, 2, 25])
def test_steps_are_added_in_two_journeys_however_many_they_are(wire: Wire, ledger: StoreLedger, steps: int) -> None:
    ledger.create("work")
    new = [said(str(number)) for number in range(steps)]

    first = wire.journeys(lambda: ledger.append_many("work", new, after=None))
    tip = ledger.session("work").tip  # type: ignore[union-attr]
    later = wire.journeys(lambda: ledger.append_many("work", new, after=tip))

    assert (first, later) == (2, 2)
    assert thread(ledger) == [str(number) for number in range(steps)] * 2


def test_a_step_with_a_picture_takes_no_more_journeys(wire: Wire, ledger: StoreLedger) -> None:
    ledger.create("work")
    shown = Message("user", "look", extra={"data": PICTURE})
    new = NewStep(kind="turn", closes=True, messages=(shown,))

    assert wire.journeys(lambda: ledger.append("work", new, after=None)) == 2
    assert ledger.thread(str(ledger.session("work").tip))[0].messages == (shown,)  # type: ignore[union-attr]


def test_a_fork_takes_no_more_journeys(wire: Wire, ledger: StoreLedger) -> None:
    ledger.create("work")
    (head, _) = tell(ledger, "work", "a", "b")
    ledger.create("fork", head=head.id)

    assert wire.journeys(lambda: ledger.append("fork", said("c"), after=head.id)) == 2
    assert thread(ledger, "fork") == ["a", "c"]


@pytest.mark.parametrize(
    ("work", "journeys"),
    [
        (lambda ledger: ledger.session("work"), 1),
        (lambda ledger: ledger.create("other"), 2),
        (lambda ledger: ledger.create("other", steps=[said("x")]), 2),
        (lambda ledger: ledger.update("work", data={"mood": "fine"}), 2),
        (lambda ledger: ledger.put_blob(b"x"), 2),
        (lambda ledger: ledger.put_blobs([b"x", b"y", b"z"]), 2),
    ],
)
def test_little_else_takes_more(
    wire: Wire, ledger: StoreLedger, work: Callable[[StoreLedger], object], journeys: int
) -> None:
    ledger.create("work")
    tell(ledger, "work", "a")

    assert wire.journeys(lambda: work(ledger)) == journeys


def test_a_ledger_is_copied_in_as_many_journeys_whatever_its_length(wire: Wire, database: str, tmp_path: Path) -> None:
    def copied(turns: int) -> int:
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute("drop schema if exists nexus cascade")
        source, target = open_sqlite(f"sqlite:///{tmp_path}/{turns}.db"), open_postgres(database)
        with closing(source), closing(target):
            fill(source, turns)
            journeys = wire.journeys(lambda: source.repair(target))
            assert list(target.verify()) == []
            assert [*target.steps()] == [*source.steps()]
        return journeys

    assert copied(5) == copied(60)


# ---- what goes wrong --------------------------------------------------------------------------------------


def disturb(monkeypatch: pytest.MonkeyPatch, disturbance: Callable[[Callable[[], Any]], Any]) -> list[str]:
    """The first time that something is to be committed, it is left to `disturbance`; returns when that happened."""
    ask = PipelineConnection.execute_all
    happened: list[str] = []

    def disturbed(line: PipelineConnection, statements: Sequence[BoundStatement]) -> Any:
        if statements[-1].text != "commit" or happened:
            return ask(line, statements)
        happened.append(statements[-1].text)
        return disturbance(lambda: ask(line, statements))

    monkeypatch.setattr(PipelineConnection, "execute_all", disturbed)
    return happened


@pytest.mark.acceptance("R4")
def test_a_server_that_leaves_between_the_journeys_is_asked_again(
    database: str, ledger: StoreLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut(commit: Callable[[], Any]) -> Any:
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute(CUT)
        return commit()

    ledger.create("work")
    happened = disturb(monkeypatch, cut)

    tell(ledger, "work", "a", "b")

    assert happened == ["commit"]
    assert thread(ledger) == ["a", "b"]


@pytest.mark.acceptance("R4")
def test_a_step_whose_answer_got_lost_is_found_and_not_added_again(
    ledger: StoreLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose(commit: Callable[[], Any]) -> Any:
        list(commit())
        raise psycopg.OperationalError("the answer got lost")

    ledger.create("work")
    happened = disturb(monkeypatch, lose)

    tell(ledger, "work", "a", "b")

    assert happened == ["commit"]
    assert thread(ledger) == ["a", "b"]
    assert list(ledger.verify()) == []


@pytest.mark.parametrize("error", [errors.SerializationFailure, errors.DeadlockDetected, errors.UniqueViolation])
def test_who_was_too_late_tries_again(
    ledger: StoreLedger, monkeypatch: pytest.MonkeyPatch, error: type[psycopg.Error]
) -> None:
    def refuse(_commit: Callable[[], Any]) -> Any:
        raise error("somebody else was faster")

    ledger.create("work")
    happened = disturb(monkeypatch, refuse)

    tell(ledger, "work", "a", "b")

    assert happened == ["commit"]
    assert thread(ledger) == ["a", "b"]


def test_the_options_of_a_url_count_and_what_a_ledger_needs_does_too(database: str) -> None:
    options = "options=-c%20statement_timeout%3D4321%20-c%20synchronous_commit%3Doff"
    url = f"{database}{'&' if '?' in database else '?'}{options}"

    with closing(connect_to_server(url)) as connection:
        names = ("statement_timeout", "search_path", "synchronous_commit", "client_encoding")
        shown = [connection.execute(f"show {name}").fetchall()[0][0] for name in names]

    assert shown == ["4321ms", "nexus", "on", "UTF8"]


@pytest.mark.parametrize("isolation", ["read committed", "repeatable read", "serializable"])
def test_writers_lose_nothing_however_strictly_the_server_isolates(database: str, isolation: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(f"alter database {name} set default_transaction_isolation = '{isolation}'")
    with closing(open_postgres(database)) as ledger:
        ledger.create("work")

    def write(writer: int) -> None:
        with closing(open_postgres(database)) as own:
            for number in range(10):
                insist(own, said(f"{writer}.{number}"))

    writers = [threading.Thread(target=write, args=(writer,)) for writer in range(4)]
    for each in writers:
        each.start()
    for each in writers:
        each.join()

    with closing(open_postgres(database)) as ledger:
        assert sorted(thread(ledger)) == sorted(f"{writer}.{number}" for writer in range(4) for number in range(10))
        assert len({step.branch for step in ledger.steps()}) == 1
        assert list(ledger.verify()) == []


def insist(ledger: StoreLedger, new: NewStep) -> Step:
    """Append, again and again, behind whatever is there."""
    while True:
        try:
            return add(ledger, "work", new)
        except ConflictError:
            continue


def test_nothing_is_kept_of_a_change_that_breaks_off(ledger: StoreLedger) -> None:
    def work() -> None:
        ledger.store.add_blob("digest", b"content")
        assert ledger.store.blob("digest") == b"content"
        raise LookupError

    ledger.create("work")
    with pytest.raises(LookupError):
        ledger.store.write(work)

    assert ledger.blob("digest") is None
    assert texts(tell(ledger, "work", "a")) == ["a"]


def test_nothing_is_kept_of_much_that_breaks_off_at_its_end(ledger: StoreLedger) -> None:
    def work() -> None:
        for number in range(8):
            ledger.store.add_blob(str(number), bytes(1 << 19))
        raise LookupError

    ledger.create("work")
    with pytest.raises(LookupError):
        ledger.store.write(work)

    assert [ledger.blob(str(number)) for number in range(8)] == [None] * 8


def test_what_cannot_be_bound_is_an_error_and_the_next_step_is_added(ledger: StoreLedger) -> None:
    ledger.create("work")

    with pytest.raises(LedgerError, match="NUL"):
        ledger.append("work", NewStep(kind="turn", closes=True, id="a\0b"), after=None)

    assert texts(tell(ledger, "work", "a")) == ["a"]
    assert thread(ledger) == ["a"]


def test_a_statement_that_the_server_refuses_is_named_and_the_next_step_is_added(ledger: StoreLedger) -> None:
    ledger.create("work")

    with pytest.raises(LedgerError, match="violates foreign key constraint"):
        ledger.append("work", NewStep(kind="revert", closes=True, data={"restores": "no such compaction"}), after=None)

    assert texts(tell(ledger, "work", "a")) == ["a"]
    assert thread(ledger) == ["a"]


def test_who_waits_for_a_lock_can_be_interrupted_and_goes_on_later(database: str, ledger: StoreLedger) -> None:
    ledger.create("work")

    def interrupt(*_signal: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with psycopg.connect(database) as connection:
            connection.execute("select pg_advisory_xact_lock(hashtextextended('work', 0))")
            with pytest.raises(KeyboardInterrupt):  # noqa: PT012 - whoever is slow must not be interrupted outside
                signal.setitimer(signal.ITIMER_REAL, 0.3)
                ledger.append("work", said("too early"), after=None)
    finally:
        signal.signal(signal.SIGALRM, before)

    tell(ledger, "work", "a")

    assert thread(ledger) == ["a"]


RETYPE = "alter table nexus.sessions alter column label type varchar(500)"
FORGET = "discard all"


@pytest.mark.parametrize("meddle", [FORGET, RETYPE])
def test_what_was_prepared_and_counts_no_longer_is_prepared_anew(ledger: StoreLedger, meddle: str) -> None:
    """A pool has given the connection to others in between, or somebody has changed the tables."""
    ledger.create("work")
    tell(ledger, "work", "a")

    server(ledger).execute(meddle)

    assert texts(tell(ledger, "work", "b")) == ["b"]
    server(ledger).execute(meddle.replace("500", "600"))
    assert thread(ledger) == ["a", "b"]


def test_where_the_tables_were_taken_away_somebody_can_begin_anew(ledger: StoreLedger) -> None:
    ledger.create("work")
    tell(ledger, "work", "a")

    server(ledger).execute("drop schema nexus cascade")

    assert ledger.session("work") is None
    ledger.create("work")
    tell(ledger, "work", "b")
    assert thread(ledger) == ["b"]


def server(ledger: StoreLedger) -> psycopg.Connection[Any]:
    """The connection that the ledger has."""
    assert isinstance(ledger.store, PostgresStore)
    assert ledger.store._connection is not None  # noqa: SLF001 - what others do to it meanwhile
    return ledger.store._connection.connection  # noqa: SLF001 - as above
