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
        self._calls: list[ToolCall] = []
        self._places: set[int] = set()
        self._by_id: defaultdict[str, deque[int]] = defaultdict(deque)
        self._by_name: defaultdict[tuple[str, str], deque[int]] = defaultdict(deque)
        self._named = 0  # so many calls are in the queues by name, which few results ask for
        for call in calls:
            self.add(call)

    def __bool__(self) -> bool:
        return bool(self._places)

    def __contains__(self, place: int) -> bool:
        return place in self._places

    def add(self, call: ToolCall) -> int:
        """One more call; returns its place in the batch."""
        place = len(self._calls)
        self._calls.append(call)
        self._places.add(place)
        self._by_id[call.id].append(place)
        return place

    def has(self, call_id: str) -> bool:
        """Whether a call with that id waits."""
        return bool(call_id) and self._first(self._by_id.get(call_id)) is not None

    def take(self, result: ToolResult) -> int | None:
        """The place of the call that a result answers, or None; from now on that call does not wait."""
        place = self._find(result)
        if place is not None:
            self._places.remove(place)
        return place

    def _find(self, result: ToolResult) -> int | None:
        place = self._first(self._by_id.get(result.call_id)) if result.call_id else None
        if place is None:
            place = self._first_named("without id", result.name)
        if place is None and not result.call_id:
            place = self._first_named("name", result.name) if result.name else self._first_named(*_ANY)
        return place

    def _first_named(self, kind: str, name: str) -> int | None:
        for place in range(self._named, len(self._calls)):
            call = self._calls[place]
            self._by_name["name", call.name].append(place)
            self._by_name[_ANY].append(place)
            if not call.id:
                self._by_name["without id", call.name].append(place)
        self._named = len(self._calls)
        return self._first(self._by_name.get((kind, name)))

    def _first(self, queue: deque[int] | None) -> int | None:
        while queue and queue[0] not in self._places:
            queue.popleft()
        return queue[0] if queue else None
