"""How long it takes to keep a step, and to read the end of a long conversation, beside SQLite by itself.

    python benchmarks/ledger.py [-n RUNS] [-t TURNS] [-s SESSIONS] [--quick] [--cache DIR] [--without-peers]
        [--json FILE]

Prints ratios measured in one run: of wall time for appends, which wait for the disk, and of CPU time for reading. What
looks at all sessions is measured in a ledger of many and in one of a tenth of them. Exit code 1 when a goal is missed.
openai-agents is installed into a venv of its own, kept in DIR, so that needs a package index.
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "plugins")]

from benchmarks.measuring.reports import Report  # noqa: E402 - after the path is set
from benchmarks.measuring.rows import Comparison, Goal, Row, compare  # noqa: E402 - as above
from benchmarks.measuring.script import Script  # noqa: E402 - as above
from benchmarks.measuring.threads import build_sessions, build_thread  # noqa: E402 - as above
from benchmarks.measuring.timing import medians  # noqa: E402 - as above
from nexus_core.cli.commands.session.overview import read_all_overviews  # noqa: E402 - as above
from nexus_core.cli.commands.session.search import find_newest_matches  # noqa: E402 - as above
from nexus_core.cli.commands.session.stats import StepSums  # noqa: E402 - as above
from nexus_core.cli.commands.session.tree import find_trees, group_labels_by_tip, read_branch_lines  # noqa: E402 - as above
from nexus_core.host.manager import get_installed_host  # noqa: E402 - as above
from nexus_core.ledger.queries import find_newest_sessions, find_sessions_to_search  # noqa: E402 - as above
from nexus_core.memory.search import StepQuery, search_steps  # noqa: E402 - as above
from nexus_core.tokens.prices import PriceList  # noqa: E402 - as above
from nexus_core.types.ledger import NewStep  # noqa: E402 - as above
from nexus_core.types.messages import Message  # noqa: E402 - as above
from nexus_core.types.settings import Settings  # noqa: E402 - as above
from nexus_plugins.ledger import _statements as sql  # noqa: E402 - as above
from nexus_plugins.ledger.sqlite import SqliteLedger, open_sqlite  # noqa: E402 - as above

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Iterator, Sequence

    from benchmarks.measuring.venvs import Venv

TAIL = 50
FORKS = 3
BODY = "A step has words like these, some four hundred characters of them in each of its messages. " * 4
TURN = NewStep(kind="turn", closes=True, messages=(Message("user", BODY),), tokens=100, counter="c")
STEPS = (
    NewStep(kind="input", messages=(Message("user", BODY),), tokens=100, counter="c", data={"turns": 1}),
    NewStep(kind="reply", closes=True, messages=(Message("assistant", BODY),), tokens=100, counter="c"),
    TURN,
)
"""Those of each session, where there are many."""
SMALLER, RUNS_PER_LEDGER = 10, 5
"""How many times fewer sessions the smaller ledger has, and how often each command runs on each ledger."""

OURS, BARE, RAW = "durable append of 4 messages", "bare transaction", "writing as many bytes and fdatasync"
AGENTS = "openai-agents SQLiteSession"
APPENDS = (
    Comparison(OURS, BARE, (Goal("<=", 2),)),
    Comparison(OURS, RAW, (Goal("<=", 1.3, "P7", quick=30),)),
    Comparison(AGENTS, OURS, (Goal(">=", 2.5, "P7"), Goal(">=", 1))),
)

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


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, and return the exit code."""
    script = Script("Measure how long keeping and reading steps takes.")
    script.runs(300, quick=100)
    script.number("-t", "turns", 1_000_000, 20_000, "turns of the long thread")
    script.number("-s", "sessions", 10_000, 1_000, "sessions of the larger ledger")
    script.peers()
    return script.run(measure, argv)


def measure(given: Namespace) -> Report:
    """Appends, then the end of a long thread, then many sessions."""
    with tempfile.TemporaryDirectory() as scratch:
        rows = measure_appends(Path(scratch), given.runs, given.peers.get("openai-agents"))
        rows += measure_tails(Path(scratch), given.runs, given.turns)
        rows += measure_sessions(Path(scratch), given.sessions)
    return Report(rows, {"SQLite": sqlite3.sqlite_version} | given.peers.versions, given.peers.missing)


# Appending ------------------------------------------------------------------------------------------------------------


