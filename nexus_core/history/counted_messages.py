"""Cache of messages that were read from a caller's objects and counted before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from weakref import WeakKeyDictionary

from nexus_core.dialects.fields import ErrorPath, to_json_types
from nexus_core.dialects.requests import count_message_bytes
from nexus_core.errors import UsageError
from nexus_core.history.repair.validity import looks_valid_alone
from nexus_core.history.shorten import count_media, list_long_texts, replace_media, shorten_results, shorten_texts

if TYPE_CHECKING:
    from nexus_core.types.api import ApiRules, Dialect
    from nexus_core.types.budget import TokenCounter
    from nexus_core.types.messages import Message

MAX_CACHED_MESSAGES = 20_000
"""Maximum cached messages of one counter. Then the cache is cleared, which costs one slow call."""
MAX_CACHED_CHARACTERS = 8_000_000
"""Maximum characters of the cached messages, so that images of old conversations do not stay in memory forever."""
MIN_SHORTENED_TOKENS = 64
"""A text is not shortened below this, because too little of it would be left."""
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
        self._memory = find_message_cache(counter, speaking)
        self._limit: int | None = None  # tokens of a tool result before the index `_limit_end`
        self._limit_end = 0
        self.changed: set[int] = set()  # messages that are not sent as they were given, and added ones
        self._copies: dict[int, object] = {}  # of elements that were read, but not counted yet
        self._given: dict[int, Message] = {}
        self._known: dict[int, CachedMessage] = {}  # messages that were counted, now or in an earlier call
        self._sent: dict[int, Message] = {}  # messages as they are sent, where a limit applies or they were changed
        self._tokens: dict[int, int] = {}
        self._sizes: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._items)

    def add(self, place: int, message: Message) -> None:
        """Add a message at an index outside the list."""
        size = count_message_bytes(message)
        self._given[place] = message
        self._known[place] = CachedMessage(message, message, self.size(message), size, sound=set(), counts=False)
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
            self._sizes.pop(place, None)
        return bool(stale)

    def shorten_together(self, places: range, tokens: int) -> bool:
        """Shorten the long texts of some messages so that they have at most so many tokens together.

        If that is not enough, placeholders replace their images and documents.

        Returns:
            False if they need not be shortened, or too little of them would be left; then nothing changes.
        """
        if sum(map(self.tokens, places)) <= tokens:
            return False
        before = {place: self.message(place) for place in places}
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
        texts = [text for place in places for text in list_long_texts(self.message(place))]
        sizes = sorted(map(self._counter.count, texts))
        limit = _find_common_limit(sizes, tokens - total + sum(sizes))
        if limit < MIN_SHORTENED_TOKENS:
            return False
        for place in places:
            self._change(place, shorten_texts(self.message(place), limit, self._counter.count))
        return sum(map(self.tokens, places)) <= tokens

    def hide_media(self, place: int) -> None:
        """Replace images and documents of a message by placeholders, from now on."""
        self._change(place, replace_media(self.message(place)))

    def restore(self, places: range) -> None:
        """Send some messages as they were given again."""
        for place in places:
            self._change(place, self.given(place))

    def _change(self, place: int, sent: Message) -> None:
        self._sent[place] = sent
        (self.changed.discard if sent is self.given(place) else self.changed.add)(place)
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
        sent = self._sent.get(place)
        if sent is None:
            sent = self.given(place)
            if self._limit is not None and 0 <= place < self._limit_end:
                self._change(place, shorten_results(sent, self._limit, self._counter.count))
                sent = self._sent[place]
        return sent

    def tokens(self, place: int) -> int:
        """Return the tokens of the message as it will be sent."""
        tokens = self._tokens.get(place)
        if tokens is None:
            known = self._known.get(place) or self._weighed(place)
            tokens = known.tokens
            is_long = self._limit is not None and tokens > self._limit  # otherwise no part of it can be too long
            if (is_long or place in self._sent) and (sent := self.message(place)) is not known.message:
                tokens = self.size(sent)
            self._tokens[place] = tokens
        return tokens

    def bytes(self, place: int) -> int:
        """Return the bytes of the message in a request body, as it will be sent."""
        size = self._sizes.get(place)
        if size is None:
            sent = self.message(place)
            is_given = place in self._known and sent is self._known[place].message
            size = self._known[place].size if is_given else count_message_bytes(sent)
            self._sizes[place] = size
        return size

    def whole(self, place: int) -> int:
        """Return the tokens of the message as it was given."""
        return self._weighed(place).tokens

    def sound(self, places: list[int], rules: ApiRules) -> list[CachedMessage] | None:
        """Return each message as it will be sent, or None unless all are known to be valid by themselves."""
        api, sound = rules.name, []
        for place in places:
            known = self._known.get(place)
            if known is None:
                return None
            if place in self.changed and place in self._sent:
                sent = self._sent[place]
                known = CachedMessage(sent, sent, self.tokens(place), self.bytes(place), sound=set(), counts=False)
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

    def _weighed(self, place: int) -> CachedMessage:
        """Return the cache entry of the message as it was given, counting it if necessary."""
        message = self.given(place)
        known = self._known.get(place)
        if known is None:
            weight = self.size(message), count_message_bytes(message)
            known = self._memory.keep(self._items[place], self._copies.pop(place), message, weight)
            self._known[place] = known
        return known
