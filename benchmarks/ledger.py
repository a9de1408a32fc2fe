"""How long it takes to keep a step, and to read the end of a long conversation, beside SQLite by itself.

    python benchmarks/ledger.py [-n RUNS] [-t TURNS] [--cache DIR] [--without-peers]

Prints ratios measured in one run. Exit code 1 when a goal is missed. openai-agents is installed into a venv of its own,
kept in DIR, so that needs a package index; where it cannot be installed, its row is left out.
"""

from __future__ import annotations

import argparse
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "plugins")]

from benchmarks.startup import CannotMeasureError, Venv, install, make_venv  # noqa: E402 - after the path is set
from nexus_core.history.ledger.growing import draft, placed  # noqa: E402 - as above
from nexus_core.history.ledger.rows import BranchRow, HistoryRow, Place  # noqa: E402 - as above
from nexus_core.values.ledger import NewStep  # noqa: E402 - as above
from nexus_core.values.message import Message  # noqa: E402 - as above
from nexus_plugins.ledger import _statements as sql  # noqa: E402 - as above
from nexus_plugins.ledger.sqlite import SqliteLedger, open_sqlite  # noqa: E402 - as above

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

TAIL = 50
FORKS = 3
BODY = "A step has words like these, some four hundred characters of them in each of its messages. " * 4

PEER = """
import asyncio, sys, time
from agents.memory.sqlite_session import SQLiteSession

async def main(path, body):
    session = SQLiteSession("work", path)
    items = [{"role": role, "content": body} for role in ("user", "assistant") * 2]
    for _ in sys.stdin:
        before = time.perf_counter()
        await session.add_items(items)
        print(time.perf_counter() - before, flush=True)

asyncio.run(main(sys.argv[1], sys.argv[2]))
"""
"""Adds the same messages whenever it is told to, and says how long it took."""


class Row(NamedTuple):
    """A line of the result: two times, and how much longer the first may be."""

    name: str
    ours: float
    theirs: float
    goal: float | None


def main() -> int:
    """Measure, print, and return the exit code."""
    given = parse_arguments()
    with tempfile.TemporaryDirectory() as scratch:
        rows = [*measure_appends(Path(scratch), given.runs, peer(given.cache, without=given.without_peers))]
        rows += measure_tails(Path(scratch), given.runs, given.turns)
    for row in rows:
        ratio = row.ours / row.theirs
        verdict = "" if row.goal is None else f" (<= {row.goal:g}) {'ok' if ratio <= row.goal else 'MISSED'}"
        print(f"{row.name}: {row.ours * 1e6:,.0f} us / {row.theirs * 1e6:,.0f} us = {ratio:.2f}{verdict}")
    return int(any(row.goal is not None and row.ours / row.theirs > row.goal for row in rows))


def parse_arguments() -> argparse.Namespace:
    """The options."""
    cache = ROOT / "build" / "benchmarks"
    parser = argparse.ArgumentParser(description="Measure how long keeping and reading steps takes.")
    parser.add_argument("-n", dest="runs", type=int, default=300, help="how often each is done (300)")
    parser.add_argument("-t", dest="turns", type=int, default=1_000_000, help="turns of the long thread (1,000,000)")
    parser.add_argument("--cache", type=Path, default=cache, metavar="DIR", help=f"where the venv is kept ({cache})")
    parser.add_argument("--without-peers", action="store_true", help="leave openai-agents out")
    return parser.parse_args()


