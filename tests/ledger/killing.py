"""Kills a command at each call by which it changes a file, as often as there are such calls."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.conftest import ROOT
from tests.effort import is_long_run

CHANGING = (
    *("write", "pwrite64", "fsync", "fdatasync", "ftruncate", "rename", "renameat", "renameat2", "link", "linkat"),
    *("unlink", "unlinkat", "mkdir", "mkdirat", "chmod", "fchmod", "flock"),
)
ONE_IN = 1 if is_long_run() else 10
"""So many of the calls are tried: all of them in a long run."""


class Killer(NamedTuple):
    """Runs a command of Python's under strace.

    Attributes:
        module: What comes behind `python -m`.
        directory: Where it is run.
    """

    module: Sequence[str]
    directory: Path

    def calls(self, log: Path) -> list[tuple[str, int]]:
        """Every call by which the command changes something, by its name and which of that name it is."""
        assert self._run("-o", str(log), "-e", f"trace={','.join(CHANGING)}") == 0
        lines = (line.partition("(")[0].split() for line in log.read_text(errors="replace").splitlines())
        seen = Counter((each[0], each[1]) for each in lines if each[1] in CHANGING)
        numbers: Counter[str] = Counter()
        for (_thread, name), number in seen.items():
            numbers[name] = max(numbers[name], number)  # strace counts the calls of each thread
        return [(name, number) for name in CHANGING for number in range(1, numbers[name] + 1)]

    def some_calls(self, log: Path) -> list[tuple[str, int]]:
        """As many of them as this run tries, and the last of each kind."""
        calls = self.calls(log)
        last = dict(calls)
        return [call for place, call in enumerate(calls) if place % ONE_IN == 0 or last[call[0]] == call[1]]

    def kill_at(self, call: str, number: int) -> bool:
        """Whether the command came to that call, and died there."""
        inject = f"inject={call}:signal=KILL:when={number}"
        return self._run("-o", os.devnull, "-e", f"trace={call}", "-e", inject) == -signal.SIGKILL

    def _run(self, *options: str) -> int:
        paths = f"{ROOT}{os.pathsep}{ROOT / 'plugins'}"
        environment = {**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
        command = ["strace", "-f", *options, sys.executable, "-m", *self.module]
        quiet = subprocess.DEVNULL
        return subprocess.run(
            command, cwd=self.directory, env=environment, stdout=quiet, stderr=quiet, check=False
        ).returncode
