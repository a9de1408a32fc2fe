"""Tests shared out among processes file by file, so that what a file needs is made once.

The groups of pytest-xdist change the names of tests, which pytest 9.2 ignores; and where each test is a unit of its
own, its scheduler goes through all of them after each test.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

if TYPE_CHECKING:
    import pytest

TOGETHER = ("tests/packaging/",)
"""Folders whose files share wheels and environments that take minutes to make."""


def get_unit(nodeid: str) -> str:
    """Return the name of what a test is run together with: its file, or a folder."""
    file = nodeid.partition("::")[0]
    return next((folder for folder in TOGETHER if file.startswith(folder)), file)


def sort_by_weight(items: list[pytest.Item]) -> None:
    """Sort tests so that no process waits for another at the end: units with slow tests first, then those with most."""
    sizes: Counter[str] = Counter(get_unit(item.nodeid) for item in items)
    slow: Counter[str] = Counter(get_unit(item.nodeid) for item in items if item.get_closest_marker("slow"))

    def key(item: pytest.Item) -> tuple[bool, int, int, str]:
        unit = get_unit(item.nodeid)
        return unit not in TOGETHER, -slow[unit], -sizes[unit], unit

    items.sort(key=key)


class UnitScheduling(LoadScopeScheduling):  # type: ignore[misc] # it brings no types
    """The tests of a unit are run by one process, one after the other."""

    def _split_scope(self, nodeid: str) -> str:
        return get_unit(nodeid)

    def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
        """Mark a test as complete, and forget its unit with its last test."""
        super().mark_test_complete(node, item_index, duration)
        unit = get_unit(self.registered_collections[node][item_index])
        if all(self.assigned_work[node][unit].values()):
            del self.assigned_work[node][unit]
