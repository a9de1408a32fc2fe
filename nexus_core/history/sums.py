"""Running sums of group sizes, for selections whose cost does not grow with the list."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class RunningSums:
    """Known group sizes; appending one is O(1).

    Args:
        sizes: The tokens of each group, oldest first.
    """

    def __init__(self, sizes: Iterable[int] = ()) -> None:
        # sums[i] is the size of all groups before i, so that the size of any range is one subtraction.
        self._sums = [0, *accumulate(sizes)]

    def append(self, tokens: int) -> None:
        """Append a group."""
        self._sums.append(self._sums[-1] + tokens)

    def grow(self, tokens: int) -> None:
        """Add tokens to the newest group."""
        self._sums[-1] += tokens

    @property
    def total(self) -> int:
        """The tokens of all groups."""
        return self._sums[-1]

    def __len__(self) -> int:
        return len(self._sums) - 1

    def __getitem__(self, index: int) -> int:
        place = range(len(self))[index]
        return self._sums[place + 1] - self._sums[place]

    def newest(self, budget: int, *, at_least: int = 1) -> int:
        """Return how many of the newest groups fit into a budget together, never fewer than `at_least`."""
        first = bisect_left(self._sums, self.total - budget) if budget >= 0 else len(self)
        return max(min(at_least, len(self)), len(self) - first)
