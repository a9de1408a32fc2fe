"""Sessions over a ledger, which outlives every Nexus of a test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from nexus_core import Nexus
from nexus_core.compaction.trigger import CompactionOptions
from nexus_core.ledger.in_memory import MemoryLedger
from nexus_core.ledger.ledger import StoreLedger
from nexus_core.session.session import Session
from nexus_core.testing import write_files
from nexus_plugins.ledger import nexus_ledger
from tests.dialects.support import Loopback, listening
from tests.session.support import TOOLS

OpenSession = Callable[..., Session]
OpenNexus = Callable[..., Nexus]


@pytest.fixture
def loopback() -> Iterator[Loopback]:
    """What a client of an API is told to talk to."""
    with listening() as heard:
        yield heard


class Clock:
    """What sessions take for the time."""

    ms = 1_770_000_000_000


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock that stands until a test moves it."""
    clock = Clock()
    monkeypatch.setattr("nexus_core.request.runtime.get_time_ms", lambda: clock.ms)
    return clock


@pytest.fixture
def only_cuts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is summarized: what does not fit is left out."""
    off = CompactionOptions(enabled=False)
    monkeypatch.setattr("nexus_core.session.session_thread.read_compaction_options", lambda _: off)


EVERYWHERE = pytest.mark.parametrize(
    "kept_in",
    ["memory", pytest.param("sqlite", marks=pytest.mark.slow), pytest.param("postgres", marks=pytest.mark.slow)],
    indirect=True,
)
"""For tests that hold wherever conversations are kept: `pytestmark = EVERYWHERE`."""


@pytest.fixture
def kept_in(request: pytest.FixtureRequest) -> str:
    """What kind of ledger the sessions of a test have."""
    kind: str = getattr(request, "param", "memory")
    return kind


@pytest.fixture
def ledger(kept_in: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StoreLedger]:
    """A ledger of that kind."""
    if kept_in == "memory":
        yield MemoryLedger()
        return
    url = f"sqlite:///{tmp_path / 'ledger.db'}" if kept_in == "sqlite" else request.getfixturevalue("database")
    opened = nexus_ledger(url)
    assert isinstance(opened, StoreLedger)
    yield opened
    opened.close()


@pytest.fixture
def open_nexus(tmp_path: Path, nexus_home: Path, ledger: StoreLedger) -> Iterator[OpenNexus]:  # noqa: ARG001 - the home must be in place
    """A Nexus like a program that was just started."""
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    with ExitStack() as opened:

        def make(**arguments: Any) -> Nexus:
            given: dict[str, Any] = {"defaults": False, "ledger": ledger, **arguments}
            return opened.enter_context(Nexus(work, **given))

        yield make


@pytest.fixture
def no_session_start(tmp_path: Path) -> None:
    """For tests that count messages and steps: new sessions do not say when they started."""
    write_files(tmp_path / "work", {".nexus3/config.json": '{"context": {"session_start": false}}'})


@pytest.fixture
def open_session(open_nexus: OpenNexus) -> OpenSession:
    """A session in a program that was just started."""

    def make(label: str = "s", **arguments: Any) -> Session:
        return open_nexus().session(label, **{"model": "claude-sonnet-4", "tools": TOOLS} | arguments)

    return make
