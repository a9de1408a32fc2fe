"""What counts as a module, a function and a crossing, and what does not."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from types import ModuleType

import pytest

from benchmarks import journeys
from benchmarks.measuring.crossings import CallWatcher, Journey
from nexus_core.testing import write_files

FILES = {
    "trip/__init__.py": "",
    "trip/first.py": """
from trip import second


def travel():
    second.help()
    second.help()
    return [second.Answer(), *map(second.double, [1, 2])]


def stay():
    return own()


def own():
    return 1


def walk():
    return list(second.steps())


def fetch():
    from trip import third
    return third.done()
""",
    "trip/second.py": """
from dataclasses import dataclass


@dataclass
class Answer:
    number: int = 1


def help():
    return [each for each in "ab"]


def double(number):
    return 2 * number


def steps():
    yield 1
    yield 2
    yield 3
""",
    "trip/third.py": "from trip.second import help\n\nhelp()\n\n\ndef done():\n    return True\n",
}


@pytest.fixture
def trip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A library of three modules, the last of which is not imported yet."""
    write_files(tmp_path, FILES)
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("trip", "trip.first", "trip.second", "trip.third"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import trip.first  # type: ignore[import-not-found]

    first: ModuleType = trip.first
    return first


def test_a_call_into_another_module_is_a_crossing(trip: ModuleType) -> None:
    journey = CallWatcher(["trip"]).watch(trip.travel)

    assert journey == Journey(modules=2, functions=4, crossings=5)


def test_a_call_inside_a_module_is_none(trip: ModuleType) -> None:
    assert CallWatcher(["trip"]).watch(trip.stay) == Journey(modules=1, functions=2, crossings=0)


def test_a_generator_that_goes_on_is_not_called_again(trip: ModuleType) -> None:
    assert CallWatcher(["trip"]).watch(trip.walk) == Journey(modules=2, functions=2, crossings=1)


def test_what_an_import_runs_does_not_count(trip: ModuleType) -> None:
    assert CallWatcher(["trip"]).watch(trip.fetch) == Journey(modules=2, functions=2, crossings=1)


def test_other_libraries_do_not_count(trip: ModuleType) -> None:
    assert CallWatcher(["elsewhere"]).watch(trip.travel) == Journey(0, 0, 0)


def test_threads_that_are_started_count(trip: ModuleType) -> None:
    def work() -> None:
        thread = threading.Thread(target=trip.stay)
        thread.start()
        thread.join()

    assert CallWatcher(["trip"]).watch(work).functions == 2


def test_a_goal_compares_with_what_others_take() -> None:
    found = {"turn": Journey(150, 400, 3000), "agents": Journey(100, 400, 1000)}

    rows = journeys.compared("turn", found)

    assert [(row.value, row.verdict) for row in rows] == [(1.5, "MISSED"), (1.0, "ok"), (3.0, "MISSED")]
    assert rows[0].detail == "150 / 100"
    assert journeys.compared("turn", {"turn": found["turn"]}) == []


def test_every_way_has_a_row_for_each_part() -> None:
    names = [row.name for way in journeys.WAYS.values() for row in journeys.rows_of(way, Journey(1, 2, 3))]

    assert len(names) == len(set(names)) == 3 * len(journeys.WAYS)
