"""What of a transcript is in the ledger, or is about to be: which steps of which sessions have which items."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nexus_core.session.importing.marks import START, compaction_mark, message_mark

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nexus_core.session.importing.marks import Mark
    from nexus_core.values.ledger import Ledger, SessionRecord, Step

CHUNK = 64
"""So many steps of a fork are read at first; twice as many each time that is not enough."""


class Place(NamedTuple):
    """Where an item is.

    Attributes:
        step: The step that has it.
        ends: Whether it is the last one in its step.
        closes: Whether a turn ends with it.
    """

    step: str
    ends: bool
    closes: bool


class Thread:
    """The items of one session.

    Attributes:
        label: The session.
        tip: Its newest step.
        end: The mark of its last item.
        is_untouched: Whether nobody has gone on with it since it was imported.

    Args:
        label: The session.
        base: The thread it was forked from; what it has in common with it is found there.
        end: The mark of the last item they have in common.
        tip: The step they have in common.
    """

    def __init__(self, label: str, base: Thread | None = None, end: Mark = START, tip: str | None = None) -> None:
        self.label = label
        self.tip = tip
        self.end = end
        self.is_untouched = True
        self._base = base
        self._places: dict[Mark, Place] = {}

    def add(self, step: str, marks: Iterable[Mark], *, closes: bool) -> None:
        """One more step and its items."""
        self.tip = step
        last: Mark | None = None
        for mark in marks:
            last = self.end = mark
            self._places.setdefault(mark, Place(step, ends=False, closes=False))
        if last is not None and self._places[last].step == step:
            self._places[last] = Place(step, ends=True, closes=closes)
        elif closes and self.end in self._places:  # a turn that was given up ends behind its last item
            self._places[self.end] = Place(step, ends=True, closes=True)

    def find(self, mark: Mark) -> Place | None:
        """Where an item of this thread is, its own or one that it has in common with others."""
        here: Thread | None = self
        while here is not None:
            if mark in here._places:
                return here._places[mark]
            here = here._base
        return None


class Threads:
    """The threads of one transcript that are in the ledger.

    Attributes:
        threads: One for each session, the oldest first.
    """

    def __init__(self, ledger: Ledger, records: Iterable[SessionRecord]) -> None:
        self._ledger = ledger
        self._ends: dict[str, tuple[Thread, Mark]] = {}  # by step: who has it, and the last item up to it
        self.threads = [self._read(record) for record in sorted(records, key=lambda each: (each.created, each.label))]

    def find(self, mark: Mark) -> tuple[Thread, Place] | None:
        """Who has an item, and where."""
        for thread in self.threads:
            place = thread.find(mark)
            if place is not None:
                return thread, place
        return None

    def _read(self, record: SessionRecord) -> Thread:
        steps = [] if record.tip is None else self._unknown(record.tip)
        first = steps[0].parent if steps else record.tip
        base, end = self._ends.get(first or "", (None, START))
        thread = Thread(record.label, base, end, first)
        for step in steps:
            if "imported" not in step.data:  # from here on it is the user's
                thread.is_untouched = False
                break
            thread.add(step.id, _marks(step, thread.end), closes=step.closes)
            self._ends[step.id] = (thread, thread.end)
        return thread

    def _unknown(self, tip: str) -> list[Step]:
        """The steps up to one, from the first that no other thread has."""
        count = CHUNK if self._ends else None
        while True:
            steps = self._ledger.thread(tip, limit=count)
            known = next((at for at in range(len(steps) - 1, -1, -1) if steps[at].id in self._ends), -1)
            if known >= 0 or count is None or len(steps) < count:
                return steps[known + 1 :]
            count *= 2


def _marks(step: Step, before: Mark) -> list[Mark]:
    if step.kind == "compaction":
        return [compaction_mark(before, str(step.data.get("summary", "")), step.messages)]
    marks = []
    for message in step.messages:
        before = message_mark(before, message)
        marks.append(before)
    return marks
