"""Which of the user's messages somebody typed: the others are Codex's own, in the user's name."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nexus_core.dialects.transcripts.transcript import Entry

_NEAR = 8
"""How many messages or events apart the two may be."""


class Prompts:
    """Matches messages with the events that show what was typed; either may come first.

    Args:
        entries: The messages so far; those that nobody typed are marked in it.
        are_shown: Whether the file has such events; where it has none, all of the user's messages count as typed.
    """

    def __init__(self, entries: list[Entry], *, are_shown: bool) -> None:
        self._entries = entries
        self._are_shown = are_shown
        self._typed: list[int] = []
        self._unmatched: deque[int] = deque(maxlen=_NEAR)
        self._shown: deque[str] = deque(maxlen=_NEAR)

    def sent(self) -> None:
        """The newest message is the user's."""
        place = len(self._entries) - 1
        content = self._entries[place].message.content
        shown = next((text for text in self._shown if text in content), None)
        if shown is not None:
            self._shown.remove(shown)
        if shown is not None or not self._are_shown:
            self._typed.append(place)
        else:
            self._entries[place] = self._entries[place]._replace(kind="injected")
            self._unmatched.append(place)

    def shown(self, text: str) -> None:
        """Somebody typed this."""
        for place in reversed(self._unmatched):
            if text.strip() in self._entries[place].message.content:
                self._entries[place] = self._entries[place]._replace(kind="said")
                insort(self._typed, place)
                self._unmatched.clear()
                return
        self._shown.append(text.strip())

    def expect_event(self) -> None:
        """Take the newest message for typed: the file ends with it, so its event has not been written yet."""
        place = len(self._entries) - 1
        if self._unmatched and self._unmatched[-1] == place:
            self._entries[place] = self._entries[place]._replace(kind="said")

    def last(self, turns: int, first: int) -> list[int]:
        """Where the last turns begin, as many as there are since the message at `first`."""
        oldest = max(bisect_left(self._typed, first), len(self._typed) - turns)
        return self._typed[oldest:]

    def cut(self, place: int) -> None:
        """The messages from there on are gone; what was not matched by now never will be."""
        del self._typed[bisect_left(self._typed, place) :]
        self._unmatched.clear()
        self._shown.clear()
