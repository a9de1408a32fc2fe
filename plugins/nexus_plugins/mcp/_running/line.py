"""What is known of the way to a server while it is open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_plugins.mcp._errors import ServerError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from nexus_plugins.mcp._running.launch import Launch
    from nexus_plugins.mcp._telling.records import Unusable

LARGEST_MESSAGE = 16 * 1024 * 1024
"""Bytes of one message, whichever way it comes."""
LAST_WORDS = 4_096
"""Bytes that are kept of what a server complained about."""
LONGEST_REASON = 300
"""Characters that are told of what the SDK or the server say about a failure."""


async def _nothing() -> None:
    pass


class Line:
    """The way to one server: why it failed, what the server complained about, and how to cut it.

    Attributes:
        launch: How the server is reached.
        is_lost: Whether the other end no longer knows us.
        unusable: The tools that were taken out of the list that it gave last.
        cut: Ends what runs at the other end at once, whatever else is still going on.
    """

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self.cut: Callable[[], Awaitable[None]] = _nothing
        self.is_lost = False
        self.unusable: list[Unusable] = []
        self._reason = ""
        self._hint: str | None = None
        self._is_all = True
        self._tail = b""

    def note(self, reason: str, hint: str | None = None, *, is_all: bool = True) -> None:
        """Remember why the server will not answer; "" when it does after all.

        Args:
            reason: What happened.
            hint: What to do about it.
            is_all: Whether nothing that the server itself says makes it any clearer.
        """
        self._reason, self._hint, self._is_all = reason, hint, is_all

    def complain(self, data: bytes) -> None:
        """Keep the end of what the server printed to standard error."""
        self._tail = (self._tail + data)[-LAST_WORDS:]

    def fault(self, what: str) -> ServerError:
        """Why the server failed, in the words of whoever knows best, and without its secrets."""
        told = self.launch.mask(what)
        told = told if len(told) <= LONGEST_REASON else f"{told[:LONGEST_REASON]}…"
        if self._reason:
            reason = self._reason if self._is_all else f"{self._reason}: {told.removeprefix('failed: ')}"
            return ServerError(self.launch.name, reason, hint=self._hint)
        return self.overdue(told)

    def overdue(self, what: str) -> ServerError:
        """What it did not do in time, with what it complained about meanwhile."""
        words = self._complaints
        return ServerError(self.launch.name, what, hint=f"it says: {words}" if words else None)

    @property
    def _complaints(self) -> str:
        # All of it without secrets, before it is cut into lines: one of them may have several.
        lines = map(str.strip, self.launch.mask(self._tail.decode("utf-8", "replace")).splitlines())
        return "\n  ".join([line for line in lines if line][-3:])
