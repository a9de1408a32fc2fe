"""The truncation strategies `oldest_first` and `middle_out`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core import hookimpl
from nexus_core.plugin import TruncationStrategy

if TYPE_CHECKING:
    from nexus_core.plugin import GroupSizes


@hookimpl
def nexus_truncation_strategies() -> list[TruncationStrategy]:
    """Return the strategies `oldest_first`, which drops from the beginning, and `middle_out`, from the middle."""
    return [TruncationStrategy("oldest_first", oldest_first), TruncationStrategy("middle_out", middle_out)]


def oldest_first(groups: GroupSizes, budget: int) -> list[slice]:
    """Keep the newest groups that fit together, and at least the newest one."""
    return [slice(-groups.newest(budget), None)]


def middle_out(groups: GroupSizes, budget: int) -> list[slice]:
    """Keep the first group and the newest that fit beside it, or like `oldest_first` if none does."""
    available = budget - groups[0]
    if available < groups[-1]:
        return oldest_first(groups, budget)
    return [slice(0, 1), slice(-groups.newest(available), None)]
