"""No lock that a writer relies on is ever lost: not to others in its process, nor to those it forks."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from nexus_core.ledger.in_memory import MemoryLedger
from nexus_plugins.ledger.sqlite import SqliteLedger, open_sqlite
from nexus_plugins.ledger.sqlite.store import FORK_GATE
from tests.effort import rounds
from tests.ledger.backends import tell
from tests.ledger.test_faults import experiment

FORKED = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked here")
ANOTHER_PROGRAM = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
print(connection.execute("select count(*) from steps").fetchone()[0])
connection.close()
"""


def opened(path: Path) -> SqliteLedger:
    return open_sqlite(f"sqlite:///{path}")


def steps_seen_by_another_program(path: Path) -> int:
    """It opens the file and closes it; if nobody seems to have it open, it takes the log away."""
    done = subprocess.run(
        [sys.executable, "-c", ANOTHER_PROGRAM, str(path)], capture_output=True, text=True, check=True
    )
    return int(done.stdout)


def look_by_another_ledger(ledger: SqliteLedger) -> None:
    with closing(opened(ledger.store.path)) as other:
        assert other.session("work") is not None


def verify(ledger: SqliteLedger) -> None:
    assert list(ledger.verify()) == []


def read_all(ledger: SqliteLedger) -> None:
    assert len(list(ledger.steps())) == 1


def repair(ledger: SqliteLedger) -> None:
    ledger.repair(MemoryLedger())


@pytest.mark.acceptance("R1")
@pytest.mark.parametrize("look", [look_by_another_ledger, verify, read_all, repair], ids=lambda look: look.__name__)
def test_whoever_looks_in_the_same_process_takes_no_lock_away(
    path: Path, sqlite: SqliteLedger, look: Callable[[SqliteLedger], None]
) -> None:
    """To close a file is to lose all locks that the process has on it, whoever took them."""
    sqlite.create("work")
    tell(sqlite, "work", "before")

    look(sqlite)
    steps_seen_by_another_program(path)
    tell(sqlite, "work", "after")

    assert steps_seen_by_another_program(path) == 2


@pytest.mark.acceptance("R1")
@FORKED
@pytest.mark.parametrize("others", [0, 1, 3])
def test_a_forked_process_goes_on_when_its_parent_lets_go_of_the_file(tmp_path: Path, path: Path, others: int) -> None:
    """It has locks of its own, however many ledgers and snapshots its parent had open."""
    result = experiment("outliving", f"sqlite:///{path}", others, tmp_path)

    assert result == {"failed": 0, "acknowledged": 3, "missing": 0, "found": []}


@pytest.mark.acceptance("R1", "R3")
@FORKED
@pytest.mark.parametrize("forks", [1, pytest.param(rounds(60), marks=pytest.mark.slow)])
def test_a_process_may_fork_while_its_threads_write(tmp_path: Path, path: Path, forks: int) -> None:
    """Nobody waits for ever, what was under way is not done twice, and nothing is lost."""
    result = experiment("forking", f"sqlite:///{path}", forks, tmp_path)

    assert result["acknowledged"] > 2 * forks
    assert (result["failed"], result["missing"], result["more"], result["found"]) == (0, 0, 0, [])


@pytest.mark.acceptance("R3")
def test_no_connection_is_opened_while_a_thread_may_fork(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A child that inherits a lock inside SQLite waits for ever."""
    connect, unguarded = sqlite3.connect, []

    def watch(*args: Any, **options: Any) -> Any:
        if not FORK_GATE.depth:
            unguarded.append(args)
        return connect(*args, **options)

    monkeypatch.setattr(sqlite3, "connect", watch)
    with closing(opened(path)) as ledger:
        ledger.create("work")
        verify(ledger)
        repair(ledger)

    assert unguarded == []


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C is heard, also where the tests run in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.acceptance("R1", "R3")
@pytest.mark.usefixtures("interruptible")
def test_whoever_is_interrupted_while_waiting_for_the_lock_does_not_keep_it(path: Path, sqlite: SqliteLedger) -> None:
    """Ctrl-C is heard when SQLite comes back, and by then it has the lock."""
    sqlite.create("work")
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("begin immediate")

        def interrupt() -> None:
            is_expected.wait()
            time.sleep(0.1)  # by now it waits; if it is slower, it is interrupted before
            signal.raise_signal(signal.SIGINT)
            other.execute("rollback")

        is_expected = threading.Event()
        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):  # noqa: PT012 - whoever is slow must not be interrupted outside
            is_expected.set()
            tell(sqlite, "work", "interrupted")
        thread.join()
        other.execute("pragma busy_timeout = 0")
        other.execute("begin immediate")
        other.execute("rollback")

    tell(sqlite, "work", "after")
    assert steps_seen_by_another_program(path) == 1
