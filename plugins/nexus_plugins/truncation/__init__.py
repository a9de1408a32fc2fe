"""Chooses what stays when a conversation does not fit: `oldest_first` and `middle_out`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core import hookimpl
from nexus_core.plugin import Truncation

if TYPE_CHECKING:
    from nexus_core.plugin import GroupSizes


@hookimpl
def nexus_truncations() -> list[Truncation]:
    """`oldest_first` drops from the beginning, `middle_out` from the middle."""
    return [Truncation("oldest_first", oldest_first), Truncation("middle_out", middle_out)]


def oldest_first(groups: GroupSizes, budget: int) -> list[slice]:
    """The newest groups that fit together; the newest stays in any case."""
    return [slice(-groups.newest(budget), None)]


def middle_out(groups: GroupSizes, budget: int) -> list[slice]:
    """The first group, and the newest that fit beside it; as `oldest_first` where the first leaves no room."""
    room = budget - groups[0]
    return [slice(0, 1), slice(-groups.newest(room), None)] if room >= groups[-1] else oldest_first(groups, budget)
