"""Memory of a process that talks for long, beside that of one that has talked for a while.

    python benchmarks/memory_use.py [-t TURNS] [-s SESSIONS] [--quick] [--json FILE]

Each row is the growth of the resident set of a fresh process with a window of 8,000 tokens, between an early and a late
moment of its life. Nothing is timed. Needs Linux (`/proc`). Exit code 1 when a goal is missed.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "plugins")]

from benchmarks.measuring.processes import clean_environment, run_program  # noqa: E402 - after the path is set
from benchmarks.measuring.reports import CannotMeasureError, Report  # noqa: E402 - as above
from benchmarks.measuring.rows import Goal, Row  # noqa: E402 - as above
from benchmarks.measuring.script import Script  # noqa: E402 - as above
from nexus_core import Nexus  # noqa: E402 - as above
from nexus_plugins.ledger.sqlite import open_sqlite  # noqa: E402 - as above

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence


Kind = Literal["turns", "async turns", "sessions"]

MODEL = "gpt-4o"
WINDOW = 8_000
EARLY = {"turns": 1_000, "async turns": 1_000, "sessions": 100}
"""When the process is measured first, if it lives long enough; else after a third of its life."""
TURNS_OF_SESSION = 10
QUESTION = "Why does this happen, and what else depends on it? " * 10
ANSWER = "It happens because of something that was said above. " * 10
MAX_GROWTH = Goal("<=", 20)
"""Megabytes."""


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, and return the exit code."""
    script = Script("Measure how much memory a process takes that talks for long.")
    script.number("-t", "turns", 100_000, 1_500, "turns of one session")
    script.number("-s", "sessions", 1_000, 90, f"sessions opened one after the other, of {TURNS_OF_SESSION} turns each")
    return script.run(measure, argv)


def measure(given: Namespace) -> Report:
    """The growth of three processes: one session, one that is awaited, and many sessions of one Nexus."""
    lengths = {"turns": given.turns, "async turns": max(given.turns // 10, 300), "sessions": given.sessions}
    return Report([measure_process(kind, lengths[kind]) for kind in get_args(Kind)])


def measure_process(kind: Kind, late: int) -> Row:
    """Run one such process and read what it says."""
    early = min(EARLY[kind], late // 3)
    code = f"from benchmarks.memory_use import live; live({kind!r}, {early}, {late})"
    found = run_program(sys.executable, "-c", code, environment=clean_environment() | {"PYTHONPATH": str(ROOT)})
    before, after = json.loads(found)
    name = f"MB that a process grows from {early:,} to {late:,} {kind}"
    return Row(name, max(after - before, 0), (MAX_GROWTH,), "count", f"{after:,.0f} MB - {before:,.0f} MB")


def live(kind: Kind, early: int, late: int) -> None:
    """Talk in this process, and print the megabytes that it takes early and late."""
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        work, home = scratch / "work", scratch / "home"
        work.mkdir()
        home.mkdir()
        (work / "NEXUS.md").write_text("A rule of this project, which says what to do and what to leave. " * 40)
        (home / "config.json").write_text(json.dumps({"models": {MODEL: {"window": WINDOW}}}))
        os.environ["XDG_CACHE_HOME"] = str(scratch / "cache")
        ledger = open_sqlite(f"sqlite:///{scratch / 'ledger.db'}")
        ledger.store.run("pragma synchronous = off")  # no row is about the disk
        with Nexus(work, home=home, installed=False, ledger=ledger) as nexus:
            print(json.dumps([_talk(nexus, kind, range(early)), _talk(nexus, kind, range(early, late))]))
        ledger.close()


def resident_megabytes() -> float:
    """The memory of this process that is in use now."""
    gc.collect()
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError as error:
        raise CannotMeasureError("memory is read from /proc/self/statm, which is not there") from error
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def _talk(nexus: Nexus, kind: Kind, numbers: range) -> float:
    if kind == "async turns":
        asyncio.run(_await_turns(nexus, numbers))
    elif kind == "turns":
        _take_turns(nexus, "long", numbers)
    else:
        for number in numbers:
            _take_turns(nexus, f"session {number}", range(TURNS_OF_SESSION))
    return resident_megabytes()


def _take_turns(nexus: Nexus, label: str, numbers: range) -> None:
    session = nexus.session(label, model=MODEL)
    for number in numbers:
        session.ask(f"{label}, {number}: {QUESTION}")
        session.record(_reply(label, number))


async def _await_turns(nexus: Nexus, numbers: range) -> None:
    session = nexus.async_session("long", model=MODEL)
    for number in numbers:
        await session.ask(f"{number}: {QUESTION}")
        await session.record(_reply("long", number))


def _reply(label: str, number: int) -> dict[str, object]:
    content = [{"type": "text", "text": f"{label}, {number}: {ANSWER}"}]
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "content": content,
        "stop_reason": "end_turn",
    }


if __name__ == "__main__":
    sys.exit(main())
