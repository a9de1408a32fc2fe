"""A caller's list, read and counted one message at a time, and no message twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from nexus_core.dialects.fields import at
from nexus_core.dialects.plain import plain
from nexus_core.dialects.sizes import measure_message
from nexus_core.errors import UsageError
from nexus_core.history.hiding import tell_media
from nexus_core.history.memory import is_remembered, memory_of
from nexus_core.history.shortening import shorten_results

if TYPE_CHECKING:
    from nexus_core.values.api import Dialect
    from nexus_core.values.counting import TokenCounter
    from nexus_core.values.message import Message


class Items(Protocol):
    """What the caller gave, by place."""

    def __len__(self) -> int:
        """How many there are."""

    def __getitem__(self, place: int, /) -> object:
        """One of them."""


class Window:
    """The messages of a list by their place.

    Args:
        items: What the caller gave.
        speaking: The dialect it is written in.
        counter: Who counts.
    """

    def __init__(self, items: Items, speaking: Dialect, counter: TokenCounter) -> None:
        self._items = items
        self._speaking = speaking
        self._counter = counter
        self._memory = memory_of(counter, speaking)
        self._limit: int | None = None
        self._copies: dict[int, object] = {}
        self._given: dict[int, Message] = {}
        self._counted: dict[int, int] = {}
        self._sound: dict[int, set[str]] = {}
        self._sent: dict[int, Message] = {}
        self._tokens: dict[int, int] = {}
        self._sizes: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._items)

    def shorten_results(self, limit: int) -> None:
        """From now on no result of a tool takes more than that."""
        self._limit = limit
        self._sent.clear()
        self._tokens.clear()
        self._sizes.clear()

    def hide_media(self, place: int) -> None:
        """From now on the pictures and documents of a message are told in words."""
        self._sent[place] = tell_media(self.message(place))
        self._tokens.pop(place, None)
        self._sizes.pop(place, None)

    def given(self, place: int) -> Message:
        """The message as it was given."""
        message = self._given.get(place)
        if message is None:
            item = self._items[place]
            known = self._memory.find(item)
            if known is None:
                with at(f"messages[{place}]"):
                    # A copy, because another thread may change what the caller gave while it is counted.
                    self._copies[place] = plain(item) if is_remembered(item) else item
                    message = self._speaking.read(self._copies[place])
            else:
                message = known.message
                self._counted[place] = known.tokens
                self._sizes[place] = known.size
                self._sound[place] = known.sound
            self._given[place] = message
        return message

    def message(self, place: int) -> Message:
        """The message as it will be sent."""
        known = self._sent.get(place)
        if known is not None:
            return known
        if self._limit is None:
            return self.given(place)
        self._sent[place] = shorten_results(self.given(place), self._limit, self._counter.count)
        return self._sent[place]

    def tokens(self, place: int) -> int:
        """What it takes as it will be sent."""
        tokens = self._tokens.get(place)
        if tokens is None:
            message = self.message(place)
            tokens = self.whole(place) if message is self.given(place) else self.size(message)
            self._tokens[place] = tokens
        return tokens

    def bytes(self, place: int) -> int:
        """How many bytes it has in a request, as it will be sent."""
        size = self._sizes.get(place)
        if size is None:
            size = self._sizes[place] = measure_message(self.message(place))
        return size

    def whole(self, place: int) -> int:
        """What a message takes as it was given."""
        if place not in self._counted:
            message = self.given(place)
            tokens = self._counted[place] = self.size(message)
            weight = tokens, measure_message(message)
            self._sound[place] = self._memory.keep(self._items[place], self._copies.pop(place), message, weight)
            if message is self.message(place):
                self._sizes[place] = weight[1]
        return self._counted[place]

    def are_sound(self, places: list[int], api: str) -> bool:
        """Whether each of them is known to be what an API wants, and will be sent as it was given."""
        return self._limit is None and not self._sent and all(api in self._sound.get(place, ()) for place in places)

    def note_sound(self, place: int, api: str) -> None:
        """Remember that nothing is wrong with a message."""
        if place in self._sound:
            self._sound[place].add(api)

    def known(self, places: range) -> int | None:
        """What they take together, if all of them were counted."""
        # A gap may be a hundred thousand messages long; whether any was not counted is told by how many were.
        if len(places) > len(self._tokens) or not all(map(self._tokens.__contains__, places)):
            return None
        return sum(map(self._tokens.__getitem__, places))

    def size(self, message: Message) -> int:
        """What any message takes."""
        tokens = self._counter.count_messages([message])
        if tokens >= 0:  # which NaN is not
            return tokens
        raise UsageError(
            f"the counter says that a message takes {tokens!r} tokens",
            hint="count_messages(messages) must return a whole number, 0 or more",
        )
