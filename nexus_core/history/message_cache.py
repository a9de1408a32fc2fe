"""Cache of messages that were read from a caller's objects and counted before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from nexus_core.types.api import Dialect
    from nexus_core.types.budget import TokenCounter
    from nexus_core.types.messages import Message

MAX_CACHED_MESSAGES = 20_000
"""Maximum cached messages of one counter. Then the cache is cleared, which costs one slow call."""
MAX_CACHED_CHARACTERS = 8_000_000
"""Maximum characters of the cached messages, so that images of old conversations do not stay in memory forever."""
_MESSAGE_DIVISOR = 8
"""A message above this fraction of `MAX_CACHED_CHARACTERS` is not cached: it would evict all others."""


class CachedMessage(NamedTuple):
    """A message that was read before.

    Attributes:
        copy: A copy of the object that it was read from, because the caller may change the object.
        message: The message.
        tokens: Its tokens.
        size: Its bytes in a request body.
        sound: Names of the APIs for which it is known to be valid; a mutable set.
        counts: True if it contains a number or a boolean: equal values may be different JSON, such as 1, 1.0 and True.
    """

    copy: object
    message: Message
    tokens: int
    size: int
    sound: set[str]
    counts: bool


class MessageCache:
    """Messages of one dialect, counted by one counter."""

    def __init__(self) -> None:
        self._known: dict[int, CachedMessage] = {}
        self._size = 0

    def find(self, item: object) -> CachedMessage | None:
        """Return the entry of an object; None if there is none, or the object has changed."""
        known = self._known.get(id(item))
        # Python may reuse an id for another object, so the content must be equal too.
        if known is None or known.copy != item:
            return None
        return known if not known.counts or _is_same_json(known.copy, item) else None

    def keep(self, item: object, copy: object, message: Message, weight: tuple[int, int]) -> CachedMessage:
        """Return an entry for a message, and cache it if that is worthwhile.

        Args:
            item: The object that was given.
            copy: A copy of it.
            message: The message that was read from the copy.
            weight: Its tokens and its bytes.
        """
        if not is_cacheable(item):
            return CachedMessage(copy, message, *weight, sound=set(), counts=True)
        characters, counts = _measure_json(copy)
        known = CachedMessage(copy, message, *weight, sound=set(), counts=counts)
        if characters > MAX_CACHED_CHARACTERS // _MESSAGE_DIVISOR:
            return known
        if len(self._known) >= MAX_CACHED_MESSAGES or self._size + characters > MAX_CACHED_CHARACTERS:
            self._known.clear()
            self._size = 0
        self._known[id(item)] = known
        self._size += characters
        return known


def is_cacheable(item: object) -> bool:
    """Return True for dicts. SDK objects are slow to compare, and a `Message` need not be read."""
    return type(item) is dict


def _measure_json(value: Any) -> tuple[int, bool]:  # noqa: ANN401 - JSON has many types
    """Return the characters in a value, and True if it contains a number or a boolean."""
    characters, counts, inner = 0, False, [value]
    for each in inner:  # grows during the loop
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


def _is_same_json(copy: Any, item: Any) -> bool:  # noqa: ANN401 - JSON has many types
    """Return True if equal values are the same JSON too: 1, 1.0 and True are equal, and so are 0.0 and -0.0."""
    if isinstance(copy, dict):
        return all(_is_same_json(value, item[key]) for key, value in copy.items())
    if isinstance(copy, list):
        return all(map(_is_same_json, copy, item))
    return isinstance(copy, str) or (type(copy) is type(item) and (bool(copy) or str(copy) == str(item)))


_CACHES: WeakKeyDictionary[TokenCounter, dict[str, MessageCache]] = WeakKeyDictionary()


def find_message_cache(counter: TokenCounter, speaking: Dialect) -> MessageCache:
    """Return the cache of a counter for a dialect, which lives as long as the counter."""
    try:
        return _CACHES.setdefault(counter, {}).setdefault(speaking.name, MessageCache())
    except TypeError:  # the counter cannot be weakly referenced or hashed
        return MessageCache()
