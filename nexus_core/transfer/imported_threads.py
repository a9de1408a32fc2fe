"""Threads of earlier imports, with the items that each of them has."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nexus_core.dialects.neutral import message_to_json
from nexus_core.ledger.store import write_json
from nexus_core.types.base import blake2b
from nexus_core.types.payloads import CompactionPayload, ReplyPayload, RevertPayload

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from nexus_core.types.ledger import Ledger, NewStep, SessionRecord, Step
    from nexus_core.types.messages import Message

StepShape = tuple[object, ...]
"""Kind, end and other fields of a step, as `get_step_shape` returns them."""
PrefixDigest = bytes
"""Identifies an item together with all items before it."""
START: PrefixDigest = b""
_FORK_CHUNK_STEPS = 64
"""Steps of a fork that are read at first; doubled until they reach a known step."""


def digest_message(before: PrefixDigest, message: Message) -> PrefixDigest:
    """Return the digest of a message after other items."""
    return _digest_item(before, write_json(message_to_json(message), "a message"))


def digest_compaction(before: PrefixDigest, summary: str, messages: Iterable[Message]) -> PrefixDigest:
    """Return the digest of a compaction after other items."""
    return _digest_item(before, write_json([summary, *map(message_to_json, messages)], "a compaction"))


def _digest_item(before: PrefixDigest, text: str) -> PrefixDigest:
    return blake2b(before + text.encode(), digest_size=16).digest()


def _digest_step(before: PrefixDigest, step: Step) -> list[PrefixDigest]:
    if isinstance(step.payload, CompactionPayload):
        return [digest_compaction(before, step.payload.summary, step.messages)]
    digests = []
    for message in step.messages:
        before = digest_message(before, message)
        digests.append(before)
    return digests


def get_step_shape(step: Step | NewStep) -> StepShape:
    """Return the kind and end of a step, and the fields that a later line of the transcript may change."""
    payload = step.payload
    shape = step.kind, step.closes, payload.model, tuple(payload.kinds)
    return (*shape, payload.id, payload.stop, payload.usage) if isinstance(payload, ReplyPayload) else shape


class _ItemRef(NamedTuple):
    """An item in a thread.

    Attributes:
        number: Number of items before it.
        step: The step that has it.
        last: The step that a following item goes after; None if it is not the last item of its step.
        closes: True if a turn ends there.
    """

    number: int
    step: str
    last: str | None = None
    closes: bool = False


class ForkPoint(NamedTuple):
    """The end of what a thread shares with another.

    Attributes:
        thread: The other thread.
        shared: Number of items they share.
        end: The last item they share.
        step: The last step they share.
    """

    thread: ImportedThread
    shared: int
    end: PrefixDigest
    step: str


class ImportedThread:
    """The items of a session that is in the ledger, or about to be.

    Attributes:
        label: The session.
        tip: Its newest step.
        end: Its last item.
        count: Number of its items.
        items: Its own items, without those that it shares.
        turns: The turn of each stored step that has or had items, by the step's id.
        shapes: The shape of the same steps.
        fork: The end of what it shares with another thread.
        is_untouched: True if nothing but imports added steps to it.
    """

    def __init__(self, label: str, fork: ForkPoint | None = None) -> None:
        self.label = label
        self.tip: str | None = fork.step if fork else None
        self.end: PrefixDigest = fork.end if fork else START
        self.count = fork.shared if fork else 0
        self.is_untouched = True
        self.fork = fork
        self.items: dict[PrefixDigest, _ItemRef] = {}
        self.turns: dict[str, str] = {}
        self.shapes: dict[str, StepShape] = {}
        self._order: list[PrefixDigest] = []

    def add(self, step: Step | NewStep, digests: Iterable[PrefixDigest]) -> None:
        """Append a step with its items, or without any."""
        self.tip = step.id
        if step.kind == "revert":
            popped = step.payload.popped if isinstance(step.payload, RevertPayload) else None
            self._remove_last(1 if popped is None else popped)
            return
        for digest in digests:
            self.items[digest] = _ItemRef(self.count, step.id)
            self._order.append(digest)
            self.end = digest
            self.count += 1
        last = self.items.get(self.end)
        if last is not None:
            self.items[self.end] = _ItemRef(last.number, last.step, step.id, step.closes)

    def _remove_last(self, number: int) -> None:
        for _ in range(min(number, len(self._order))):
            del self.items[self._order.pop()]
            self.count -= 1
            self.end = self._order[-1] if self._order else self.fork.end if self.fork else START

    def list_after(self, digest: PrefixDigest) -> list[PrefixDigest]:
        """Return its own items after an item.

        Empty if the next item is not its own.
        """
        own = self.items.get(digest)
        if own is not None:
            return self._order[len(self._order) - (self.count - own.number - 1) :]
        return list(self._order) if digest == (self.fork.end if self.fork else START) else []

    def find(self, digest: PrefixDigest) -> _ItemRef | None:
        """Return an item of this thread, its own or a shared one."""
        here: ImportedThread | None = self
        limit = self.count
        while here is not None:
            item = here.items.get(digest)
            if item is not None and item.number < limit:
                return item
            limit = min(limit, here.fork.shared) if here.fork else 0
            here = here.fork.thread if here.fork else None
        return None


def read_threads(ledger: Ledger, records: Iterable[SessionRecord]) -> list[ImportedThread]:
    """Read the threads of sessions, each after the one it was forked from."""
    threads: list[ImportedThread] = []
    forks: dict[str, ForkPoint] = {}  # by step
    for record in records:
        steps = [] if record.tip is None else _read_unknown_steps(ledger, record.tip, forks)
        before = steps[0].parent if steps else record.tip
        thread = ImportedThread(record.label, forks.get(before or ""))
        for step in steps:
            if step.payload.imported is None:  # from here on it is the user's
                thread.is_untouched = False
                break
            thread.add(step, () if step.kind == "revert" else _digest_step(thread.end, step))
            if step.kind != "revert":
                thread.turns[step.id] = step.turn
                thread.shapes[step.id] = get_step_shape(step)
            forks[step.id] = ForkPoint(thread, thread.count, thread.end, step.id)
        threads.append(thread)
    return threads


def _read_unknown_steps(ledger: Ledger, tip: str, known: Mapping[str, object]) -> list[Step]:
    """Return the steps up to one, from the first on that no other thread has."""
    limit = _FORK_CHUNK_STEPS if known else None
    while True:
        steps = ledger.thread(tip, limit=limit)
        last = next((at for at in range(len(steps) - 1, -1, -1) if steps[at].id in known), -1)
        if last >= 0 or limit is None or len(steps) < limit:
            return steps[last + 1 :]
        limit *= 2
