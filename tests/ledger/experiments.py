"""What happens when processes die or quarrel; each prints what it found as JSON.

python -m tests.ledger.experiments NAME URL NUMBER
"""

from __future__ import annotations

import json
import logging
import os
import random
import signal
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

from nexus_core.errors import ConflictError, LedgerError
from nexus_core.ledger.ledger import StoreLedger
from nexus_core.types.ledger import NewStep
from nexus_core.types.messages import Message
from nexus_plugins.ledger import nexus_ledger
from nexus_plugins.ledger.postgres import schema as _postgres
from nexus_plugins.ledger.sqlite import database
from nexus_plugins.ledger.sqlite import schema as _sqlite

# Since Python 3.12, of a fork beside threads; to fork beside threads is what is tried here.
warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)

MESSAGES = 4
PROCESSES = int(os.environ.get("EXPERIMENT_PROCESSES", "8"))
CUT = (
    "select pg_terminate_backend(pid) from pg_stat_activity"
    " where application_name = 'nexus' and datname = current_database()"
)
LATER = ("create table moods (mood text)", "insert into moods select label from sessions")
CHANCE = random.Random(2024)  # noqa: S311 - the same moments every time


def main(name: str, url: str, number: str) -> None:
    experiment: Callable[[str, int], dict[str, object]] = globals()[name]
    if mounts := os.environ.get("EXPERIMENT_MOUNTS"):
        database.MOUNT_TABLE = Path(mounts)
        logging.disable()
    print(json.dumps(experiment(url, int(number))))  # noqa: T201 - the result


def opened(url: str) -> StoreLedger:
    ledger = nexus_ledger(url)
    assert isinstance(ledger, StoreLedger)
    return ledger


def step(text: str) -> NewStep:
    return NewStep(kind="turn", closes=True, messages=(Message("user", text),) * MESSAGES, tokens=4, counter="c")


def append(ledger: StoreLedger, label: str, text: str) -> str:
    """Add a step behind whatever is there by then."""
    while True:
        session = ledger.session(label)
        assert session is not None
        try:
            return ledger.append(label, step(text), after=session.tip).id
        except ConflictError:
            continue


def spawn(work: Callable[[], None]) -> int:
    """A process that does something and ends with 0, or with 1 and a traceback."""
    child = os.fork()
    if child:
        return child
    try:
        work()
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is told and the process ends
        print(f"{type(error).__name__}: {error}", file=sys.stderr)  # noqa: T201 - for whoever looks for the cause
        os._exit(1)
    os._exit(0)


def wait(children: list[int]) -> int:
    """How many of them failed."""
    return sum(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0 for child in children)


def notes_in(name: str = "notes") -> Path:
    """A file in which processes note something for those who come after them."""
    return Path(os.environ["EXPERIMENT_DIRECTORY"]) / name


def wait_for(lines: int, notes: Path) -> None:
    """Go on when so much is noted."""
    while not notes.exists() or notes.read_text().count("\n") < lines:
        time.sleep(0.01)


# ---- killed -----------------------------------------------------------------------------------------------


def kills(url: str, number: int) -> dict[str, object]:
    """A writer is killed at random moments; it notes in another file what it was told is on disk."""
    notes = notes_in()
    with closing(opened(url)) as ledger:
        ledger.create("work")
    notes.touch()
    for turn in range(number):
        before = notes.stat().st_size
        child = spawn(lambda: _write_for_ever(url, notes))
        while turn % 2 and notes.stat().st_size == before:  # the others may be killed before they have begun
            time.sleep(0.01)
        time.sleep(CHANCE.uniform(0.02, 0.1))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    noted = notes.read_text().split()
    with closing(opened(url)) as ledger:
        there = list(ledger.steps())
        found = [str(finding) for finding in ledger.verify()]
        tip = ledger.session("work")
    names = {each.id for each in there}
    return {
        "kills": number,
        "acknowledged": len(noted),
        "missing": len(set(noted) - names),
        "half": sum(len(each.messages) != MESSAGES for each in there),
        "unacknowledged": len(names - set(noted)),
        "tip": tip is not None and tip.tip in names,
        "found": found,
    }


