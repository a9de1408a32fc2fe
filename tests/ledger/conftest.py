"""Ledgers for tests; PostgreSQL is a real server (servers.py)."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from nexus_core.ledger.in_memory import MemoryLedger
from nexus_core.ledger.ledger import StoreLedger
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
    from nexus_plugins.ledger.postgres import open_postgres

    return open_postgres(url)


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


def can(*command: str) -> bool:
    """Whether a command is there and allowed."""
    return (
        shutil.which(command[0]) is not None
        and subprocess.run(command, capture_output=True, check=False).returncode == 0
    )


@pytest.fixture(scope="session")
def meddler() -> str:
    """What lets calls of the system fail."""
    if not can("strace", "-o", os.devnull, "-e", "inject=fsync:error=EIO", "true"):
        pytest.skip("strace is not there, or not allowed")
    return "strace"
