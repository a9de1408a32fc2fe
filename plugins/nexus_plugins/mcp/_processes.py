"""Ends a program with all that it started."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

MARK = "NEXUS_MCP_RUN"
"""The variable by which everything is found that a server started, even what has left its process group."""


def new_mark() -> str:
    """A value for it that no other run has."""
    return uuid4().hex


def kill_all(leader: int, mark: str) -> None:
    """End the process group of a server at once, and on Linux whatever else carries its mark."""
    if not hasattr(os, "killpg"):
        return
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
    for process in _marked(mark):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(process, signal.SIGKILL)


def ask_to_end(leader: int) -> None:
    """Tell the process group of a server that it should end."""
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(leader, signal.SIGTERM)


def _marked(mark: str) -> list[int]:
    if not sys.platform.startswith("linux"):
        return []
    wanted = f"{MARK}={mark}".encode()
    found = []
    for entry in os.listdir("/proc"):  # noqa: PTH208 - hundreds of them
        if entry.isdecimal():
            with suppress(OSError):  # it has ended, or belongs to somebody else
                if wanted in Path("/proc", entry, "environ").read_bytes().split(b"\0"):
                    found.append(int(entry))
    return found
