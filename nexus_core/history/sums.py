"""Sizes of groups as running sums: choosing among a hundred thousand costs as much as among a hundred."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class RunningSums:
    """Sizes that are known; one more costs one addition.

    Args:
        sizes: The tokens of each group, oldest first.
    """

    def __init__(self, sizes: Iterable[int] = ()) -> None:
        # sums[i] is what the groups before i take, so that any span is one subtraction.
        self._sums = [0, *accumulate(sizes)]

    def append(self, tokens: int) -> None:
        """Add a group at the end."""
        self._sums.append(self._sums[-1] + tokens)

    def grow(self, tokens: int) -> None:
        """Add to the newest group."""
        self._sums[-1] += tokens

    @property
    def total(self) -> int:
        """What all groups take."""
        return self._sums[-1]

    def __len__(self) -> int:
        return len(self._sums) - 1

    def __getitem__(self, index: int) -> int:
        place = range(len(self))[index]
        return self._sums[place + 1] - self._sums[place]

    def newest(self, budget: int, *, at_least: int = 1) -> int:
        """How many of the newest groups fit into a budget together, but never fewer than `at_least`."""
        first = bisect_left(self._sums, self.total - budget) if budget >= 0 else len(self)
        return max(min(at_least, len(self)), len(self) - first)
