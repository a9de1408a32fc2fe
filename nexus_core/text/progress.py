"""A bar that shows how far long work has come."""

from __future__ import annotations

import os
from time import monotonic
from typing import TYPE_CHECKING, Self, TextIO

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE = 0.5
"""Seconds of work before anybody needs a bar."""
_PAUSE = 0.1
_WIDTH = 40


class Progress:
    """A bar on a terminal, gone when the work is done; elsewhere, and for short work, nothing.

    Args:
        stream: Where it is drawn.
        total: How much work there is, in any unit.
        clock: Tells seconds.
    """

    def __init__(self, stream: TextIO, total: float, *, clock: Callable[[], float] = monotonic) -> None:
        self._stream = stream
        self._total = total
        self._clock = clock
        self._done = 0.0
        self._next = clock() + PATIENCE
        self._drawn = 0
        self._watched = total > 0 and stream.isatty() and os.environ.get("TERM") != "dumb"

    def advance(self, amount: float) -> None:
        """Say that more of the work is done."""
        self._done += amount
        if self._watched and self._clock() >= self._next:
            self._next = self._clock() + _PAUSE
            share = min(self._done / self._total, 1)
            self._draw(f"[{'#' * int(share * _WIDTH):<{_WIDTH}}] {share:4.0%}")

    def close(self) -> None:
        """Take the bar away."""
        if self._drawn:
            self._draw("")

    def _draw(self, line: str) -> None:
        try:
            self._stream.write("\r" + line.ljust(self._drawn) + ("\r" if not line else ""))
            self._stream.flush()
        except OSError:  # nobody is watching any more
            self._watched = False
        self._drawn = len(line)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
