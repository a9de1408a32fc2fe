"""A process that is forked closes what it has of its parent's, before it opens anything.

SQLite notes the locks of a process in its memory. A child has these notes without the locks: as long as a connection of
its parent is open in it, it takes none of its own, and another program may delete the log that it writes to.
"""

from __future__ import annotations

import os
from threading import Lock
from typing import TYPE_CHECKING, Protocol
from weakref import WeakSet

if TYPE_CHECKING:
    from threading import RLock


class Holder(Protocol):
    """Who has a connection."""

    @property
    def lock(self) -> RLock:
        """Held while the connection is used."""

    def leave(self) -> None:
        """Close a connection that was inherited."""


_holders: WeakSet[Holder] = WeakSet()
_held: list[Holder] = []
_one_at_a_time = Lock()


def watch(holder: Holder) -> None:
    """Have somebody wait with a fork until nothing is under way, and leave the connection in the child."""
    _holders.add(holder)


def _hold() -> None:
    _one_at_a_time.acquire()  # two threads may fork
    _held[:] = _holders
    for holder in _held:
        holder.lock.acquire()


def _release() -> None:
    while _held:
        _held.pop().lock.release()
    _one_at_a_time.release()


def _leave() -> None:
    for holder in _held:
        holder.leave()
    _release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_hold, after_in_parent=_release, after_in_child=_leave)
