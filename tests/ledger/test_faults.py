"""Nothing is lost when processes die or quarrel, and damage is found."""

from __future__ import annotations

import json
import os
import random
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from nexus_plugins.ledger.sqlite import open_sqlite, schema
from tests.conftest import ROOT
from tests.effort import is_long_run
from tests.effort import rounds as repeated
from tests.ledger.backends import Backend, figure
from tests.ledger.test_rebuild import fill
from tests.ledger.test_verify import fill_everything
from tests.tables import count

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked here")

TRIED = ("kills", "appends", "openings", "migrations", "acknowledged")
"""What an experiment may say that it has tried so often."""


def experiment(
    name: str,
    url: str,
    number: int,
    directory: Path,
    *,
    of: str = "experiments",
    under: Sequence[str] = (),
    processes: int = 8,
) -> dict[str, Any]:
    """What came of an experiment, in a process of its own: it forks, and what forks should have no threads.

    Args:
        name: Which.
        url: The ledger.
        number: How much of it.
        directory: Where it may leave something.
        of: The module it is in.
        under: The command that starts it.
        processes: How many take part, where there are many.
    """
    command = [*under, sys.executable, "-m", f"tests.ledger.{of}", name, url, str(number)]
    environment = {**os.environ, "EXPERIMENT_DIRECTORY": str(directory), "EXPERIMENT_PROCESSES": str(processes)}
    done = subprocess.run(command, cwd=ROOT, env=environment, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    figure(f"{name} ({url.partition(':')[0]}): {done.stdout.strip()}")
    result: dict[str, Any] = json.loads(done.stdout)
    count(next((result[each] for each in TRIED if each in result), number))
    return result


@pytest.mark.acceptance("R1")
@pytest.mark.parametrize("kills", [10, pytest.param(repeated(200), marks=pytest.mark.slow)])
def test_a_writer_that_is_killed_loses_nothing_it_was_told_is_kept(
    backend: Backend, tmp_path: Path, kills: int
) -> None:
    if backend.name == "memory":
        pytest.skip("it is forgotten")

    result = experiment("kills", backend.url, kills, tmp_path)

    assert result["acknowledged"] >= kills // 2
    assert (result["missing"], result["half"], result["found"], result["tip"]) == (0, 0, [], True)
    assert result["unacknowledged"] <= kills


@pytest.mark.acceptance("R3")
@pytest.mark.parametrize("sessions", ["one_session", "own_sessions"])
@pytest.mark.parametrize("appends", [10, pytest.param(repeated(200), marks=pytest.mark.slow)])
def test_eight_processes_write_without_loss(backend: Backend, tmp_path: Path, sessions: str, appends: int) -> None:
    if backend.name == "memory":
        pytest.skip("it is one process's own")

    result = experiment(sessions, backend.url, appends, tmp_path)

    assert result["appends"] == 8 * appends
    assert (result["failed"], result["lost"], result["twice"], result["forks"]) == (0, 0, 0, 0)
    assert result["found"] == []


@pytest.mark.acceptance("R3")
@pytest.mark.slow
@pytest.mark.parametrize("sessions", ["one_session", "own_sessions"])
def test_thirty_two_processes_write_into_one_file_without_loss(tmp_path: Path, sessions: str) -> None:
    appends = 2000 if is_long_run() else 20

    result = experiment(sessions, f"sqlite:///{tmp_path}/ledger.db", appends, tmp_path, processes=32)

    assert result["appends"] == 32 * appends
    assert (result["failed"], result["lost"], result["twice"], result["forks"]) == (0, 0, 0, 0)
    assert result["found"] == []


@pytest.mark.acceptance("R5")
@pytest.mark.slow
@pytest.mark.parametrize("name", ["openings", "migrations"])
def test_sixteen_processes_open_a_new_or_an_older_file_at_once(tmp_path: Path, name: str) -> None:
    url = f"sqlite:///{tmp_path}/new/ledger.db"

    result = experiment(name, url, 200 if is_long_run() else 5, tmp_path, processes=16)

    assert (result["failed"], result["found"]) == (0, [])


@pytest.mark.acceptance("R5")
@pytest.mark.parametrize("name", ["openings", "migrations"])
@pytest.mark.parametrize("rounds", [2, pytest.param(repeated(20), marks=pytest.mark.slow)])
def test_eight_processes_open_a_new_or_an_older_file_at_once(tmp_path: Path, name: str, rounds: int) -> None:
    result = experiment(name, f"sqlite:///{tmp_path}/new/ledger.db", rounds, tmp_path)

    assert (result["failed"], result["found"]) == (0, [])


@pytest.mark.acceptance("R22")
@pytest.mark.slow
def test_processes_that_write_when_a_later_nexus_comes_stop_and_lose_nothing(backend: Backend, tmp_path: Path) -> None:
    if backend.name == "memory":
        pytest.skip("it is one process's own")

    result = experiment("meeting", backend.url, 25, tmp_path)

    assert result["acknowledged"] >= 25
    assert (result["failed"], result["missing"], result["more"], result["found"]) == (0, 0, 0, [])
    known = schema.SCHEMA_VERSION
    refusal = f"the ledger was written by a newer Nexus: it has schema {known + 1}, this one knows {known}"
    assert result["refusals"] == [refusal] * 4


# ---- bit rot ----------------------------------------------------------------------------------------------


def rows(path: Path) -> object:
    """Everything SQLite reads from a file; None when it cannot."""
    tables = ("branches", "steps", "sessions", "aliases", "history", "blobs", "names", "deletions", "erased")
    with closing(sqlite3.connect(path)) as connection:
        connection.text_factory = bytes
        try:
            return [connection.execute(f"select * from {table}").fetchall() for table in tables]  # noqa: S608 - our own
        except (sqlite3.Error, UnicodeDecodeError):  # the second, when a message quotes the damage
            return None


@pytest.mark.acceptance("R7")
@pytest.mark.parametrize("cases", [60, pytest.param(repeated(3000), marks=pytest.mark.slow)])
@pytest.mark.parametrize("length", [1, 64])
def test_random_damage_is_found(tmp_path: Path, cases: int, length: int) -> None:
    """Damage counts when SQLite reads something else than before; bytes that nothing uses are nobody's loss."""
    pristine = tmp_path / "pristine.db"
    with closing(open_sqlite(f"sqlite:///{pristine}")) as ledger:
        fill(ledger, 20)
    content, before = pristine.read_bytes(), rows(pristine)
    chance = random.Random(length)  # noqa: S311 - the same damage every time
    path = tmp_path / "ledger.db"
    harmful = found = 0
    for _ in range(cases):
        damaged = bytearray(content)
        at = chance.randrange(len(damaged) - length)
        for offset in range(at, at + length):
            damaged[offset] ^= chance.randrange(1, 256)
        for name in (path, Path(f"{path}-wal"), Path(f"{path}-shm")):
            name.unlink(missing_ok=True)
        path.write_bytes(damaged)
        with closing(open_sqlite(f"sqlite:///{path}")) as ledger:
            noticed = bool(list(ledger.verify()))
        if rows(path) != before:
            harmful += 1
            found += noticed

    count(cases)
    figure(f"{cases} times {length} random bytes: {harmful} changed what is read, {found} of these found")
    assert harmful > cases / 4
    assert found >= harmful * 0.99


@pytest.mark.acceptance("R7")
@pytest.mark.parametrize("flips", [150, pytest.param(repeated(2000), marks=pytest.mark.slow)])
def test_a_flipped_bit_that_changes_what_is_read_is_found(tmp_path: Path, flips: int) -> None:
    """Most bits of a small file are in gaps of its pages, and no row is read from these."""
    pristine, path = tmp_path / "pristine.db", tmp_path / "ledger.db"
    with closing(open_sqlite(f"sqlite:///{pristine}")) as ledger:
        fill_everything(ledger)
    content, before = pristine.read_bytes(), rows(pristine)
    chance = random.Random(5)  # noqa: S311 - the same bits every time
    harmful, missed = 0, []
    for _ in range(flips):
        bit = chance.randrange(len(content) * 8)
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        for name in (path, Path(f"{path}-wal"), Path(f"{path}-shm")):
            name.unlink(missing_ok=True)
        path.write_bytes(damaged)
        with closing(open_sqlite(f"sqlite:///{path}")) as ledger:
            is_found = bool(list(ledger.verify()))
        if rows(path) != before:
            harmful += 1
            missed += [] if is_found else [bit]

    count(flips)
    figure(f"{flips} flipped bits: {harmful} changed what is read, {len(missed)} of these not found")
    assert harmful > flips / 10
    assert missed == []


@pytest.mark.acceptance("R7")
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_a_file_that_was_cut_off_is_found_out(tmp_path: Path, share: float) -> None:
    path = tmp_path / "ledger.db"
    with closing(open_sqlite(f"sqlite:///{path}")) as ledger:
        fill(ledger, 20)
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])

    with closing(open_sqlite(f"sqlite:///{path}")) as ledger:
        assert list(ledger.verify()) != []
