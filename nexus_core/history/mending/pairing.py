"""Which result answers which call."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from nexus_core.history.waiting import WaitingCalls
from nexus_core.values.parts import Text, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nexus_core.history.mending.work import Draft, Work


class Spot:
    """A call or a result: the draft it stands in, its place there, and its partner."""

    __slots__ = ("batch", "draft", "partner", "place")

    def __init__(self, draft: Draft, place: int) -> None:
        self.draft = draft
        self.place = place
        self.partner: Spot | None = None
        self.batch: Batch | None = None

    @property
    def call(self) -> ToolCall:
        """The call that stands here."""
        part = self.draft.parts[self.place]
        assert isinstance(part, ToolCall)  # noqa: S101 - spots are made for them only
        return part

    @property
    def result(self) -> ToolResult:
        """The result that stands here."""
        part = self.draft.parts[self.place]
        assert isinstance(part, ToolResult)  # noqa: S101 - as above
        return part


class Batch:
    """Calls of one turn, and where their results belong.

    Attributes:
        calls: In their order.
        home: The draft behind which a further result belongs: the last of the turn, or of its results.
        mixed: The draft into which it belongs instead, because something else is said after results there.
        closed: Whether somebody spoke since.
    """

    def __init__(self) -> None:
        self.calls: list[Spot] = []
        self.home: Draft | None = None
        self.mixed: Draft | None = None
        self.closed = False
        self.waiting = WaitingCalls()

    def add(self, spot: Spot) -> None:
        """One more call."""
        spot.batch = self
        self.calls.append(spot)
        self.waiting.add(spot.call)

    def answer(self, result: Spot) -> bool:
        """Pair a result with the call it answers, if that waits here."""
        place = self.waiting.take(result.result)
        if place is None:
            return False
        call = self.calls[place]
        call.partner, result.partner, result.batch = result, call, self
        return True


class Pairing:
    """All calls and results of a conversation.

    Attributes:
        batches: The calls, turn by turn.
        late: Results that stand apart from their call.
        early: Results that stand before their call.
        duplicates: Results of calls that have one already.
        orphans: Results of no call.
    """

    def __init__(self, work: Work) -> None:
        self.batches: list[Batch] = []
        self.late: list[Spot] = []
        self.early: list[Spot] = []
        self.duplicates: list[Spot] = []
        self.orphans: list[Spot] = []
        self._by_id: dict[str, deque[Batch]] = {}
        self._batch: Batch | None = None  # of the turn that is going on
        self._zone: Batch | None = None  # whose results may stand here
        before = None
        for draft in work.drafts:
            # Where results must follow at once, every message has its own; foreign neighbours will be made one.
            is_alone = work.rules.results == "each" and (work.owns(draft) or (before is not None and work.owns(before)))
            if self._enter(draft, is_alone=is_alone, moves_late=work.rules.results != "anywhere"):
                before = draft
        self._close_abandoned(before)
        for spot in self.early:
            self._match_later(spot)
        self.early = [spot for spot in self.early if spot.partner]

    def _enter(self, draft: Draft, *, is_alone: bool, moves_late: bool) -> bool:
        """Take in the next message; returns False if all of it will be taken away from there.

        Such a message ends no turn: the list must be read as it will be read without it.
        """
        if draft.role == "assistant":
            if is_alone or self._batch is None:
                self._close()
            self._open(draft)
            return True
        results = list(_spots(draft, ToolResult))
        for spot in results:
            self._match(spot)
        is_mixed = len(results) < len(draft.parts)
        if results and not is_mixed and all(self._goes(spot, moves_late=moves_late) for spot in results):
            return False
        if self._zone is not None and any(spot.batch is self._zone for spot in results):
            self._zone.home, self._zone.mixed = (self._zone.home, draft) if is_mixed else (draft, None)
        if is_mixed:
            self._close()
        self._batch = None
        return True

    def _goes(self, spot: Spot, *, moves_late: bool) -> bool:
        """True if a result will be moved or left out."""
        return spot.batch is None or (moves_late and spot.batch is not self._zone)

    def _open(self, draft: Draft) -> None:
        calls = list(_spots(draft, ToolCall))
        if self._batch is None:
            self._batch = Batch()
        if calls and not self._batch.calls:
            self.batches.append(self._batch)
        for spot in calls:
            self._batch.add(spot)
            self._by_id.setdefault(spot.call.id, deque()).append(self._batch)
        self._batch.home = draft
        self._zone = self._batch

    def _close(self) -> None:
        if self._zone is not None:
            self._zone.closed = True
        self._zone = self._batch = None

    def _close_abandoned(self, last: Draft | None) -> None:
        """Close the last turn if the assistant speaks on in another message: calls before it wait no longer."""
        batch = self._batch
        if batch is None or last is None or not batch.calls or last.has_calls:
            return
        if any(isinstance(part, Text) and part.text.strip() for part in last.parts):
            batch.closed, batch.home = True, batch.calls[-1].draft

    def _match(self, spot: Spot) -> None:
        if self._zone is not None and self._zone.answer(spot):
            return
        name = spot.result.call_id
        batches = self._by_id.get(name) if name else None
        while batches and not batches[-1].waiting.has(name):
            batches.pop()  # nothing waits there any more, and nothing will
        if batches:
            batches[-1].answer(spot)
            self.late.append(spot)
        elif batches is not None:
            self.duplicates.append(spot)
        else:
            self.early.append(spot)

    def _match_later(self, spot: Spot) -> None:
        name = spot.result.call_id
        batches = self._by_id.get(name) if name else None
        while batches and not batches[0].waiting.has(name):
            batches.popleft()
        if batches:
            batches[0].answer(spot)
        else:
            self.orphans.append(spot)


def _spots(draft: Draft, kind: type) -> Iterator[Spot]:
    return (Spot(draft, place) for place, part in enumerate(draft.parts) if isinstance(part, kind))