def measure_appends(scratch: Path, runs: int, venv: Venv | None) -> list[Row]:
    """A step of four messages that is on disk, beside a row and four more in one transaction, and the bare disk."""
    ledger = open_sqlite(f"sqlite:///{scratch / 'append.db'}")
    ledger.create("work")
    step = NewStep(kind="turn", closes=True, messages=messages(), tokens=400, counter="c", data={"model": "m"})
    tip: list[str | None] = [None]

    def append() -> None:
        tip[0] = ledger.append("work", step, after=tip[0]).id

    with peer_at_work(venv, scratch / "peer.db") as others, (scratch / "raw").open("ab", buffering=0) as raw:
        works: dict[str, Callable[[], object]] = {
            OURS: append,
            BARE: bare_append(scratch / "bare.db"),
            RAW: partial(write_raw, raw.fileno()),
            **others,
        }
        times = medians(runs, *works.values(), clock=time.perf_counter, warm_up=runs // 10)
    ledger.close()
    return compare({name: 1000 * seconds for name, seconds in zip(works, times, strict=True)}, APPENDS)


def write_raw(file: int) -> None:
    """Write what the messages say, and wait for the disk."""
    os.write(file, (4 * BODY).encode())
    os.fdatasync(file)


@contextmanager
def peer_at_work(venv: Venv | None, path: Path) -> Iterator[dict[str, Callable[[], float]]]:
    """What makes openai-agents add the same messages; nothing when it is not there."""
    if venv is None:
        yield {}
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

        yield {AGENTS: append}
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


# Reading --------------------------------------------------------------------------------------------------------------


def measure_tails(scratch: Path, runs: int, turns: int) -> list[Row]:
    """The last turns of a long thread, beside the bare reading of the same rows by their index."""
    path = scratch / "tail.db"
    ledger = open_sqlite(f"sqlite:///{path}")
    tip = build_thread(ledger, turns, TURN)
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
    name = f"last {TAIL} of {turns:,} turns"
    works = {
        "bare": read_bare,
        name: read,
        f"{name}, across {FORKS} forks": read_forks,
        f"{name}, with every message decoded": read_words,
    }
    bare_time, *times = (1e6 * seconds for seconds in medians(runs, *works.values(), warm_up=runs // 10))
    ledger.close()
    goals = ((Goal("<=", 2),), (Goal("<=", 2, "P8"), Goal("<=", 3)), ())
    return [
        Row(
            f"{work} / bare reading of as many rows",
            taken / bare_time,
            goal,
            detail=f"{taken:,.0f} µs / {bare_time:,.0f} µs",
        )
        for work, taken, goal in zip([*works][1:], times, goals, strict=True)
    ]


def measure_sessions(scratch: Path, sessions: int) -> list[Row]:
    """Measure the cost per session of commands that look at all sessions, with many and with a tenth of them."""
    numbers = max(sessions // SMALLER, 1), sessions
    ledgers = [open_sqlite(f"sqlite:///{scratch / f'sessions-{number}.db'}") for number in numbers]
    for ledger, number in zip(ledgers, numbers, strict=True):
        build_sessions(ledger, number, STEPS)
    rows = []
    for name, (work, goals) in SESSION_COMMANDS.items():
        few, many = medians(RUNS_PER_LEDGER, *(partial(work, ledger) for ledger in ledgers), warm_up=1)
        each = [1e6 * seconds / number for seconds, number in zip((few, many), numbers, strict=True)]
        about = f"{name}: per session of {numbers[1]:,} / per session of {numbers[0]:,}"
        rows.append(Row(about, each[1] / each[0], goals, detail=f"{each[1]:,.2f} µs / {each[0]:,.2f} µs"))
    for ledger in ledgers:
        ledger.close()
    return rows


def list_newest(ledger: SqliteLedger) -> object:
    """Do what `nexus session list -n 20` does."""
    return read_all_overviews(ledger, find_newest_sessions(ledger, status="active", limit=20).records)


def search_everywhere(ledger: SqliteLedger) -> object:
    """Do what `nexus session search --exact` does with a text that is not there."""
    return find_newest_matches(ledger, find_sessions_to_search(ledger, "nowhere"), "nowhere", 20, [])


def search_ranked(ledger: SqliteLedger) -> object:
    """Do what `nexus session search` does with words that every session has, once the ledger is indexed."""
    return search_steps(ledger, StepQuery(text="which step has such words?", limit=20))


def sum_steps(ledger: SqliteLedger) -> object:
    """Do what `nexus session stats` does."""
    sums = StepSums(PriceList(get_installed_host(), Settings()))
    for step in ledger.steps():
        sums.add(step)
    return sums


def draw_trees(ledger: SqliteLedger) -> object:
    """Do what `nexus session tree` does: find all trees, and read some of them."""
    records = ledger.sessions(status=None)
    trees, _ = find_trees(ledger, records)
    tips = group_labels_by_tip(records)
    return [[*read_branch_lines(ledger, tree, tips, [])] for tree in trees[:100]]


SESSION_COMMANDS: dict[str, tuple[Callable[[SqliteLedger], object], tuple[Goal, ...]]] = {
    "the 20 newest sessions": (list_newest, (Goal("<=", 1),)),
    "a text that no session has": (search_everywhere, (Goal("<=", 1.5),)),
    "words that every session has": (search_ranked, (Goal("<=", 1.5),)),
    "sums of all steps": (sum_steps, (Goal("<=", 1.5),)),
    "the first 100 trees": (draw_trees, (Goal("<=", 1),)),
}


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
