"""A list of items of OpenAI's Responses, kept as steps of a ledger.

Every addition is one step, a turn by itself: messages, which all of Nexus reads, and beside them (`items` in the step's
data) the items byte for byte. One without words of the user goes on with the turn before it, for whoever counts turns
or shows them. Nothing is deleted. A step that takes back the newest item is a `revert` (`popped`), one that takes back
all is a `compaction` that keeps nothing (`cleared`).
"""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from nexus_core.dialects.finding import dialect
from nexus_core.dialects.plain import plain_mapping
from nexus_core.errors import ConflictError, ExistsError, MessageError, TurnError
from nexus_core.session.steps.numbering import CONTINUES, SILENT
from nexus_core.session.steps.state import State
from nexus_core.session.steps.walking import walk_back
from nexus_core.session.thread.appending import ATTEMPTS, never_still
from nexus_core.session.thread.assembling import ensure_in_use
from nexus_core.tokens.counters import open_counter
from nexus_core.values.cache import CacheReport
from nexus_core.values.ledger import NewStep
from nexus_core.values.message import Message
from nexus_core.values.parts import Opaque

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from nexus_core.nexus import Nexus
    from nexus_core.values.ledger import Ledger, SessionRecord, Step, StepKind

T = TypeVar("T")

LONG = 64_000
"""Items of so many characters, which are mostly pictures, are not stored twice where messages give them back equal."""
FEW = 8
"""So many steps are read in one go where only some items are wanted."""
WITHOUT_ITEMS = ("sealed", *SILENT)
"""Kinds of steps that repeat what was said, or say nothing by themselves."""


class KeptItems:
    """The items of one session; several programs may use it at once.

    Args:
        nexus: Whose ledger it is.
        label: The session's name.
    """

    def __init__(self, nexus: Nexus, label: str) -> None:
        self._nexus = nexus
        self._label = label

    def read(self, limit: int | None = None) -> list[Any]:
        """All items, oldest first, or the newest so many; below 0 is no limit, as in the SDK's own sessions."""
        return self._newest(self._tip(self._ledger.session(self._label)), limit)

    def add(self, items: Sequence[Any]) -> None:
        """Keep items, all of them in one transaction.

        Raises:
            TurnError: A turn is open in the session, or it is archived.
            MessageError: One of them is no item at all.
        """
        blocks = [plain_mapping(item, f"items[{place}]") for place, item in enumerate(items)]
        messages = tuple(map(_read_block, blocks))
        counter = open_counter(host=self._nexus.host)
        step = NewStep(
            kind="turn",
            closes=True,
            messages=messages,
            tokens=counter.count_messages(messages),
            counter=counter.name,
            data={} if _is_long(blocks) and _written(messages) == blocks else {"items": blocks},
        )
        # The SDK adds the user's words first, and what came of them in one piece or several.
        goes_on = replace(step, data={**step.data, CONTINUES: True})

        def change(record: SessionRecord | None) -> Step:
            known = record or self._ledger.create(self._label, data={"model": "", "cwd": str(self._nexus.cwd)})
            is_new = known.tip is None or any(message.role == "user" for message in messages)
            return self._ledger.append(known.label, step if is_new else goes_on, after=known.tip)

        added = self._do(change)
        self._nexus.host.recorded(added, self._label, None, CacheReport())

    def pop(self) -> Any:  # noqa: ANN401 - an item
        """Take back the newest item and return it; None where there is none."""

        def change(record: SessionRecord | None) -> Any:  # noqa: ANN401 - as above
            tip = self._tip(record)
            newest = self._newest(tip, 1)
            if tip is None or not newest:
                return None
            self._take_back(tip, "revert", {"restores": tip.compaction, "popped": 1})
            return newest[0]

        return self._do(change)

    def clear(self) -> None:
        """Take back everything."""

        def change(record: SessionRecord | None) -> None:
            tip = self._tip(record)
            if tip is not None and self._newest(tip, 1):
                self._take_back(tip, "compaction", {"cleared": True})

        self._do(change)

    @property
    def _ledger(self) -> Ledger:
        return self._nexus.ledger

    def _do(self, change: Callable[[SessionRecord | None], T]) -> T:
        """Change something where the session stands; decide anew where somebody else was faster."""
        for _ in range(ATTEMPTS):
            record = self._ledger.session(self._label)
            if record is not None:
                _ensure_free(record)
            try:
                return change(record)
            except (ConflictError, ExistsError):
                continue
        raise never_still(self._label)

    def _take_back(self, tip: Step, kind: StepKind, data: dict[str, Any]) -> None:
        step = NewStep(kind=kind, closes=True, counter=tip.counter, data=data)  # so that its sum of tokens goes on
        self._ledger.append(self._label, step, after=tip.id)

    def _tip(self, record: SessionRecord | None) -> Step | None:
        return None if record is None or record.tip is None else self._ledger.step(record.tip)

    def _newest(self, tip: Step | None, limit: int | None) -> list[Any]:
        """The newest items up to a step; no more steps are read than it takes to find them, but for a few."""
        if tip is None:
            return []
        begin, most = self._last_cleared(tip), None if limit is None or limit < 0 else limit
        if most is None:
            steps: Iterable[Step] = reversed(self._ledger.thread(tip.id, first=begin))
        else:
            steps = walk_back(self._ledger, tip.id, at_once=max(most, FEW))
        return list(islice(_newest_first(steps, begin), most))[::-1]

    def _last_cleared(self, tip: Step) -> str | None:
        """The step that cleared all before it, if there is one and nobody took it back."""
        step: Step | None = tip
        while step is not None and step.compaction is not None:
            nearest = self._ledger.step(step.compaction)
            if nearest is None or "cleared" in nearest.data:
                return step.compaction
            step = None if nearest.parent is None else self._ledger.step(nearest.parent)
        return None


def _newest_first(steps: Iterable[Step], begin: str | None) -> Iterator[Any]:
    """The items of a thread, given from its end, back to a step; without those that were taken back."""
    popped = 0
    for step in steps:
        data: Mapping[str, Any] = step.data
        if step.id == begin:
            return
        popped += data.get("popped", 0)
        if step.kind not in WITHOUT_ITEMS:
            items = data["items"] if "items" in data else _written(step.messages)
            left = max(len(items) - popped, 0)
            popped -= len(items) - left
            yield from reversed(items[:left])


def _read_block(block: dict[str, Any]) -> Message:
    try:
        return dialect("responses").read(block)
    except MessageError:  # perhaps a later version of the API knows it
        return Message("assistant", (Opaque("responses", block),), api="responses")


def _written(messages: Iterable[Message]) -> list[dict[str, Any]]:
    return dialect("responses").write(messages)


def _is_long(blocks: list[dict[str, Any]]) -> bool:
    return len(json.dumps(blocks)) >= LONG


def _ensure_free(record: SessionRecord) -> None:
    ensure_in_use(State(record, None, None))
    if record.open_turn is not None:
        raise TurnError(
            f"a turn is open in session {record.label!r}",
            hint="nexus.session(…).interrupt() ends it; if another program works on it, take another name",
        )
