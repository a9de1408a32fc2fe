"""What was read from a caller's object and counted before, so that a list that grows is not read anew at every step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from nexus_core.values.api import Dialect
    from nexus_core.values.counting import TokenCounter
    from nexus_core.values.message import Message

LIMIT = 20_000
"""So many messages are remembered for one counter; then all are forgotten, which costs one slow call."""
SIZE_LIMIT = 8_000_000
"""So many characters of them, too: whoever forgets a conversation must not find its pictures in memory for ever."""
_SHARE = 8
"""A message above this fraction of it is not remembered: it would make all others forgotten."""


class Known(NamedTuple):
    """A message that was read before.

    Attributes:
        copy: What it was read from, as that was then: the caller may have changed it since.
        message: What was read.
        tokens: What it takes.
        size: How many bytes it has in a request.
        sound: The APIs for which nothing is wrong with it; grows.
        counts: Whether there is a number in it, which may equal what is written otherwise.
    """

    copy: object
    message: Message
    tokens: int
    size: int
    sound: set[str]
    counts: bool


class Memory:
    """What one counter made of the messages of one dialect."""

    def __init__(self) -> None:
        self._known: dict[int, Known] = {}
        self._size = 0

    def find(self, item: object) -> Known | None:
        """What is known of an object; None when it was never seen, or has changed."""
        known = self._known.get(id(item))
        # An id may come back for another object; only what is equal will do.
        if known is None or known.copy != item:
            return None
        return known if not known.counts or _is_written_alike(known.copy, item) else None

    def keep(self, item: object, copy: object, message: Message, weight: tuple[int, int]) -> Known:
        """Remember what was read from a copy of an object, if it is worth it; returns what is known of it now.

        Args:
            item: The object.
            copy: The copy.
            message: What was read from it.
            weight: Its tokens and its bytes.
        """
        if not is_remembered(item):
            return Known(copy, message, *weight, sound=set(), counts=True)
        characters, counts = _weigh(copy)
        known = Known(copy, message, *weight, sound=set(), counts=counts)
        if characters > SIZE_LIMIT // _SHARE:
            return known
        if len(self._known) >= LIMIT or self._size + characters > SIZE_LIMIT:
            self._known.clear()
            self._size = 0
        self._known[id(item)] = known
        self._size += characters
        return known


def is_remembered(item: object) -> bool:
    """Whether an object is worth it: those of an SDK are slow to compare, and a Message needs no reading."""
    return type(item) is dict


def _weigh(value: Any) -> tuple[int, bool]:  # noqa: ANN401 - JSON has many types
    """The characters in a value, and whether there is a number in it."""
    characters, counts, inner = 0, False, [value]
    for each in inner:  # which grows meanwhile
        if isinstance(each, str):
            characters += len(each)
        elif isinstance(each, dict):
            inner += each
            inner += each.values()
        elif isinstance(each, list):
            inner += each
        else:
            characters += 1
            counts = counts or each is not None
    return characters, counts


def _is_written_alike(copy: Any, item: Any) -> bool:  # noqa: ANN401 - as above
    """Whether what is equal is also the same in JSON: 1, 1.0 and True are equal, and so are 0.0 and -0.0."""
    if isinstance(copy, dict):
        return all(_is_written_alike(value, item[key]) for key, value in copy.items())
    if isinstance(copy, list):
        return all(map(_is_written_alike, copy, item))
    return isinstance(copy, str) or (type(copy) is type(item) and (bool(copy) or str(copy) == str(item)))


_MEMORIES: WeakKeyDictionary[TokenCounter, dict[str, Memory]] = WeakKeyDictionary()


def memory_of(counter: TokenCounter, speaking: Dialect) -> Memory:
    """The memory of a counter for a dialect; it lives as long as the counter."""
    try:
        return _MEMORIES.setdefault(counter, {}).setdefault(speaking.name, Memory())
    except TypeError:  # a counter that cannot be referred to weakly, or not be hashed
        return Memory()
