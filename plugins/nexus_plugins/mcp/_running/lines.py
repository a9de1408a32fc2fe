"""Bytes as lines, none of them longer than a message may be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_plugins.mcp._running.line import LARGEST_MESSAGE

if TYPE_CHECKING:
    from collections.abc import Iterator


class Lines:
    """Makes lines of pieces, in time and space that grow with the pieces."""

    def __init__(self, limit: int = LARGEST_MESSAGE) -> None:
        self._limit = limit
        self._begun: list[bytes] = []
        self._size = 0

    @property
    def is_too_long(self) -> bool:
        """Whether the line that has begun is longer than any message may be; nothing more is kept of it."""
        return self._size > self._limit

    def add(self, piece: bytes) -> Iterator[bytes | None]:
        """The lines that end in a piece; None in the place of one that is too long."""
        first, *rest = piece.split(b"\n")
        self._begin(first)
        for each in rest:
            yield self.end()
            self._begin(each)

    def end(self) -> bytes | None:
        """The line that has begun, and a new one begins."""
        line = None if self.is_too_long else b"".join(self._begun)
        self._begun, self._size = [], 0
        return line

    def _begin(self, part: bytes) -> None:
        self._size += len(part)
        if not self.is_too_long:
            self._begun.append(part)
        else:
            self._begun.clear()
