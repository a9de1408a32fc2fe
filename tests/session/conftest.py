"""Sessions over a ledger in memory, which outlives every Nexus of a test as a file would."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from nexus_core import Nexus
from nexus_core.history.ledger.memory import MemoryLedger
from nexus_core.session.session import Session
from tests.dialects.support import Loopback, listening
from tests.session.support import TOOLS

OpenSession = Callable[..., Session]
OpenNexus = Callable[..., Nexus]


@pytest.fixture
def loopback() -> Iterator[Loopback]:
    """What a client of an API is told to talk to."""
    with listening() as heard:
        yield heard


@pytest.fixture
def ledger() -> MemoryLedger:
    return MemoryLedger()


@pytest.fixture
def open_nexus(tmp_path: Path, nexus_home: Path, ledger: MemoryLedger) -> Iterator[OpenNexus]:  # noqa: ARG001 - the home must be in place
    """A Nexus like a program that was just started."""
    work = tmp_path / "work"
    work.mkdir()
    with ExitStack() as opened:

        def make(**arguments: Any) -> Nexus:
            given: dict[str, Any] = {"defaults": False, "ledger": ledger, **arguments}
            return opened.enter_context(Nexus(work, **given))

        yield make


@pytest.fixture
def open_session(open_nexus: OpenNexus) -> OpenSession:
    """A session in a program that was just started."""

    def make(label: str = "s", **arguments: Any) -> Session:
        return open_nexus().session(label, **{"model": "claude-sonnet-4", "tools": TOOLS} | arguments)

    return make
