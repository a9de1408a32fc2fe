"""The same request, made again: in this process, and in others in which Python puts sets into another order."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

from nexus_core.cli.request.written import read_own
from nexus_core.errors import NexusError
from nexus_core.text.console import counted

if TYPE_CHECKING:
    from collections.abc import Generator
    from contextlib import AbstractContextManager

    from nexus_core.assembly.sides import Sendable
    from nexus_core.cli.request.operands import Operand
    from nexus_core.nexus import Nexus

SEEDS = ("1", "2")
"""What decides in which order the other processes see sets: with two of them, few mistakes look right by chance."""
_TICK = 1.0
"""Seconds. What shows the time shows another one after that."""


def made_again(
    operand: Operand, nexus: Nexus, ledger: str, reopened: AbstractContextManager[Nexus]
) -> Generator[tuple[str, Sendable]]:
    """A request made again, each time with the name of where that was.

    Args:
        operand: What to make.
        nexus: Who has made it before.
        ledger: The url of the ledger; "" for the user's own.
        reopened: The same once more, with plugins that are asked again.
    """
    began = time.monotonic()
    with ExitStack() as running:
        processes = [(seed, running.enter_context(_start(operand, nexus, ledger, seed))) for seed in SEEDS]
        for seed, process in processes:
            yield f"{operand}, in another process", _printed(process, seed)
    time.sleep(max(0.0, began + _TICK - time.monotonic()))
    with reopened as again:
        yield f"{operand}, a second time", operand.read(again)


def _start(operand: Operand, nexus: Nexus, ledger: str, seed: str) -> subprocess.Popen[bytes]:
    # -P: what lies in the current directory must not be imported.
    command = [sys.executable, "-P", "-m", "nexus_core", "-C", str(nexus.cwd), "--home", str(nexus.home)]
    command += [*operand.command, *(["--ledger", ledger] if ledger else [])]
    return subprocess.Popen(  # noqa: S603 - it is ourselves
        command,
        env={**os.environ, "PYTHONHASHSEED": seed},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def _printed(process: subprocess.Popen[bytes], seed: str) -> Sendable:
    out, err = process.communicate()
    if process.returncode:
        said = err.decode(errors="replace").strip().splitlines() or [counted(process.returncode, "error")]
        raise NexusError(f"another process (PYTHONHASHSEED={seed}) could not do it: {said[0].removeprefix('Error: ')}")
    return read_own(json.loads(out), "another process")
