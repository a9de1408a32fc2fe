"""Ledgers in memory: for tests, for short-lived sessions and for dry runs."""

from __future__ import annotations

from contextlib import contextmanager
from itertools import islice
from threading import RLock
from typing import TYPE_CHECKING, TypeVar

from nexus_core.ledger.ledger import StoreLedger
from nexus_core.ledger.store import Salvaged, erase_content, new_id
from nexus_core.ledger.store import current_time_ms as time_now

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from nexus_core.ledger.store import (
        AliasRow,
        BranchRow,
        DeletionRow,
        ErasedRow,
        HistoryRow,
        LedgerStore,
        ParentRef,
        SessionRow,
        StepFields,
        StepRow,
    )
    from nexus_core.types.plugins import Finding

T = TypeVar("T")

MEMORY_URL = "memory:"


class MemoryLedger(StoreLedger):
    """Keeps conversations in memory, by the rules of every ledger."""

    def __init__(self, *, now: Callable[[], int] = time_now, name: Callable[[int], str] = new_id) -> None:
        super().__init__(MemoryStore(), now=now, name=name)


class MemoryStore:
    """Rows in dictionaries, one lock around each piece of work."""

    url = MEMORY_URL
    erasure_note = ""

    def __init__(self) -> None:
        self._lock = RLock()
        self._sessions: dict[str, SessionRow] = {}
        self._labels: dict[str, str] = {}
        self._aliases: dict[str, AliasRow] = {}
        self._history: list[HistoryRow] = []
        self._branches: dict[str, BranchRow] = {}
        self._lines: dict[str, list[StepRow]] = {}
        self._steps: dict[str, StepRow] = {}
        self._blobs: dict[str, bytes] = {}
        self._deletions: list[DeletionRow] = []
        self._erased: list[ErasedRow] = []

    def read(self, work: Callable[[], T]) -> T:
        """Do something that only looks."""
        with self._lock:
            return work()

    def write(self, work: Callable[[], T], *, session: str = "") -> T:  # noqa: ARG002 - there is one lock for all
        """Do something alone. Work refuses before it begins to write, so there is nothing to take back."""
        with self._lock:
            return work()

    @contextmanager
    def snapshot(self) -> Iterator[MemoryStore]:
        """Itself, which nobody changes meanwhile."""
        with self._lock:
            yield self

    def close(self) -> None:
        """Nothing to let go of."""

    def session(self, label: str) -> SessionRow | None:
        """The session of that name, else the one of that alias."""
        name = self._labels.get(label)
        if name is None and label in self._aliases:
            name = self._aliases[label].session
        return None if name is None else self._sessions[name]

    def save_session(self, row: SessionRow) -> None:
        """Add it, or put it in the place of the one with its id."""
        before = self._sessions.get(row.id)
        if before is not None:
            del self._labels[before.label]
        self._labels[row.label] = row.id
        self._sessions[row.id] = row

    def move_session(self, row: SessionRow) -> None:
        """Put a session that is there on another step."""
        self._sessions[row.id] = row

    def add_alias(self, row: AliasRow) -> None:
        """Add another name."""
        self._aliases[row.alias] = row

    def drop_alias(self, alias: str) -> None:
        """Take a name away."""
        del self._aliases[alias]

    def add_history(self, rows: Sequence[HistoryRow]) -> None:
        """Note where heads were put."""
        self._history += rows

    def place(self, name: str) -> ParentRef | None:
        """Where a step stands."""
        row = self._steps.get(name)
        return None if row is None else row.place

    def is_taken(self, branch: str, position: int) -> bool:
        """Whether a step stands there."""
        return position < self._end(branch)

    def add_branch(self, row: BranchRow) -> None:
        """Begin a branch."""
        self._branches[row.id] = row
        self._lines[row.id] = []

    def branch(self, name: str) -> BranchRow | None:
        """Where a branch begins."""
        return self._branches.get(name)

    def add_steps(self, rows: Sequence[StepRow]) -> None:
        """Add steps that follow each other to the end of their branches."""
        for row in rows:
            self._lines[row.branch].append(row)
            self._steps[row.id] = row

    def step(self, name: str) -> StepRow | None:
        """The step of that id."""
        return self._steps.get(name)

    def tail(self, tip: str, *, floor: int, limit: int) -> list[StepFields]:
        """A step and those before it in its branch, newest first: not below a position, not more than `limit`."""
        row = self._steps.get(tip)
        if row is None:
            return []
        begin = self._branches[row.branch].position + 1
        lowest = max(floor, begin, row.position + 1 - limit)
        return [*reversed(self._lines[row.branch][lowest - begin : row.position + 1 - begin])]

    def search(self, branch: str, *, floor: int, below: int, text: str, limit: int) -> list[StepFields]:
        """The steps of a branch between two positions whose stored messages contain a text, newest first."""
        begin = self._branches[branch].position + 1
        rows = self._lines[branch][max(floor - begin, 0) : max(below - begin, 0)]
        return [*islice((row for row in reversed(rows) if text in row.messages), limit)]

    def add_blob(self, digest: str, content: bytes) -> None:
        """Keep bytes, unless they are there already."""
        self._blobs.setdefault(digest, bytes(content))

    def blob(self, digest: str) -> bytes | None:
        """The bytes of that address."""
        return self._blobs.get(digest)

    def session_rows(self) -> list[SessionRow]:
        """Every session."""
        return list(self._sessions.values())

    def alias_rows(self) -> list[AliasRow]:
        """Every alias."""
        return list(self._aliases.values())

    def history_rows(self, session: str | None = None) -> Iterator[HistoryRow]:
        """Every note on a head, or those of one session by its lasting name."""
        return iter(tuple(row for row in self._history if session in (None, row.session)))

    def branch_rows(self) -> list[BranchRow]:
        """Every branch."""
        return list(self._branches.values())

    def step_rows(self) -> Iterator[StepRow]:
        """Every step, branch by branch, in order of position."""
        for name in sorted(self._lines):
            yield from tuple(self._lines[name])

    def blob_rows(self) -> Iterator[tuple[str, bytes]]:
        """Every blob."""
        yield from sorted(self._blobs.items())

    def damage(self, _session: str | None = None) -> list[Finding]:
        """Memory has none that could be found."""
        return []

    def salvage(self) -> Salvaged:
        """Everything there is."""
        steps, history = tuple(self.step_rows()), tuple(self.history_rows())
        blobs = tuple(self.blob_rows())
        erased = tuple(self._erased)
        return Salvaged(steps, self.session_rows(), self.alias_rows(), history, blobs, self.deletion_rows(), erased)

    def wait_for_writers(self) -> None:
        """There is one lock for all."""

    def add_deletion(self, row: DeletionRow, erased: Sequence[ErasedRow]) -> None:
        """Record a deletion, and everything it erases."""
        self._deletions.append(row)
        self._erased += erased

    def erase_steps(self, names: Sequence[str]) -> None:
        """Replace messages and data of steps by nothing."""
        for name in names:
            row = self._steps[name] = erase_content(self._steps[name])
            self._lines[row.branch][row.position - self._branches[row.branch].position - 1] = row

    def drop_blobs(self, digests: Sequence[str]) -> None:
        """Remove blobs."""
        for digest in digests:
            self._blobs.pop(digest, None)

    def drop_session(self, name: str) -> None:
        """Remove a session by its lasting name, with its label, its aliases and the notes on its heads."""
        del self._labels[self._sessions.pop(name).label]
        self._aliases = {alias: row for alias, row in self._aliases.items() if row.session != name}
        self._history = [row for row in self._history if row.session != name]

    def purge(self) -> bool:
        """Nothing is left in memory."""
        self._deletions = [row._replace(purged=1) for row in self._deletions]
        return True

    def copies(self) -> list[str]:
        """There are none."""
        return []

    def deletion_rows(self) -> list[DeletionRow]:
        """Every deletion, in the order of their numbers."""
        return sorted(self._deletions, key=lambda row: row.number)

    def erased_rows(self) -> Iterator[ErasedRow]:
        """Everything that was erased, deletion by deletion."""
        return iter(sorted(self._erased))

    def erased(self, kind: str, name: str) -> list[ErasedRow]:
        """The records of one thing that was erased."""
        return [row for row in self._erased if (row.kind, row.name) == (kind, name)]

    def _end(self, branch: str) -> int:
        return self._branches[branch].position + 1 + len(self._lines[branch])


