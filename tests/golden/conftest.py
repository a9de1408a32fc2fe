"""The worlds in which goldens are made, and the ledgers in them."""

from __future__ import annotations

import gzip
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from tests.golden.cases import Case, produce, without_identity
from tests.golden.goldens import NET, WRITES, compare, path_of, write
from tests.golden.recording import Recorder
from tests.golden.world import STARTED_MS, World, claimed_root

STORED = NET / "recorded.sql.gz"
Golden = Callable[[str, str, Callable[[World], str]], None]
GoldenCase = Callable[[str, str, Case], None]


@pytest.fixture(scope="session")
def worlds() -> Iterator[list[World]]:
    """A world; where goldens are written, two, to see what depends on the directory."""
    if not sys.platform.startswith("linux"):
        pytest.skip("goldens are made on Linux, where /tmp is /tmp")
    with ExitStack() as claimed:
        yield [World(claimed.enter_context(claimed_root())) for _ in range(1 + WRITES)]


@pytest.fixture
def golden(worlds: list[World]) -> Golden:
    """Compare what is produced in a world with a golden, by its area and name."""

    def check(area: str, name: str, make: Callable[[World], str]) -> None:
        texts = []
        for world in worlds:
            with world.entered():
                texts.append(make(world))
        if WRITES:
            write(path_of(area, name), *texts)
        else:
            compare(path_of(area, name), texts[0])

    return check


@pytest.fixture
def golden_case(golden: Golden, request: pytest.FixtureRequest) -> GoldenCase:
    """The same for what commands print."""

    def check(area: str, name: str, case: Case) -> None:
        found = request.getfixturevalue(case.ledger) if case.ledger else {}

        def make(world: World) -> str:
            text = produce(world, case, found.get(world.root))
            return text if area == "show" else without_identity(text)

        golden(area, name, make)

    return check


@pytest.fixture(scope="session")
def stored(worlds: list[World], tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Path]:
    """The ledger that was recorded when the goldens were begun, the same for each directory."""
    database = load(STORED, tmp_path_factory.mktemp("stored") / "ledger.db")
    return {world.root: database for world in worlds}


@pytest.fixture(scope="session")
def fresh(worlds: list[World], tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Path]:
    """The same conversations, recorded now, by the directory in which they were held."""
    return {world.root: recorded(world, tmp_path_factory.mktemp("fresh")) for world in worlds}


def recorded(world: World, into: Path) -> Path:
    """Record the conversations, and keep the ledger."""
    with world.entered():
        world.clock.ms = STARTED_MS
        Recorder(world).record()
        return Path(shutil.copy(world.home / "ledger.db", into))


def load(dump: Path, database: Path) -> Path:
    """Make a database of what was dumped."""
    with closing(sqlite3.connect(database)) as connection:
        connection.executescript(gzip.decompress(dump.read_bytes()).decode("utf-8"))
        connection.execute("pragma journal_mode = wal")
    return database


def dumped(database: Path) -> bytes:
    """A database as text, compressed; the same database, the same bytes."""
    with closing(sqlite3.connect(database)) as connection:
        (version,) = connection.execute("pragma user_version").fetchone()
        (application,) = connection.execute("pragma application_id").fetchone()
        lines = [f"pragma user_version = {version};", f"pragma application_id = {application};", *connection.iterdump()]
    return gzip.compress("\n".join(lines).encode("utf-8"), mtime=0)
