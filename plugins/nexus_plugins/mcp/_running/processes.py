"""Ends a program with all that it started."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

MARK = "NEXUS_MCP_RUN"
"""The variable by which everything is found that a server started, even what has left its process group."""
MOST_ROUNDS = 20
"""How often it is looked again for what was started while the others were ended."""


class Known(NamedTuple):
    """A process: its number, and when it was born, because numbers are used again."""

    pid: int
    born: int

    @property
    def is_alive(self) -> bool:
        """Whether it is still there."""
        status = _status(self.pid)
        return status is not None and status[0] == self.born


def new_mark() -> str:
    """A value for it that no other run has."""
    return uuid4().hex


def ask_to_end(leader: int) -> None:
    """Tell the process group of a server that it should end."""
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(leader, signal.SIGTERM)


def family(leader: int, mark: str) -> frozenset[Known]:
    """The living processes that descend from a server or carry its mark; on Linux only."""
    if not sys.platform.startswith("linux"):
        return frozenset()
    wanted = f"{MARK}={mark}".encode()
    parents: dict[Known, int] = {}
    marked: set[Known] = set()
    for pid in [int(entry) for entry in os.listdir("/proc") if entry.isdecimal()]:  # noqa: PTH208 - hundreds of them
        status = _status(pid)
        if status is None:
            continue
        known = Known(pid, status[0])
        parents[known] = status[1]
        with suppress(OSError):  # it belongs to somebody else
            if wanted in Path("/proc", str(pid), "environ").read_bytes().split(b"\0"):
                marked.add(known)
    return frozenset(marked | _descendants({leader, *(each.pid for each in marked)}, parents))


def _status(pid: int) -> tuple[int, int] | None:
    """When a process was born and who its parent is; None when it has ended."""
    try:
        state, parent, *rest = Path("/proc", str(pid), "stat").read_bytes().rpartition(b")")[2].split()
    except (OSError, ValueError):
        return None
    return None if state in {b"Z", b"X"} else (int(rest[17]), int(parent))


def _descendants(roots: set[int], parents: dict[Known, int]) -> set[Known]:
    found: set[Known] = set()
    while roots:
        fresh = {child for child, parent in parents.items() if parent in roots} - found
        found |= fresh
        roots = {each.pid for each in fresh}
    return found


def kill_all(leader: int, mark: str, known: frozenset[Known] = frozenset()) -> None:
    """End the process group of a server at once; on Linux also whatever descends from it or carries its mark.

    Args:
        leader: The server.
        mark: Its mark.
        known: What descended from it before it was told to end. Whose parent has ended is somebody else's child; if it
            has cleared its environment too, it cannot be told from any other process.
    """
    for _ in range(MOST_ROUNDS):
        found = family(leader, mark) | {each for each in known if each.is_alive}
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(leader, signal.SIGKILL)
        for process in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process.pid, signal.SIGKILL)
        if not found:
            return
