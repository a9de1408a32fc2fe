"""Cache of messages that were read from a caller's objects and counted before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from weakref import WeakKeyDictionary

from nexus_core.dialects.fields import ErrorPath, to_json_types
from nexus_core.dialects.requests import count_message_bytes
from nexus_core.errors import UsageError
from nexus_core.history.media_placeholders import replace_media
from nexus_core.history.repair.validity import looks_valid_alone
from nexus_core.history.shorten import shorten_results

if TYPE_CHECKING:
    from nexus_core.types.api import ApiRules, Dialect
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


class IndexedItems(Protocol):
    """The caller's list."""

    def __len__(self) -> int:
        """Return the number of elements."""

    def __getitem__(self, place: int, /) -> object:
        """Return the element at an index."""


class CountedMessages:
    """The messages of a list by index, read and counted when they are needed.

    Args:
        items: The caller's list.
        speaking: The dialect of the list.
        counter: The token counter.
    """

    def __init__(self, items: IndexedItems, speaking: Dialect, counter: TokenCounter) -> None:
        self._items = items
        self._speaking = speaking
        self._counter = counter
        self._memory = find_message_cache(counter, speaking)
        self._limit: int | None = None
        self._copies: dict[int, object] = {}  # of elements that were read, but not counted yet
        self._given: dict[int, Message] = {}
        self._known: dict[int, CachedMessage] = {}  # messages that were counted, now or in an earlier call
        self._sent: dict[int, Message] = {}  # messages that are not sent as they were given
        self._tokens: dict[int, int] = {}
        self._sizes: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._items)

    def shorten_results(self, limit: int) -> None:
        """Shorten tool results above a number of tokens, from now on."""
        self._limit = limit
        self._sent.clear()
        self._tokens.clear()
        self._sizes.clear()

    def hide_media(self, place: int) -> None:
        """Replace images and documents of a message by placeholders, from now on."""
        self._sent[place] = replace_media(self.message(place))
        self._tokens.pop(place, None)
        self._sizes.pop(place, None)

    def given(self, place: int) -> Message:
        """Return the message as it was given."""
        message = self._given.get(place)
        if message is None:
            item = self._items[place]
            known = self._memory.find(item)
            if known is None:
                message = self._read(place, item)
            else:
                self._known[place] = known
                message = known.message
            self._given[place] = message
        return message

    def message(self, place: int) -> Message:
        """Return the message as it will be sent."""
        known = self._sent.get(place)
        if known is not None:
            return known
        if self._limit is None:
            return self.given(place)
        self._sent[place] = shorten_results(self.given(place), self._limit, self._counter.count)
        return self._sent[place]

    def tokens(self, place: int) -> int:
        """Return the tokens of the message as it will be sent."""
        tokens = self._tokens.get(place)
        if tokens is None:
            known = self._known.get(place)
            if known is not None and self._limit is None and not self._sent:  # fast path: it was counted before
                tokens = known.tokens
            elif self._is_given(place):
                tokens = self._weighed(place).tokens
            else:
                tokens = self.size(self.message(place))
            self._tokens[place] = tokens
        return tokens

    def bytes(self, place: int) -> int:
        """Return the bytes of the message in a request body, as it will be sent."""
        size = self._sizes.get(place)
        if size is None:
            is_given = self._is_given(place) and place in self._known
            size = self._known[place].size if is_given else count_message_bytes(self.message(place))
            self._sizes[place] = size
        return size

    def whole(self, place: int) -> int:
        """Return the tokens of the message as it was given."""
        return self._weighed(place).tokens

    def sound(self, places: list[int], rules: ApiRules) -> list[CachedMessage] | None:
        """Return the cache entry of each message, or None unless all are valid by themselves and sent as given."""
        if self._limit is not None or self._sent:
            return None
        api, sound = rules.name, []
        for place in places:
            known = self._known.get(place)
            if known is None:
                return None
            if api not in known.sound:
                if not looks_valid_alone(known.message, rules):
                    return None
                known.sound.add(api)
            sound.append(known)
        return sound

    def note_sound(self, place: int, api: str) -> None:
        """Store in the cache that a message is valid for an API."""
        if place in self._known:
            self._known[place].sound.add(api)

    def known(self, places: range) -> int | None:
        """Return the tokens of a range, or None if not all of its messages were counted."""
        # Compare lengths first, because a gap may be a hundred thousand messages long.
        if len(places) > len(self._tokens) or not all(map(self._tokens.__contains__, places)):
            return None
        return sum(map(self._tokens.__getitem__, places))

    def size(self, message: Message) -> int:
        """Return the tokens of any message.

        Raises:
            UsageError: The counter returned a negative number or NaN.
        """
        tokens = self._counter.count_messages([message])
        if tokens >= 0:  # False for NaN
            return tokens
        raise UsageError(
            f"the counter returned {tokens!r} tokens for a message",
            hint="count_messages(messages) must return a whole number, 0 or more",
        )

    def _read(self, place: int, item: object) -> Message:
        with ErrorPath(f"messages[{place}]"):
            # A copy, because another thread may change the caller's object while it is counted.
            copy = self._copies[place] = to_json_types(item) if is_cacheable(item) else item
            return self._speaking.read(copy)

    def _is_given(self, place: int) -> bool:
        """Return True if the message is sent as it was given."""
        return (self._limit is None and not self._sent) or self.message(place) is self.given(place)

    def _weighed(self, place: int) -> CachedMessage:
        """Return the cache entry of the message as it was given, counting it if necessary."""
        message = self.given(place)
        known = self._known.get(place)
        if known is None:
            weight = self.size(message), count_message_bytes(message)
            known = self._memory.keep(self._items[place], self._copies.pop(place), message, weight)
            self._known[place] = known
        return known
