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
from nexus_core.history.soundness import is_plainly_sound

if TYPE_CHECKING:
    from nexus_core.history.memory import Known
    from nexus_core.values.api import ApiRules, Dialect
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
        self._copies: dict[int, object] = {}  # of what was read, and not counted yet
        self._given: dict[int, Message] = {}
        self._known: dict[int, Known] = {}  # what was counted, now or before
        self._sent: dict[int, Message] = {}  # what is not sent as it was given
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
            message = self._given[place] = self._read(place)
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
            is_given = self._is_given(place)
            tokens = self._weighed(place).tokens if is_given else self.size(self.message(place))
            self._tokens[place] = tokens
        return tokens

    def bytes(self, place: int) -> int:
        """How many bytes it has in a request, as it will be sent."""
        size = self._sizes.get(place)
        if size is None:
            is_given = self._is_given(place) and place in self._known
            size = self._known[place].size if is_given else measure_message(self.message(place))
            self._sizes[place] = size
        return size

    def whole(self, place: int) -> int:
        """What a message takes as it was given."""
        return self._weighed(place).tokens

    def sound(self, places: list[int], rules: ApiRules) -> list[Known] | None:
        """What is known of each, if each is by itself what an API wants and will be sent as it was given."""
        if self._limit is not None or self._sent:
            return None
        api, sound = rules.name, []
        for place in places:
            known = self._known.get(place)
            if known is None:
                return None
            if api not in known.sound:
                if not is_plainly_sound(known.message, rules):
                    return None
                known.sound.add(api)
            sound.append(known)
        return sound

    def note_sound(self, place: int, api: str) -> None:
        """Remember that nothing is wrong with a message."""
        if place in self._known:
            self._known[place].sound.add(api)

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

    def _read(self, place: int) -> Message:
        item = self._items[place]
        known = self._memory.find(item)
        if known is not None:
            self._known[place] = known
            return known.message
        with at(f"messages[{place}]"):
            # A copy, because another thread may change what the caller gave while it is counted.
            copy = self._copies[place] = plain(item) if is_remembered(item) else item
            return self._speaking.read(copy)

    def _is_given(self, place: int) -> bool:
        """Whether it is sent as it was given."""
        return (self._limit is None and not self._sent) or self.message(place) is self.given(place)

    def _weighed(self, place: int) -> Known:
        """What a message takes as it was given, counted if nobody did before."""
        message = self.given(place)
        known = self._known.get(place)
        if known is None:
            weight = self.size(message), measure_message(message)
            known = self._memory.keep(self._items[place], self._copies.pop(place), message, weight)
            self._known[place] = known
        return known
