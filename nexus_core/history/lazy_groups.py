"""Message groups of a list that is read from its end, only as far as needed."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.history.groups import MessageGroup, group_messages, group_newest_first
from nexus_core.history.growing_history import GrowingHistory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from nexus_core.types.messages import Message


class IndexRange(NamedTuple):
    """Neighbouring indices in a list: from `first` up to, but not including, `end`."""

    first: int
    end: int


def join_ranges(spans: Iterable[IndexRange]) -> list[IndexRange]:
    """Return the ranges in ascending order, with overlapping and adjacent ones joined."""
    apart: list[IndexRange] = []
    for span in sorted(spans):
        if apart and span.first <= apart[-1].end:
            apart[-1] = IndexRange(apart[-1].first, max(span.end, apart[-1].end))
        else:
            apart.append(span)
    return apart


class LazyGroups:
    """Sizes of groups, counted lazily from the newest on.

    Args:
        read: Returns the message at an index; called once per index, except for the oldest group.
        first: Index of the first message of the conversation; earlier ones are ignored.
        end: Index after its last message.
        size: Returns the size of the message at an index.

    Attributes:
        size: The function passed as `size`.
    """

    def __init__(self, read: Callable[[int], Message], first: int, end: int, size: Callable[[int], int]) -> None:
        self._read = read
        self._first = first
        self._end = end
        self.size = size
        self._older: Iterator[MessageGroup] = group_newest_first(read, end, first)
        self._newest: list[MessageGroup] = []
        self._sums = [0]
        self._oldest: MessageGroup | None = None

    def __len__(self) -> int:
        while self._find_one_more():
            pass
        return len(self._newest)

    def __getitem__(self, index: int) -> int:
        if index == 0:
            return self._tokens(self._oldest_group())
        if index > 0:
            index -= len(self)
        while len(self._newest) < -index and self._find_one_more():
            pass
        if not 0 < -index <= len(self._newest):
            raise IndexError(index)
        return self._sums[-index] - self._sums[-index - 1]

    def newest(self, budget: int, *, at_least: int = 1) -> int:
        """Return how many of the newest groups fit into a budget together, never fewer than `at_least`."""
        sums = self._sums
        # One group more than necessary is counted, so that its size is known to the decision that leaves it out.
        while (sums[-1] <= budget or len(sums) <= at_least + 1) and self._find_one_more():
            pass
        fitting = bisect_right(self._sums, budget) - 1
        return min(max(fitting, at_least), len(self._newest))

    def group(self, index: int) -> MessageGroup | None:
        """Return the group at a negative index (-1 is the newest), or None if there is none."""
        while len(self._newest) < -index and self._find_one_more():
            pass
        return self._newest[-index - 1] if -index <= len(self._newest) else None

    def spans(self, slices: Iterable[slice]) -> list[IndexRange]:
        """Return the index ranges of the selected groups, ascending, with neighbours joined."""
        return join_ranges(filter(None, map(self._span, slices)))

    def _span(self, part: slice) -> IndexRange | None:
        if part == slice(0, 1):
            oldest = self._oldest_group() if self._end > self._first else None
            return IndexRange(oldest.first, oldest.last + 1) if oldest else None
        if part.start is not None and part.start < 0 and part.stop is None:
            oldest = self.group(part.start) or self.group(-len(self))
            return IndexRange(oldest.first, self._end) if oldest else None
        first, last, _ = part.indices(len(self))
        if first >= last:
            return None
        chosen = self._newest[::-1][first:last]
        return IndexRange(chosen[0].first, chosen[-1].last + 1)

    def _find_one_more(self) -> bool:
        group = next(self._older, None)
        if group is None:
            return False
        self._newest.append(group)
        self._sums.append(self._sums[-1] + self._tokens(group))
        return True

    def _tokens(self, group: MessageGroup) -> int:
        if group.first == group.last:  # fast path: most groups have one message
            return self.size(group.first)
        return sum([self.size(place) for place in range(group.first, group.last + 1)])

    def _oldest_group(self) -> MessageGroup:
        """Return the first group, reading from the beginning until another starts."""
        if self._oldest is None:
            beginning = GrowingHistory()
            for place in range(self._first, self._end):
                beginning.append(self._read(place), 0)
                if len(beginning.sums) > 1:
                    break
            first, last, is_open = group_messages(beginning.messages)[0]
            self._oldest = MessageGroup(self._first + first, self._first + last, is_open)
        return self._oldest
