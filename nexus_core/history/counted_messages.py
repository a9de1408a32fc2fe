"""Cache of messages that were read from a caller's objects and counted before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakKeyDictionary

from nexus_core.dialects.fields import ErrorPath, to_json_types
from nexus_core.dialects.requests import count_message_bytes
from nexus_core.errors import UsageError
from nexus_core.history.groups import MessageLinks
from nexus_core.history.repair.validity import has_plain_parts, looks_valid_alone
from nexus_core.history.shorten import count_media, list_long_texts, replace_media, shorten_results, shorten_texts

if TYPE_CHECKING:
    from nexus_core.types.api import Dialect
    from nexus_core.types.budget import TokenCounter
    from nexus_core.types.messages import Message

MAX_CACHED_MESSAGES = 20_000
"""Maximum cached messages of one counter. Then the cache is cleared, which costs one slow call."""
MAX_CACHED_CHARACTERS = 8_000_000
"""Maximum characters of the cached messages, so that images of old conversations do not stay in memory forever."""
MIN_SHORTENED_TOKENS = 64
"""A text is not shortened below this, because too little of it would be left."""
UNCOUNTED = -1
"""The tokens and bytes of a message before they are counted."""
_MESSAGE_DIVISOR = 8
"""A message above this fraction of `MAX_CACHED_CHARACTERS` is not cached: it would evict all others."""


class CountedMessage(MessageLinks):
    """A message of a caller's list, with what is found out about it only once.

    Attributes:
        copy: A copy of the object that it was read from, because the caller may change the object.
        characters: The characters of the copy.
        has_numbers: True if the copy contains a number or a boolean: equal values may be different JSON, such as 1, 1.0
            and True.
        tokens: Its tokens, and `UNCOUNTED` before they are counted.
        size: Its bytes in a request body, and `UNCOUNTED` before they are counted.
        is_sound: True if it is known to be valid for the API of its dialect, whatever roles and ids are beside it.
    """

    __slots__ = ("characters", "copy", "has_numbers", "is_sound", "size", "tokens")

    def __init__(self, message: Message, copy: object = None) -> None:
        super().__init__(message)
        self.copy = copy
        self.characters = 0
        self.has_numbers = True
        self.tokens = self.size = UNCOUNTED
        self.is_sound = False


class MessageCache:
    """Messages of one dialect, counted by one counter."""

    def __init__(self) -> None:
        self._known: dict[int, CountedMessage] = {}
        self._size = 0

    def find(self, item: object) -> CountedMessage | None:
        """Return the message that was read from an object; None if there is none, or the object has changed."""
        known = self._known.get(id(item))
        # Python may reuse an id for another object, so the content must be equal too.
        if known is None or known.copy != item:
            return None
        return known if not known.has_numbers or _is_same_json(known.copy, item) else None

    def keep(self, item: object, counted: CountedMessage) -> None:
        """Cache the message that was read from an object, if that is worthwhile."""
        if not is_cacheable(item):
            return
        replaced = self._known.pop(id(item), None)
        if replaced is not None:
            self._size -= replaced.characters
        counted.characters, counted.has_numbers = _measure_json(counted.copy)
        if counted.characters > MAX_CACHED_CHARACTERS // _MESSAGE_DIVISOR:
            return
        if len(self._known) >= MAX_CACHED_MESSAGES or self._size + counted.characters > MAX_CACHED_CHARACTERS:
            self._known.clear()
            self._size = 0
        self._known[id(item)] = counted
        self._size += counted.characters


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
    """Return True if equal values are the same JSON: 1, 1.0 and True are equal, 0.0 and -0.0, and any order of keys."""
    if copy is item:  # most texts and numbers, which are not copied
        return True
    if isinstance(copy, dict):
        is_ordered = isinstance(item, dict) and list(copy) == list(item)
        return is_ordered and all(map(_is_same_json, copy.values(), item.values()))
    if isinstance(copy, list):
        return isinstance(item, list) and all(map(_is_same_json, copy, item))
    return isinstance(copy, str) or (type(copy) is type(item) and (bool(copy) or str(copy) == str(item)))


_CACHES: WeakKeyDictionary[TokenCounter, dict[str, MessageCache]] = WeakKeyDictionary()


def find_message_cache(counter: TokenCounter, speaking: Dialect) -> MessageCache:
    """Return the cache of a counter for a dialect, which lives as long as the counter."""
    try:
        return _CACHES.setdefault(counter, {}).setdefault(speaking.name, MessageCache())
    except TypeError:  # the counter cannot be weakly referenced or hashed
        return MessageCache()


def _find_common_limit(sizes: list[int], room: int) -> int:
    """Return the largest limit to which texts can be cut so that all of them fit into a room.

    Args:
        sizes: The tokens of the texts, ascending.
        room: The tokens that they may have together.
    """
    for index, size in enumerate(sizes):
        share = room // (len(sizes) - index)
        if size > share:
            return share
        room -= size
    return room


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
        self._cache = find_message_cache(counter, speaking)
        self._limit: int | None = None  # tokens of a tool result before the index `_limit_end`
        self._limit_end = 0
        self.changed: set[int] = set()  # messages that are not sent as they were given, and added ones
        self._given: dict[int, CountedMessage] = {}
        self._sent: dict[int, CountedMessage] = {}  # messages as they are sent, where a limit applies or they changed
        self._ordered: set[int] = set()  # messages whose keys have the order of the caller's object
        self._tokens: dict[int, int] = {}  # of the messages that were counted in this call

    def __len__(self) -> int:
        return len(self._items)

    def add(self, place: int, message: Message) -> None:
        """Add a message at an index outside the list."""
        self._given[place] = CountedMessage(message)
        self.changed.add(place)

    def shorten_results(self, limit: int, *, end: int | None = None) -> bool:
        """Shorten tool results above a number of tokens, from now on; only those before the index `end`, if given.

        Returns:
            True if a message that was counted before may have other tokens now.
        """
        self._limit, self._limit_end = limit, len(self) if end is None else end
        stale = [*self._sent, *(place for place, tokens in self._tokens.items() if tokens > limit)]
        for place in stale:
            self._sent.pop(place, None)
            self.changed.discard(place)
            self._tokens.pop(place, None)
        return bool(stale)

    def shorten_together(self, places: range, tokens: int) -> bool:
        """Shorten the long texts of some messages so that they have at most so many tokens together.

        If that is not enough, placeholders replace their images and documents.

        Returns:
            False if they need not be shortened, or too little of them would be left; then nothing changes.
        """
        if sum(map(self.tokens, places)) <= tokens:
            return False
        before = {place: self.sent(place).message for place in places}
        if self._shorten_texts(places, tokens):
            return True
        if any(map(count_media, before.values())):
            for place in places:
                self._change(place, replace_media(before[place]))
            if sum(map(self.tokens, places)) <= tokens or self._shorten_texts(places, tokens):
                return True
        for place in places:
            self._change(place, before[place])
        return False

    def _shorten_texts(self, places: range, tokens: int) -> bool:
        """Shorten the long texts of some messages; True if the messages have at most so many tokens then."""
        total = sum(map(self.tokens, places))
        texts = [text for place in places for text in list_long_texts(self.sent(place).message)]
        sizes = sorted(map(self._counter.count, texts))
        limit = _find_common_limit(sizes, tokens - total + sum(sizes))
        if limit < MIN_SHORTENED_TOKENS:
            return False
        for place in places:
            self._change(place, shorten_texts(self.sent(place).message, limit, self._counter.count))
        return sum(map(self.tokens, places)) <= tokens

    def hide_media(self, place: int) -> None:
        """Replace images and documents of a message by placeholders, from now on."""
        self._change(place, replace_media(self.sent(place).message))

    def restore(self, places: range) -> None:
        """Send some messages as they were given again."""
        for place in places:
            self._change(place, self.get_given(place).message)

    def _change(self, place: int, message: Message) -> None:
        given = self.get_given(place)
        self._sent[place] = given if message is given.message else CountedMessage(message)
        (self.changed.discard if message is given.message else self.changed.add)(place)
        self._tokens.pop(place, None)

    def get_given(self, place: int) -> CountedMessage:
        """Return the message as it was given. It may not be counted yet."""
        given = self._given.get(place)
        if given is None:
            item = self._items[place]
            given = self._given[place] = self._cache.find(item) or self._read(place, item)
        return given

    def sent(self, place: int) -> CountedMessage:
        """Return the message as it will be sent. It may not be counted yet."""
        sent = self._sent.get(place)
        if sent is None:
            sent = self._read_in_order(place)
            if self._limit is not None and 0 <= place < self._limit_end:
                self._change(place, shorten_results(sent.message, self._limit, self._counter.count))
                sent = self._sent[place]
        return sent

    def _read_in_order(self, place: int) -> CountedMessage:
        """Return the message as it was given, read again if its keys have another order now.

        Only a message that may be repaired or shortened is worth that: for any other, the caller's object is returned.
        """
        given = self.get_given(place)
        if given.copy is not None and place not in self._ordered:
            self._ordered.add(place)
            if not _is_same_json(given.copy, self._items[place]):
                given = self._given[place] = self._read(place, self._items[place])
                self._tokens.pop(place, None)
        return given

    def tokens(self, place: int) -> int:
        """Return the tokens of the message as it will be sent."""
        tokens = self._tokens.get(place)
        if tokens is None:
            known = self._sent.get(place) or self._given.get(place) or self.get_given(place)
            tokens = known.tokens if known.tokens != UNCOUNTED else self._count(place, known)
            if self._limit is not None and tokens > self._limit:  # otherwise no part of it can be too long
                tokens = self._count(place, self.sent(place))
            self._tokens[place] = tokens
        return tokens

    def bytes(self, place: int) -> int:
        """Return the bytes of the message in a request body, as it will be sent."""
        sent = self.sent(place)
        if sent.size == UNCOUNTED:
            sent.size = count_message_bytes(sent.message)
        return sent.size

    def whole(self, place: int) -> int:
        """Return the tokens of the message as it was given."""
        return self._count(place, self.get_given(place))

    def sound(self, places: list[int]) -> list[CountedMessage] | None:
        """Return each message as it will be sent, or None unless all are known to be valid by themselves.

        Args:
            places: Indices of messages that were counted as they were given.
        """
        rules, sound = self._speaking.rules, []
        for place in places:
            known = self._sent.get(place) or self._given[place]
            if known.tokens == UNCOUNTED:  # it was changed after it was counted
                self.tokens(place)
            if not known.is_sound:
                if not looks_valid_alone(known.message, rules) or not has_plain_parts(known.message, rules):
                    return None
                known.is_sound = True
            sound.append(known)
        return sound

    def mark_sound(self, place: int) -> None:
        """Store in the cache that a message is valid by itself."""
        given = self.get_given(place)
        given.is_sound = has_plain_parts(given.message, self._speaking.rules)

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

    def _read(self, place: int, item: object) -> CountedMessage:
        with ErrorPath(f"messages[{place}]"):
            # A copy, because another thread may change the caller's object while it is counted.
            copy = to_json_types(item) if is_cacheable(item) else item
            return CountedMessage(self._speaking.read(copy), copy)

    def _count(self, place: int, message: CountedMessage) -> int:
        """Return the tokens of a message; count it first, and remember it, if that was not done before."""
        if message.tokens == UNCOUNTED:
            message.tokens, message.size = self.size(message.message), count_message_bytes(message.message)
            if message is self._given[place] and place >= 0:
                self._cache.keep(self._items[place], message)
        return message.tokens
