"""`nexus` where little is allowed, where nobody reads, and where somebody ends it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from nexus_core.testing import write_files
from tests.conftest import ROOT
from tests.effort import sampled

WATCHED = """
import signal, sys

# Who is started in the background inherits that these are ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

def watch(event, arguments):
    if event in {"socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"}:
        sys.stderr.write(f"CONNECTION {event} {arguments}\\n")

sys.addaudithook(watch)
from nexus_core.cli import main
main()
"""
WAITING = """
import time
from nexus_core import hookimpl

@hookimpl
def nexus_static_sections():
    print("waiting", flush=True)
    time.sleep(60)
"""
ASSEMBLE = ("assemble", "Hello.", "--api", "anthropic")


def start(arguments: tuple[str, ...], cwd: Path, **variables: str | None) -> subprocess.Popen[str]:
    """Start the command in a process of its own; a variable that is None is not there."""
    known = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'plugins'}", "HOME": str(cwd.parent)}
    environment = {name: value for name, value in {**known, **variables}.items() if value is not None}
    return subprocess.Popen(
        [sys.executable, "-c", WATCHED, *arguments],
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


@pytest.fixture
def work(tmp_path: Path) -> Path:
    return write_files(tmp_path / "work", {"NEXUS.md": "Be brief.\n", "AGENTS.md": "Caf\u00e9.\n"})


SANDBOXES: dict[str, dict[str, str | None]] = {
    "no network": {},
    "no home": {"HOME": None, "XDG_CACHE_HOME": None},
    "a home that cannot be made": {"HOME": "/proc/nowhere", "NEXUS_HOME": "/proc/nowhere/.nexus3"},
    "a cache that cannot be made": {"XDG_CACHE_HOME": "/proc/nowhere"},
    "a home that is a file": {"HOME": "/etc/hostname"},
}


@pytest.mark.acceptance("R21")
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="nothing here that not even the superuser may write to")
@pytest.mark.parametrize("variables", SANDBOXES.values(), ids=SANDBOXES)
def test_a_call_is_put_together_where_next_to_nothing_is_allowed(work: Path, variables: dict[str, str | None]) -> None:
    before = sorted(work.rglob("*"))

    out, err = (running := start(ASSEMBLE, work, **variables)).communicate(timeout=60)

    assert (running.returncode, "CONNECTION" in err, "Traceback" in err) == (0, False, False), err
    assert "Hello." in out
    assert sorted(work.rglob("*")) == before


TERMINALS: dict[str, dict[str, str | None]] = {
    "dumb": {"TERM": "dumb"},
    "unknown": {"TERM": "no-such-terminal"},
    "none": {"TERM": None},
    "narrow": {"COLUMNS": "1"},
    "C locale": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    "ASCII": {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
}


@pytest.mark.acceptance("R20")
@pytest.mark.parametrize(
    ("command", "terminal"), sampled(product(["show", "status", "doctor", "--help"], TERMINALS), one_in=5)
)
def test_every_terminal_gets_the_whole_of_it(work: Path, command: str, terminal: str) -> None:
    out, err = (running := start((command,), work, **TERMINALS[terminal])).communicate(timeout=60)

    assert (running.returncode, "Traceback" in err, "unexpected" in err) == (0, False, False), err
    assert out or command == "doctor"  # which has nothing to complain about


@pytest.mark.acceptance("R20")
@pytest.mark.parametrize(("sent", "code"), [("SIGINT", 130), ("SIGTERM", -15), ("SIGHUP", -1)])
def test_a_signal_ends_a_command_with_its_exit_code(tmp_path: Path, work: Path, sent: str, code: int) -> None:
    site = write_files(
        tmp_path / "site",
        {
            "waiting.py": WAITING,
            "waiting-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: waiting\nVersion: 1.0\n",
            "waiting-1.0.dist-info/entry_points.txt": "[nexus.plugins]\nwaiting = waiting\n",
        },
    )
    path = os.pathsep.join([str(ROOT), str(ROOT / "plugins"), str(site)])
    with start(("show",), work, PYTHONPATH=path) as running:
        assert running.stderr is not None
        assert running.stderr.readline() == "waiting\n"
        running.send_signal(getattr(signal, sent))
        _, err = running.communicate(timeout=60)

    assert (running.returncode, "Traceback" in err) == (code, False), err