def medians(runs: int, *works: Callable[[], object]) -> list[float]:
    """Seconds for each, done in turns, so that a busy moment hits all of them; the first tenth does not count.

    What returns a number has measured itself.
    """
    times: list[list[float]] = [[] for _ in works]
    for _ in range(runs + runs // 10):
        for work, column in zip(works, times, strict=True):
            before = time.perf_counter()
            measured = work()
            seconds = time.perf_counter() - before
            column.append(measured if isinstance(measured, float) else seconds)
    return [statistics.median(column[runs // 10 :]) for column in times]


# Appending ------------------------------------------------------------------------------------------------------------


def measure_appends(scratch: Path, runs: int, venv: Venv | None) -> list[Row]:
    """A step of four messages that is on disk, beside a row and four more in one transaction."""
    ledger = open_sqlite(f"sqlite:///{scratch / 'append.db'}")
    ledger.create("work")
    step = NewStep(kind="turn", closes=True, messages=messages(), tokens=400, counter="c", data={"model": "m"})
    tip: list[str | None] = [None]

    def append() -> None:
        tip[0] = ledger.append("work", step, after=tip[0]).id

    with peer_at_work(venv, scratch / "peer.db") as others:
        ours, theirs, *peers = medians(runs, append, bare_append(scratch / "bare.db"), *others)
    ledger.close()
    name = "durable append of 4 messages"
    rows = [Row(f"{name} / bare transaction", ours, theirs, 2)]
    return rows + [Row(f"{name} / openai-agents SQLiteSession", ours, each, 1) for each in peers]


@contextmanager
def peer_at_work(venv: Venv | None, path: Path) -> Iterator[list[Callable[[], float]]]:
    """What makes openai-agents add the same messages; nothing when it is not there."""
    if venv is None:
        yield []
        return
    command = [venv.python, "-c", PEER, str(path), BODY]
    with subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        told, said = program.stdin, program.stdout
        if told is None or said is None:
            raise AssertionError("it has no pipes")

        def append() -> float:
            told.write("\n")
            told.flush()
            return float(said.readline())

        yield [append]
        told.close()


def bare_append(path: Path) -> Callable[[], None]:
    """What writes a turn and its four messages, each a row, with the same care for the disk."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("pragma journal_mode = wal")
    connection.execute("pragma synchronous = full")
    connection.execute("create table turns (id integer primary key, parent integer, created integer)")
    connection.execute(
        "create table messages (turn integer, position integer, role text, content text, primary key (turn, position))"
    )
    number = [0]

    def append() -> None:
        number[0] += 1
        connection.execute("begin immediate")
        connection.execute("insert into turns values (?, ?, ?)", (number[0], number[0] - 1, 0))
        for position, message in enumerate(messages()):
            row = (number[0], position, message.role, message.content)
            connection.execute("insert into messages values (?, ?, ?, ?)", row)
        connection.execute("commit")

    return append


def messages() -> tuple[Message, ...]:
    """Four of them, 1.5 kB together."""
    return (Message("user", BODY), Message("assistant", BODY)) * 2


def peer(cache: Path, *, without: bool) -> Venv | None:
    """A venv with `openai-agents`; None, and a message, when it cannot be had."""
    if without:
        return None
    try:
        cache.mkdir(parents=True, exist_ok=True)
        venv = make_venv(cache, "agents")
        install(venv, "openai-agents")
    except CannotMeasureError as error:
        print(f"openai-agents cannot be installed, its row is left out: {error}", file=sys.stderr)
        return None
    return venv


# Reading --------------------------------------------------------------------------------------------------------------


def measure_tails(scratch: Path, runs: int, turns: int) -> list[Row]:
    """The last turns of a long thread, beside the bare reading of the same rows by their index."""
    path = scratch / "tail.db"
    ledger = open_sqlite(f"sqlite:///{path}")
    tip = build(ledger, turns)
    forked = fork(ledger, tip)
    bare = sqlite3.connect(path)
    statement = sql.STEP.partition(" where")[0] + " where branch = ? and position > ? order by position desc"
    branch = ledger.thread(tip, limit=1)[0].branch

    def read_bare() -> Sequence[object]:
        return bare.execute(statement, (branch, turns - 1 - TAIL)).fetchall()

    def read() -> Sequence[object]:
        return ledger.thread(tip, limit=TAIL)

    def read_forks() -> Sequence[object]:
        return ledger.thread(forked, limit=TAIL)

    def read_words() -> Sequence[object]:
        return [step.messages for step in ledger.thread(tip, limit=TAIL)]

    if not len(read_bare()) == len(read()) == len(read_forks()) == TAIL:
        raise AssertionError("they do not read the same")
    theirs, ours, forks, words = medians(runs, read_bare, read, read_forks, read_words)
    name = f"last {TAIL} of {turns:,} turns"
    ledger.close()
    return [
        Row(f"{name} / bare reading of these rows", ours, theirs, 2),
        Row(f"{name}, across {FORKS} forks / bare reading of as many rows", forks, theirs, 3),
        Row(f"{name}, with every message decoded / bare reading", words, theirs, None),
    ]


TURN = NewStep(kind="turn", closes=True, messages=(Message("user", BODY),), tokens=100, counter="c")


def build(ledger: SqliteLedger, turns: int, step: NewStep = TURN) -> str:
    """A thread of so many turns, put into the tables in large pieces; its tip."""
    ledger.create("long")
    store = ledger.store
    new = draft(step, "", 1_700_000_000_000)
    place: list[Place | None] = [None]

    def fill(numbers: range) -> None:
        for number in numbers:
            name = f"{number:026d}"
            row = placed(new._replace(id=name), place[0], turn=None, branch=f"{0:026d}")
            if place[0] is None:
                store.add_branch(BranchRow(row.branch, None, -1))
            store.add_steps([row])
            place[0] = Place(*(getattr(row, field) for field in Place._fields))

    for begin in range(0, turns, 10_000):
        numbers = range(begin, min(begin + 10_000, turns))
        store.write(lambda numbers=numbers: fill(numbers))  # type: ignore[misc]
    tip = f"{turns - 1:026d}"

    def point() -> None:
        session = store.session("long")
        if session is not None:
            store.save_session(session._replace(head=tip, tip=tip).sealed())
            store.add_history(HistoryRow(session.id, tip, "turn", 0).sealed())

    store.write(point)
    return tip


def fork(ledger: SqliteLedger, tip: str) -> str:
    """Sessions that each leave the one before: the tip of the last, whose last turns lie in four branches."""
    for number in range(FORKS):
        head = ledger.thread(tip, limit=4)[0].id  # not the end, so that what follows is another branch
        ledger.create(f"fork {number}", head=head)
        tip = head
        for _ in range(12):
            tip = ledger.append(f"fork {number}", TURN, after=tip).id
    return tip


if __name__ == "__main__":
    sys.exit(main())
