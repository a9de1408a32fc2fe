"""Separate programs talk in one session, all at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.effort import rounds
from tests.ledger.backends import figure
from tests.tables import count

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked here"),
]

TURNS = rounds(6)


@pytest.mark.acceptance("R3")
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_eight_processes_talk_in_one_session_without_loss(
    tmp_path: Path, nexus_home: Path, request: pytest.FixtureRequest, kind: str
) -> None:
    assert nexus_home.is_dir()
    url = request.getfixturevalue("database") if kind == "postgres" else f"sqlite:///{tmp_path}/ledger.db"
    work = tmp_path / "work"
    work.mkdir()
    command = [sys.executable, "-m", "tests.session.racing", str(work), url, str(TURNS)]

    done = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=False)

    count(8 * TURNS)
    figure(f"8 processes in one session ({kind}): {done.stdout.strip()}")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == {
        "turns": 8 * TURNS,
        "untyped": 0,
        "lost": 0,
        "twice": 0,
        "mixed": 0,
        "found": [],
    }
