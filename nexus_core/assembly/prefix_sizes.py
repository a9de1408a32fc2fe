"""Tokens, bytes and placements of system prompts and tools, counted once per counter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nexus_core.assembly.placements import place_static
from nexus_core.dialects.requests import count_message_bytes, count_tool_bytes
from nexus_core.tokens.messages import count_tools
from nexus_core.types.messages import Message

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nexus_core.assembly.epoch import Epoch
    from nexus_core.assembly.tools import Offered
    from nexus_core.tokens.counters import CachingCounter
    from nexus_core.types.prompt import Placement, Section

MAX_CACHED_PREFIXES = 64
"""Prefixes of which sizes are cached; then the cache is cleared."""


class PrefixSizer:
    """Sizes of system prompts and tools by one counter, for all sessions.

    Args:
        counter: The token counter.
    """

    def __init__(self, counter: CachingCounter) -> None:
        self.counter = counter
        self._tokens: dict[str, dict[str, int]] = {}
        self._bytes: dict[str, dict[str, int]] = {}
        self._placements: dict[str, tuple[Sequence[Offered], tuple[Placement, ...]]] = {}

    def count_tokens(self, epoch: Epoch) -> dict[str, int]:
        """Return the tokens of system prompt and tools."""
        known = self._tokens.get(epoch.digest)
        if known is None:
            _make_room(self._tokens)
            system = self.counter.count_messages([Message("system", epoch.system)]) if epoch.system else 0
            self._tokens[epoch.digest] = known = {"system": system, "tools": count_tools(self.counter, epoch.tools)}
        return known

    def count_bytes(self, epoch: Epoch) -> dict[str, int]:
        """Return the bytes of system prompt and tools in a request body."""
        known = self._bytes.get(epoch.digest)
        if known is None:
            _make_room(self._bytes)
            system = count_message_bytes(Message("system", epoch.system)) if epoch.system else 0
            self._bytes[epoch.digest] = known = {"system": system, "tools": count_tool_bytes(epoch.tools)}
        return known

    def place(self, digest: str, sections: Iterable[Section], offered: Sequence[Offered]) -> tuple[Placement, ...]:
        """Return source and tokens of everything in the static zone."""
        known = self._placements.get(digest)
        if known is None or known[0] is not offered:
            _make_room(self._placements)
            self._placements[digest] = known = offered, place_static(sections, offered, self.counter)
        return known[1]


def _make_room(known: dict[str, Any]) -> None:
    if len(known) >= MAX_CACHED_PREFIXES:
        known.clear()
