"""Calls that wait for their results, and which of them a result answers."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nexus_core.values.parts import ToolCall, ToolResult

_ANY = ("any", "")


class WaitingCalls:
    """Calls of one batch in their order; a result takes away the call it answers.

    A result answers the first call with its id. One without an id, or with an id that no call has, answers the first
    call of that tool that has no id itself. Where there is none, one without an id answers the first call of that tool
    (of any, if it does not name one).
    """

    def __init__(self, calls: Iterable[ToolCall] = ()) -> None:
        self._places: set[int] = set()
        self._queues: dict[tuple[str, str], deque[int]] = defaultdict(deque)
        self._count = 0
        for call in calls:
            self.add(call)

    def __bool__(self) -> bool:
        return bool(self._places)

    def __contains__(self, place: int) -> bool:
        return place in self._places

    def add(self, call: ToolCall) -> int:
        """One more call; returns its place in the batch."""
        place, self._count = self._count, self._count + 1
        self._places.add(place)
        for key in (("id", call.id), ("name", call.name), _ANY):
            self._queues[key].append(place)
        if not call.id:
            self._queues["without id", call.name].append(place)
        return place

    def has(self, call_id: str) -> bool:
        """Whether a call with that id waits."""
        return bool(call_id) and self._first(("id", call_id)) is not None

    def take(self, result: ToolResult) -> int | None:
        """The place of the call that a result answers, or None; from now on that call does not wait."""
        place = self._find(result)
        if place is not None:
            self._places.remove(place)
        return place

    def _find(self, result: ToolResult) -> int | None:
        place = self._first(("id", result.call_id)) if result.call_id else None
        if place is None:
            place = self._first(("without id", result.name))
        if place is None and not result.call_id:
            place = self._first(("name", result.name) if result.name else _ANY)
        return place

    def _first(self, key: tuple[str, str]) -> int | None:
        queue = self._queues.get(key)
        while queue and queue[0] not in self._places:
            queue.popleft()
        return queue[0] if queue else None
