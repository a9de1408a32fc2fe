"""Commands of `nexus mcp` at a terminal: one that is broken off leaves nothing running."""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.plugins.mcp.world import EVIL, alive, define, script, survivors

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at /proc"),
]
CTRL_C = b"\x03"


def start(home: Path, work: Path, *words: str) -> tuple[int, int]:
    """The command at a terminal of its own: its number, and the other end of the terminal."""
    import pty  # noqa: PLC0415 - not everywhere

    environment = {**os.environ, "NEXUS_HOME": str(home), "PYTHONPATH": f"{ROOT}:{ROOT}/plugins", "NO_COLOR": "1"}
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(work)
        os.execve(sys.executable, [sys.executable, "-m", "nexus_core", "mcp", *words], environment)  # noqa: S606 - ours
    return child, terminal


def begin(home: Path, work: Path, *words: str) -> tuple[int, int]:
    """The same, once its server runs."""
    child, terminal = start(home, work, *words)
    for _ in range(600):
        if alive(home):
            break
        time.sleep(0.05)
    time.sleep(0.3)  # until the server has come to its misdeed
    return child, terminal


def end(child: int, terminal: int) -> tuple[int, str]:
    """Its exit code, and what it printed."""
    said = b""
    with suppress(OSError):
        while part := os.read(terminal, 4096):
            said += part
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said.decode()


@pytest.mark.acceptance("R18")
@pytest.mark.parametrize(
    ("words", "presses"), [(["call", "bad", "echo"], 1), (["call", "bad", "echo"], 3), (["tools", "--refresh"], 1)]
)
def test_ctrl_c_ends_the_command_and_its_server(nexus_home: Path, work: Path, words: list[str], presses: int) -> None:
    define(nexus_home, bad=script(EVIL["hangs at the beginning, with children, and does not listen"]))
    child, terminal = begin(nexus_home, work, *words)

    for _ in range(presses):
        os.write(terminal, CTRL_C)
        time.sleep(0.05)
    code, said = end(child, terminal)

    assert code == 130
    assert said.replace("^C", "").strip() == "Error: interrupted"
    assert survivors(nexus_home) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_who_is_told_to_end_ends_its_server_first(nexus_home: Path, work: Path, number: signal.Signals) -> None:
    define(nexus_home, bad=script(EVIL["hangs at the beginning, with children, and does not listen"]))
    child, terminal = begin(nexus_home, work, "call", "bad", "echo")

    os.kill(child, number)
    code, said = end(child, terminal)

    assert (code, said) == (128 + number, "")
    assert survivors(nexus_home) == []


def test_who_serves_at_a_terminal_is_told_what_is_waited_for(nexus_home: Path, work: Path) -> None:
    child, terminal = start(nexus_home, work, "serve")
    told = b""
    while b"\n" not in told:
        told += os.read(terminal, 4096)
    time.sleep(0.3)  # until it waits
    os.write(terminal, CTRL_C)
    code, said = end(child, terminal)

    assert told.decode().strip() == "Waiting for an MCP client on standard input; press Ctrl-C to stop."
    assert code == 130
    assert said.replace("^C", "").strip() == "Error: interrupted"
