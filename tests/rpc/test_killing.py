"""A pool that is killed while its agents wait in tools and streams goes on in the next program."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.rpc.program import AGENTS


def start(directory: Path, verb: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.rpc.program", str(directory), verb]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)


@pytest.mark.slow
def test_killed_in_tools_and_streams_and_resumed(tmp_path: Path) -> None:
    with start(tmp_path, "run") as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "working\n"
        running.kill()
    with start(tmp_path, "resume") as resumed:
        assert resumed.stdout is not None
        said = resumed.stdout.read().splitlines()

    assert (said, resumed.returncode) == ([f"done result {number}" for number in range(AGENTS)], 0)
    # A tool whose result was stored is not run again; one that was running is.
    runs = Counter((tmp_path / "started").read_text().split())
    assert runs == {str(number): 1 + number % 2 for number in range(AGENTS)}
