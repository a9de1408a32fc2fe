"""An agent that is killed in the middle of a tool call or a stream is resumed by the next program."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from nexus_core import Nexus
from tests.conftest import ROOT


def start(directory: Path, verb: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.agents.program", str(directory), verb]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)


@pytest.mark.slow
def test_killed_in_the_middle_of_a_tool_call_and_resumed(tmp_path: Path) -> None:
    with start(tmp_path, "run") as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "working\n"
        running.kill()
    with start(tmp_path, "resume") as resumed:
        assert resumed.stdout is not None
        said = resumed.stdout.read()

    assert (said, resumed.returncode) == ("All done. 1\n", 0)
    # The first call had its result and is not run again; the second was running and is.
    started = [line.split()[0] for line in (tmp_path / "started").read_text().splitlines()]
    assert started == ["1", "2", "2"]
    with Nexus(tmp_path, home=tmp_path / "home") as nexus:
        messages = nexus.session("s").messages
    results = [str(part.parts[0].text) for each in messages for part in each.tool_results]  # type: ignore[union-attr]
    assert results == ["result 1", "result 2"]


@pytest.mark.slow
def test_killed_in_the_middle_of_a_stream_and_resumed(tmp_path: Path) -> None:
    with start(tmp_path, "stream") as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "working\n"
        running.kill()
    with start(tmp_path, "resume") as resumed:
        assert resumed.stdout is not None
        said = resumed.stdout.read()

    assert (said, resumed.returncode) == ("All done. 1\n", 0)
    assert [line.split()[0] for line in (tmp_path / "started").read_text().splitlines()] == ["1"]
    with Nexus(tmp_path, home=tmp_path / "home") as nexus:
        replies = [each.content for each in nexus.session("s").messages if each.role == "assistant" and each.content]
    assert replies == ["All done."]  # the half of a reply that nobody stored is not there
