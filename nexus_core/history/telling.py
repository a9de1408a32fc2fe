"""A list of which it is not known yet in which dialect it is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexus_core.dialects.finding import Dialects


class Told(Exception):  # noqa: N818 - no error: it ends an attempt that was begun in the wrong dialect
    """Raised when an element is read that tells its dialect.

    Args:
        name: The dialect.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class Untold:
    """The elements of a list, each of them looked at when it is read: a long list may be told only by its middle.

    Args:
        items: The list.
        supposed: The dialect by which it is read until something tells.
        dialects: Those that there are.
    """

    def __init__(self, items: Sequence[object], supposed: str, dialects: Dialects) -> None:
        self._items = items
        self._supposed = supposed
        self._dialects = dialects

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, place: int) -> object:
        item = self._items[place]
        name = self._dialects.told((item,), place)
        if name and name != self._supposed:
            raise Told(name)
        return item
