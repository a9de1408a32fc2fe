"""What was read from a caller's object and counted before, so that a list that grows is not read anew at every step."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

from nexus_core.dialects.plain import plain

if TYPE_CHECKING:
    from nexus_core.values.api import Dialect
    from nexus_core.values.counting import TokenCounter
    from nexus_core.values.message import Message

LIMIT = 20_000
"""So many messages are remembered for one counter; then all are forgotten, which costs one slow call."""


class Known(NamedTuple):
    """A message that was read before.

    Attributes:
        copy: What it was read from, as that was then: the caller may have changed it since.
        message: What was read.
        tokens: What it takes.
        sound: The APIs for which nothing is wrong with it.
    """

    copy: object
    message: Message
    tokens: int
    sound: set[str]


class Memory:
    """What one counter made of the messages of one dialect."""

    def __init__(self) -> None:
        self._known: dict[int, Known] = {}

    def find(self, item: object) -> Known | None:
        """What is known of an object; None when it was never seen, or has changed."""
        known = self._known.get(id(item))
        # An id may come back for another object; only what is equal will do.
        return known if known is not None and known.copy == item else None

    def keep(self, item: object, message: Message, tokens: int) -> set[str]:
        """Remember what was read from a dict; returns the set of APIs it is sound for, to be added to.

        Objects of an SDK are slow to compare, and a Message needs no reading.
        """
        known = Known(plain(item) if type(item) is dict else None, message, tokens, set())
        if known.copy is None:
            return known.sound
        if len(self._known) >= LIMIT:
            self._known.clear()
        self._known[id(item)] = known
        return known.sound


_MEMORIES: WeakKeyDictionary[TokenCounter, dict[str, Memory]] = WeakKeyDictionary()


def memory_of(counter: TokenCounter, speaking: Dialect) -> Memory:
    """The memory of a counter for a dialect; it lives as long as the counter."""
    try:
        return _MEMORIES.setdefault(counter, {}).setdefault(speaking.name, Memory())
    except TypeError:  # a counter that cannot be referred to weakly, or not be hashed
        return Memory()