class DryRunLedger(StoreLedger):
    """Another ledger with additions that are kept in memory only: for dry runs.

    Args:
        base: The other ledger, which is only read.
    """

    def __init__(self, base: StoreLedger) -> None:
        super().__init__(DryRunStore(base.store))


class DryRunStore(MemoryStore):
    """New rows in memory, all others from a store that is only read.

    Steps behind one of that store begin a branch of their own, so that each branch is in one place.
    """

    def __init__(self, base: LedgerStore) -> None:
        super().__init__()
        self.url = base.url
        self._base = base

    def read(self, work: Callable[[], T]) -> T:
        """Do something that only reads."""
        return self._base.read(work)

    def write(self, work: Callable[[], T], *, session: str = "") -> T:  # noqa: ARG002 - nothing is written there
        """Do something that adds to the memory; for the other store that is reading."""
        return self._base.read(work)

    def close(self) -> None:
        """Leave the other store open: its owner closes it."""

    def session(self, label: str) -> SessionRow | None:
        """Return the session of that name or alias."""
        own = super().session(label)
        if own is not None:
            return own
        row = self._base.session(label)
        return row if row is None else self._sessions.get(row.id, row)

    def move_session(self, row: SessionRow) -> None:
        """Put a session on another step."""
        self.save_session(row)

    def session_rows(self) -> list[SessionRow]:
        """Return every session."""
        rows = {row.id: row for row in self._base.session_rows()}
        return list({**rows, **self._sessions}.values())

    def alias_rows(self) -> list[AliasRow]:
        """Return every alias."""
        return [*self._base.alias_rows(), *super().alias_rows()]

    def place(self, name: str) -> ParentRef | None:
        """Return the place of a step."""
        return super().place(name) or self._base.place(name)

    def is_taken(self, branch: str, position: int) -> bool:
        """Return True if no step can be added there."""
        return branch not in self._branches or super().is_taken(branch, position)

    def branch(self, name: str) -> BranchRow | None:
        """Return the beginning of a branch."""
        return super().branch(name) or self._base.branch(name)

    def step(self, name: str) -> StepRow | None:
        """Return the step of that id."""
        return super().step(name) or self._base.step(name)

    def tail(self, tip: str, *, floor: int, limit: int) -> list[StepFields]:
        """Return a step and those before it in its branch, newest first."""
        if tip in self._steps:
            return super().tail(tip, floor=floor, limit=limit)
        return self._base.tail(tip, floor=floor, limit=limit)

    def blob(self, digest: str) -> bytes | None:
        """Return the bytes of that address."""
        own = super().blob(digest)
        return self._base.blob(digest) if own is None else own
