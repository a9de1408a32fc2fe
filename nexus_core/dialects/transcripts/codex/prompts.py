"""Which of the user's messages somebody typed: the others are Codex's own, in the user's name."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nexus_core.dialects.transcripts.transcript import Entry


class Prompts:
    """Matches messages with the events that show what was typed; either may come first.

    Args:
        entries: The messages so far; those that nobody typed are marked in it.
    """

    def __init__(self, entries: list[Entry]) -> None:
        self._entries = entries
        self._unmatched: list[int] = []
        self._shown: list[str] = []

    def sent(self) -> None:
        """The newest message is the user's."""
        text = self._entries[-1].message.content
        if self._shown and self._shown[0] in text:
            del self._shown[0]
            return
        self._entries[-1] = self._entries[-1]._replace(kind="injected")
        self._unmatched.append(len(self._entries) - 1)

    def shown(self, text: str) -> None:
        """Somebody typed this."""
        for place in reversed(self._unmatched):
            if text.strip() in self._entries[place].message.content:
                self._entries[place] = self._entries[place]._replace(kind="said")
                self._unmatched.clear()
                return
        self._shown.append(text.strip())

    def forget(self) -> None:
        """Messages were taken away; what was not matched by now never will be."""
        self._unmatched.clear()
        self._shown.clear()
