"""The groups of a list that is read only as far as it matters: what is dropped is never looked at."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.history.groups import Group, groups, newest_groups
from nexus_core.history.growing import GrowingHistory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from nexus_core.values.message import Message


class Span(NamedTuple):
    """Neighbours in a list: from `first` up to, not including, `end`."""

    first: int
    end: int


def joined(spans: Iterable[Span]) -> list[Span]:
    """The same places in ascending order, none twice; neighbours are one span."""
    apart: list[Span] = []
    for span in sorted(spans):
        if apart and span.first <= apart[-1].end:
            apart[-1] = Span(apart[-1].first, max(span.end, apart[-1].end))
        else:
            apart.append(span)
    return apart


class LazyGroups:
    """Sizes of groups, counted when they are looked at, from the newest on.

    Args:
        read: Gives the message at a place; asked once for each place, unless everything is asked for.
        first: Where the conversation begins; what stands before is not its business.
        end: Where it ends.
        size: What the message at a place takes.

    Attributes:
        size: The same.
    """

    def __init__(self, read: Callable[[int], Message], first: int, end: int, size: Callable[[int], int]) -> None:
        self._read = read
        self._first = first
        self._end = end
        self.size = size
        self._older: Iterator[Group] = newest_groups(read, end, first)
        self._newest: list[Group] = []
        self._sums = [0]
        self._oldest: Group | None = None

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
        """How many of the newest groups fit into a budget together, but never fewer than `at_least`."""
        sums = self._sums
        # One group more than there must be is counted, so that what is left out after it can be told.
        while (sums[-1] <= budget or len(sums) <= at_least + 1) and self._find_one_more():
            pass
        fitting = bisect_right(self._sums, budget) - 1
        return min(max(fitting, at_least), len(self._newest))

    def group(self, index: int) -> Group | None:
        """The group at a place from the end (-1 is the newest), or None before the first."""
        while len(self._newest) < -index and self._find_one_more():
            pass
        return self._newest[-index - 1] if -index <= len(self._newest) else None

    def spans(self, slices: Iterable[slice]) -> list[Span]:
        """Where the messages of those groups stand in the list; ascending, neighbours joined."""
        return joined(filter(None, map(self._span, slices)))

    def _span(self, part: slice) -> Span | None:
        if part == slice(0, 1):
            oldest = self._oldest_group() if self._end > self._first else None
            return Span(oldest.first, oldest.last + 1) if oldest else None
        if part.start is not None and part.start < 0 and part.stop is None:
            oldest = self.group(part.start) or self.group(-len(self))
            return Span(oldest.first, self._end) if oldest else None
        first, last, _ = part.indices(len(self))
        if first >= last:
            return None
        chosen = self._newest[::-1][first:last]
        return Span(chosen[0].first, chosen[-1].last + 1)

    def _find_one_more(self) -> bool:
        group = next(self._older, None)
        if group is None:
            return False
        self._newest.append(group)
        self._sums.append(self._sums[-1] + self._tokens(group))
        return True

    def _tokens(self, group: Group) -> int:
        if group.first == group.last:  # most of them
            return self.size(group.first)
        return sum([self.size(place) for place in range(group.first, group.last + 1)])

    def _oldest_group(self) -> Group:
        """The first group: read from the beginning, until another begins."""
        if self._oldest is None:
            beginning = GrowingHistory()
            for place in range(self._first, self._end):
                beginning.append(self._read(place), 0)
                if len(beginning.sums) > 1:
                    break
            first, last, is_open = groups(beginning.messages)[0]
            self._oldest = Group(self._first + first, self._first + last, is_open)
        return self._oldest
