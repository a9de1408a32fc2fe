"""What of a transcript is in the ledger, or is about to be: which steps of which sessions have which items."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nexus_core.ledger.json_text import write_canonical_json
from nexus_core.session.importing.marks import START, compaction_mark, message_mark

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nexus_core.session.importing.marks import Mark
    from nexus_core.types.ledger import Ledger, NewStep, SessionRecord, Step

_COMPARED = ("id", "stop", "model", "usage", "kinds")
"""Facts about the messages of a step that a later line of the transcript may change."""
CHUNK = 64
"""So many steps of a fork are read at first; twice as many each time that is not enough."""


class ItemRef(NamedTuple):
    """Where an item is.

    Attributes:
        number: How many items come before it.
        step: The step that has it.
        last: The step behind which goes what follows it; None where it is not the last one in its step.
        closes: Whether a turn ends there.
    """

    number: int
    step: str
    last: str | None = None
    closes: bool = False


class Fork(NamedTuple):
    """Where a thread leaves another.

    Attributes:
        thread: The other.
        items: How many items they have in common.
        end: The mark of the last of these.
        step: The last step they have in common.
    """

    thread: ImportedThread
    items: int
    end: Mark
    step: str


class StepShape(NamedTuple):
    """A recorded step, to be compared with what its items would become now.

    Attributes:
        turn: The turn that it belongs to.
        content: As `shape_of` returns it.
    """

    turn: str
    content: tuple[str, bool, str]


class ImportedThread:
    """The items of one session.

    Attributes:
        label: The session.
        tip: Its newest step.
        end: The mark of its last item.
        items: How many there are.
        places: Its own items.
        shapes: The recorded steps that have or had items, by their ids.
        fork: Where it leaves another, in which is found what they have in common.
        is_untouched: Whether nobody has gone on with it since it was imported.
    """

    def __init__(self, label: str, fork: Fork | None = None) -> None:
        self.label = label
        self.tip: str | None = fork.step if fork else None
        self.end: Mark = fork.end if fork else START
        self.items = fork.items if fork else 0
        self.is_untouched = True
        self.fork = fork
        self.places: dict[Mark, ItemRef] = {}
        self.shapes: dict[str, StepShape] = {}
        self._marks: list[Mark] = []

    def add(self, step: str, marks: Iterable[Mark], *, closes: bool) -> None:
        """One more step and its items; one without any goes on from the last."""
        self.tip = step
        for mark in marks:
            self.places[mark] = ItemRef(self.items, step)
            self._marks.append(mark)
            self.end = mark
            self.items += 1
        last = self.places.get(self.end)
        if last is not None:
            self.places[self.end] = ItemRef(last.number, last.step, step, closes)

    def newest_behind(self, mark: Mark) -> list[Mark]:
        """Return its own items behind an item, in their order; none where that is not followed by one of its own."""
        own = self.places.get(mark)
        if own is not None:
            return self._marks[len(self._marks) - (self.items - own.number - 1) :]
        return list(self._marks) if mark == (self.fork.end if self.fork else START) else []

    def take_back(self, step: str, count: int = 1) -> None:
        """Leave out its last own items; `step` says so."""
        for _ in range(min(count, len(self._marks))):
            del self.places[self._marks.pop()]
            self.items -= 1
            self.end = self._marks[-1] if self._marks else self.fork.end if self.fork else START
        self.tip = step

    def find(self, mark: Mark) -> ItemRef | None:
        """Where an item of this thread is, its own or one that it has in common with others."""
        here: ImportedThread | None = self
        limit = self.items
        while here is not None:
            place = here.places.get(mark)
            if place is not None and place.number < limit:
                return place
            limit = min(limit, here.fork.items) if here.fork else 0
            here = here.fork.thread if here.fork else None
        return None


class Threads:
    """The threads of one transcript that are in the ledger.

    Attributes:
        threads: One for each session, in their order.

    Args:
        ledger: The ledger.
        records: The sessions, each behind the one it was forked from.
    """

    def __init__(self, ledger: Ledger, records: Iterable[SessionRecord]) -> None:
        self._ledger = ledger
        self._forks: dict[str, Fork] = {}  # whoever leaves a step there is
        self.threads = [self._read(record) for record in records]

    def _read(self, record: SessionRecord) -> ImportedThread:
        steps = [] if record.tip is None else self._unknown(record.tip)
        before = steps[0].parent if steps else record.tip
        thread = ImportedThread(record.label, self._forks.get(before or ""))
        for step in steps:
            if "imported" not in step.data:  # from here on it is the user's
                thread.is_untouched = False
                break
            if step.kind == "revert":
                thread.take_back(step.id, count_reverted_messages(step))
            else:
                thread.add(step.id, _marks(step, thread.end), closes=step.closes)
                thread.shapes[step.id] = StepShape(step.turn, shape_of(step))
            self._forks[step.id] = Fork(thread, thread.items, thread.end, step.id)
        return thread

    def _unknown(self, tip: str) -> list[Step]:
        """The steps up to one, from the first that no other thread has."""
        count = CHUNK if self._forks else None
        while True:
            steps = self._ledger.thread(tip, limit=count)
            known = next((at for at in range(len(steps) - 1, -1, -1) if steps[at].id in self._forks), -1)
            if known >= 0 or count is None or len(steps) < count:
                return steps[known + 1 :]
            count *= 2


def shape_of(step: Step | NewStep) -> tuple[str, bool, str]:
    """Return what a step says besides its messages, apart from names and sums: its kind, its end, and its data."""
    data = {name: value for name in _COMPARED if (value := step.data.get(name)) is not None}
    return step.kind, step.closes, write_canonical_json(data)


def count_reverted_messages(step: Step | NewStep) -> int:
    """Return how many messages a `revert` of an import takes back."""
    popped = step.data.get("popped")
    return popped if isinstance(popped, int) else 1


def _marks(step: Step, before: Mark) -> list[Mark]:
    if step.kind == "compaction":
        return [compaction_mark(before, str(step.data.get("summary", "")), step.messages)]
    marks = []
    for message in step.messages:
        before = message_mark(before, message)
        marks.append(before)
    return marks
