"""A process forks while no thread of it is inside SQLite, and its child closes what it has of its parent's.

What a thread has locked inside SQLite stays locked in the child, where that thread is not. And SQLite notes in its
memory which locks the process has on a file: a child has these notes without the locks. As long as a connection of its
parent is open in it, it takes none of its own, and another program may delete the log that it writes to.
"""

from __future__ import annotations

import os
from threading import Condition, local
from typing import Protocol
from weakref import WeakSet


class Holder(Protocol):
    """Who has a connection."""

    def leave(self) -> None:
        """Close a connection that was inherited."""


class Gate:
    """`with` it, SQLite is used; a thread that forks waits until the others are out, and they until it has forked."""

    def __init__(self) -> None:
        self._holders: WeakSet[Holder] = WeakSet()
        self._own = local()
        self._begin()

    def _begin(self) -> None:
        self._changed = Condition()
        self._is_forking = False
        self._inside = int(self._depth > 0)

    @property
    def _depth(self) -> int:
        """How often this thread has come in."""
        depth: int = getattr(self._own, "depth", 0)
        return depth

    def watch(self, holder: Holder) -> None:
        """Have somebody leave the connection in a child."""
        self._holders.add(holder)

    def __enter__(self) -> None:
        if not self._depth:
            with self._changed:
                self._changed.wait_for(lambda: not self._is_forking)
                self._inside += 1
        self._own.depth = self._depth + 1

    def __exit__(self, *_error: object) -> None:
        self._own.depth = self._depth - 1
        if not self._depth:
            with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    def shut(self) -> None:
        """Before a fork: wait until no other thread is inside, and let none in."""
        with self._changed:
            self._changed.wait_for(lambda: not self._is_forking)
            self._is_forking = True
            self._changed.wait_for(lambda: self._inside == (self._depth > 0))

    def open(self) -> None:
        """After a fork, in the parent: the others may go on."""
        with self._changed:
            self._is_forking = False
            self._changed.notify_all()

    def begin_anew(self) -> None:
        """After a fork, in the child, which has this thread only."""
        self._begin()
        for holder in list(self._holders):
            holder.leave()


GATE = Gate()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=GATE.shut, after_in_parent=GATE.open, after_in_child=GATE.begin_anew)