def _write_for_ever(url: str, notes: Path) -> None:
    descriptor = os.open(notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    ledger = opened(url)
    while True:
        name = append(ledger, "work", "said")
        os.write(descriptor, f"{name}\n".encode())


# ---- forked -----------------------------------------------------------------------------------------------


def outliving(url: str, number: int) -> dict[str, object]:
    """A child goes on to write when its parent has closed all it had open: a ledger, others, and what they read."""
    ledger = opened(url)
    ledger.create("work")
    noted = [append(ledger, "work", "parent")]
    others = [opened(url) for _ in range(number)]
    under_way = [other.steps() for other in others]
    for each in under_way:
        next(each)
    notes = notes_in()
    begun, goes_on = os.pipe(), os.pipe()

    def write() -> None:
        first = append(ledger, "work", "child")
        os.write(begun[1], b".")
        os.read(goes_on[0], 1)
        notes.write_text(f"{first} {append(ledger, 'work', 'child again')}")

    child = spawn(write)
    os.read(begun[0], 1)
    for each in under_way:
        each.close()  # type: ignore[attr-defined]  # a generator
    for one in (ledger, *others):
        one.close()
    os.write(goes_on[1], b".")
    failed = wait([child])
    noted += notes.read_text().split()
    with closing(opened(url)) as ledger:
        there = {each.id for each in ledger.steps()}
        found = [str(finding) for finding in ledger.verify()]
    return {"failed": failed, "acknowledged": len(noted), "missing": len(set(noted) - there), "found": found}


def forking(url: str, number: int) -> dict[str, object]:
    """Two threads write, one looks at everything, and two fork children, each of which writes as well."""
    notes = notes_in()
    descriptor = os.open(notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    ledger = opened(url)
    for label in ("a", "b", "child"):
        ledger.create(label)
    is_over = threading.Event()

    def write(label: str) -> None:
        while not is_over.is_set():
            os.write(descriptor, f"{append(ledger, label, 'said')}\n".encode())

    def look() -> None:
        while not is_over.is_set():
            list(ledger.verify())

    def write_once() -> None:
        os.write(descriptor, f"{append(ledger, 'child', 'said')}\n".encode())

    def fork() -> int:
        return sum(wait([spawn(write_once)]) for _ in range(number))

    threads = [threading.Thread(target=write, args=[label]) for label in "ab"] + [threading.Thread(target=look)]
    for thread in threads:
        thread.start()
    wait_for(1, notes)
    with ThreadPoolExecutor(2) as pool:
        failed = sum(each.result() for each in [pool.submit(fork), pool.submit(fork)])
    is_over.set()
    for thread in threads:
        thread.join()
    noted = notes.read_text().split()
    ledger.close()
    with closing(opened(url)) as ledger:
        there = [each.id for each in ledger.steps()]
        found = [str(finding) for finding in ledger.verify()]
    return {
        "forks": 2 * number,
        "failed": failed,
        "acknowledged": len(noted),
        "missing": len(set(noted) - set(there)),
        "more": len(there) - len(noted),
        "found": found,
    }


# ---- quarrelling ------------------------------------------------------------------------------------------


def one_session(url: str, number: int) -> dict[str, object]:
    """Many processes write into one session."""
    return _many(url, number, lambda _process: "work")


def own_sessions(url: str, number: int) -> dict[str, object]:
    """Many processes write into as many sessions."""
    return _many(url, number, lambda process: f"work {process}")


def one_session_cut(url: str, number: int) -> dict[str, object]:
    """The same, while their connections to the server are cut again and again."""
    result = _many(url, number, lambda _process: "work", meanwhile=lambda: _cut(url))
    return result | {"cuts": _cuts()}


def own_sessions_cut(url: str, number: int) -> dict[str, object]:
    """The same with sessions of their own."""
    result = _many(url, number, lambda process: f"work {process}", meanwhile=lambda: _cut(url))
    return result | {"cuts": _cuts()}


def _cut(url: str) -> None:
    """Cut whoever is connected, and again when half of them have come on: however slow it goes, it goes on."""
    import psycopg

    there = 0
    with psycopg.connect(url, autocommit=True) as connection, notes_in("cuts").open("ab", buffering=0) as file:
        while True:
            ((steps,),) = connection.execute("select count(*) from nexus.steps").fetchall()
            if steps >= there + PROCESSES // 2:
                time.sleep(CHANCE.uniform(0, 0.03))  # in the middle of anything
                if connection.execute(CUT).fetchall():
                    file.write(b".")
                    there = steps
            time.sleep(0.002)


def _cuts() -> int:
    """How often those who were connected were cut off so far."""
    return notes_in("cuts").stat().st_size


def _many(
    url: str, number: int, label: Callable[[int], str], *, meanwhile: Callable[[], None] | None = None
) -> dict[str, object]:
    labels = {label(process) for process in range(PROCESSES)}
    with closing(opened(url)) as ledger:
        for each in sorted(labels):
            ledger.create(each)

    def write(process: int) -> None:
        with closing(opened(url)) as own:
            for turn in range(number):
                while meanwhile and _cuts() < turn:  # nobody is done before there were as many
                    own.session(label(process))
                append(own, label(process), f"{process}.{turn}")

    begun = time.perf_counter()
    if meanwhile:
        notes_in("cuts").touch()
    beside = spawn(meanwhile) if meanwhile else 0
    failed = wait([spawn(lambda process=process: write(process)) for process in range(PROCESSES)])  # type: ignore[misc]
    seconds = time.perf_counter() - begun
    if beside:
        os.kill(beside, signal.SIGKILL)
        os.waitpid(beside, 0)
    spoken: Counter[str] = Counter()
    with closing(opened(url)) as ledger:
        for each in labels:
            session = ledger.session(each)
            assert session is not None
            spoken.update(one.messages[0].content for one in ledger.thread(str(session.tip)))
        found = [str(finding) for finding in ledger.verify()]
        forks = len({one.branch for one in ledger.steps()}) - len(labels)
    wanted = {f"{process}.{turn}" for process in range(PROCESSES) for turn in range(number)}
    return {
        "appends": PROCESSES * number,
        "failed": failed,
        "lost": len(wanted - spoken.keys()),
        "twice": sum(times - 1 for times in spoken.values()),
        "forks": forks,
        "found": found,
        "per_second": round(PROCESSES * number / seconds),
    }


def openings(url: str, number: int) -> dict[str, object]:
    """A ledger that is not there yet is opened by many processes at once, again and again."""
    rounds = [beginning(f"{url}{turn}", 1) for turn in range(number)]
    failed = sum(int(str(each["failed"])) for each in rounds)
    return {
        "openings": PROCESSES * number,
        "failed": failed,
        "found": [each["found"] for each in rounds if each["found"]],
    }


def beginning(url: str, number: int) -> dict[str, object]:
    """Many processes open a ledger that is not there yet, all at once."""

    def begin(process: int) -> None:
        with closing(opened(url)) as own:
            own.create(f"work {process}")
            for _ in range(number):
                append(own, f"work {process}", "hello")

    failed = wait([spawn(lambda process=process: begin(process)) for process in range(PROCESSES)])  # type: ignore[misc]
    with closing(opened(url)) as ledger:
        found = [str(finding) for finding in ledger.verify()]
        found += ["a session is lost"] * (len(ledger.sessions()) != PROCESSES)
    return {"failed": failed, "found": found}


# ---- migrating --------------------------------------------------------------------------------------------


def migrations(url: str, number: int) -> dict[str, object]:
    """Files are brought up to date by many processes at once, again and again."""
    rounds = [migration(f"{url}{turn}", 1) for turn in range(number)]
    wrong = [each for each in rounds if each["found"] or each["steps"] != 1 + PROCESSES]
    return {"migrations": PROCESSES * number, "failed": sum(each["failed"] for each in rounds), "found": wrong}


def migration(url: str, number: int) -> dict[str, int]:
    """Many processes of a later Nexus open a ledger of this one, all at once."""
    with closing(opened(url)) as ledger:
        ledger.create("work")
        append(ledger, "work", "hello")

    def write() -> None:
        become_later()
        with closing(opened(url)) as own:
            for _ in range(number):
                append(own, "work", "hello")

    failed = wait([spawn(write) for _ in range(PROCESSES)])
    become_later()
    with closing(opened(url)) as ledger:
        return {"failed": failed, "steps": len(list(ledger.steps())), "found": len(list(ledger.verify()))}


def meeting(url: str, number: int) -> dict[str, object]:
    """Four processes have added so many steps to sessions of their own when a later Nexus opens the ledger."""
    notes = notes_in()
    with closing(opened(url)) as ledger:
        for process in range(4):
            ledger.create(f"work {process}")

    def write(process: int) -> None:
        descriptor = os.open(notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        own = opened(url)
        try:
            while True:
                os.write(descriptor, f"{append(own, f'work {process}', 'said')}\n".encode())
        except LedgerError as error:
            os.write(descriptor, f"{error.what}\n".encode())

    writers = [spawn(lambda process=process: write(process)) for process in range(4)]  # type: ignore[misc]
    wait_for(number, notes)
    failed = wait([spawn(lambda: _come_later(url))])
    failed += wait(writers)
    told = notes.read_text().splitlines()
    noted = {line for line in told if " " not in line}
    become_later()
    with closing(opened(url)) as ledger:
        there = [each.id for each in ledger.steps()]
        found = [str(finding) for finding in ledger.verify()]
    return {
        "failed": failed,
        "acknowledged": len(noted),
        "missing": len(noted - set(there)),
        "more": len(there) - len(noted),
        "refusals": sorted(line for line in told if " " in line),
        "found": found,
    }


def _come_later(url: str) -> None:
    become_later()
    with closing(opened(url)) as own:
        own.create("later")


def become_later() -> None:
    """Be a Nexus that knows one schema more."""
    if LATER in _sqlite.MIGRATIONS.values():
        return
    _sqlite.MIGRATIONS[_sqlite.SCHEMA_VERSION] = LATER
    _postgres.MIGRATIONS[_postgres.SCHEMA_VERSION] = (
        "create table nexus.moods (mood text)",
        "alter table nexus.steps add mood text",
    )
    _sqlite.SCHEMA_VERSION += 1
    _postgres.SCHEMA_VERSION += 1


if __name__ == "__main__":
    main(*sys.argv[1:])
