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
    """A ledger in memory."""

    def __init__(self, *, now: Callable[[], int] = time_now, name: Callable[[int], str] = new_id) -> None:
        super().__init__(MemoryStore(), now=now, name=name)


class MemoryStore:
    """Rows in dictionaries, under one lock."""

    url = MEMORY_URL
    erasure_note = ""

    def __init__(self) -> None:
        self._lock = RLock()
        self._sessions: dict[str, SessionRow] = {}
        self._labels: dict[str, str] = {}
        self._aliases: dict[str, AliasRow] = {}
        self._history: list[HistoryRow] = []
        self._branches: dict[str, BranchRow] = {}
        self._branch_steps: dict[str, list[StepRow]] = {}
        self._steps: dict[str, StepRow] = {}
        self._blobs: dict[str, bytes] = {}
        self._deletions: list[DeletionRow] = []
        self._erased: list[ErasedRow] = []

    def read(self, work: Callable[[], T]) -> T:
        """Call a function that reads rows, and return its result."""
        with self._lock:
            return work()

    def write(self, work: Callable[[], T], *, session: str = "") -> T:  # noqa: ARG002 - there is one lock for all
        """Call a function under the lock, without rollback.

        `StoreLedger` raises before it changes rows.
        """
        with self._lock:
            return work()

    @contextmanager
    def snapshot(self) -> Iterator[MemoryStore]:
        """Yield the store itself, locked."""
        with self._lock:
            yield self

    def close(self) -> None:
        """Do nothing: there is no file or connection."""

    def session(self, label: str) -> SessionRow | None:
        """Return the session with that label, else the one with that alias, else None."""
        name = self._labels.get(label)
        if name is None and label in self._aliases:
            name = self._aliases[label].session
        return None if name is None else self._sessions[name]

    def save_session(self, row: SessionRow) -> None:
        """Insert a session, or replace the one with its id."""
        before = self._sessions.get(row.id)
        if before is not None:
            del self._labels[before.label]
        self._labels[row.label] = row.id
        self._sessions[row.id] = row

    def move_session(self, row: SessionRow) -> None:
        """Update head, tip and open turn of an existing session."""
        self._sessions[row.id] = row

    def add_alias(self, row: AliasRow) -> None:
        """Insert an alias."""
        self._aliases[row.alias] = row

    def drop_alias(self, alias: str) -> None:
        """Delete an alias."""
        del self._aliases[alias]

    def add_history(self, rows: Sequence[HistoryRow]) -> None:
        """Insert head changes."""
        self._history += rows

    def place(self, name: str) -> ParentRef | None:
        """Return the fields of a step that the next one depends on, or None."""
        row = self._steps.get(name)
        return None if row is None else row.place

    def is_taken(self, branch: str, position: int) -> bool:
        """Return True if a branch has a step at a position."""
        return position < self._find_next_position(branch)

    def add_branch(self, row: BranchRow) -> None:
        """Insert a branch."""
        self._branches[row.id] = row
        self._branch_steps[row.id] = []

    def branch(self, name: str) -> BranchRow | None:
        """Return the branch with that id, or None."""
        return self._branches.get(name)

    def add_steps(self, rows: Sequence[StepRow]) -> None:
        """Append consecutive steps to the end of their branches."""
        for row in rows:
            self._branch_steps[row.branch].append(row)
            self._steps[row.id] = row

    def step(self, name: str) -> StepRow | None:
        """Return the step with that id, or None."""
        return self._steps.get(name)

    def tail(self, tip: str, *, floor: int, limit: int) -> list[StepFields]:
        """Return steps of a branch from `tip` down to a position, newest first."""
        row = self._steps.get(tip)
        if row is None:
            return []
        begin = self._branches[row.branch].position + 1
        lowest = max(floor, begin, row.position + 1 - limit)
        return [*reversed(self._branch_steps[row.branch][lowest - begin : row.position + 1 - begin])]

    def search(self, branch: str, *, floor: int, below: int, text: str, limit: int) -> list[StepFields]:
        """Return steps of a branch whose stored messages contain a text, newest first."""
        begin = self._branches[branch].position + 1
        rows = self._branch_steps[branch][max(floor - begin, 0) : max(below - begin, 0)]
        return [*islice((row for row in reversed(rows) if text in row.messages), limit)]

    def add_blob(self, digest: str, content: bytes) -> None:
        """Insert a blob unless it exists."""
        self._blobs.setdefault(digest, bytes(content))

    def blob(self, digest: str) -> bytes | None:
        """Return the blob with that digest, or None."""
        return self._blobs.get(digest)

    def session_rows(self) -> list[SessionRow]:
        """Return all sessions."""
        return list(self._sessions.values())

    def alias_rows(self) -> list[AliasRow]:
        """Return all aliases."""
        return list(self._aliases.values())

    def history_rows(self, session: str | None = None) -> Iterator[HistoryRow]:
        """Yield all head changes, or those of one session by its id."""
        return iter(tuple(row for row in self._history if session in (None, row.session)))

    def branch_rows(self) -> list[BranchRow]:
        """Return all branches."""
        return list(self._branches.values())

    def step_rows(self) -> Iterator[StepRow]:
        """Yield all steps, branch by branch, in order of position."""
        for name in sorted(self._branch_steps):
            yield from tuple(self._branch_steps[name])

    def blob_rows(self) -> Iterator[tuple[str, bytes]]:
        """Yield all blobs with their digests."""
        yield from sorted(self._blobs.items())

    def damage(self, _session: str | None = None) -> list[Finding]:
        """Return no findings."""
        return []

    def salvage(self) -> Salvaged:
        """Return all rows."""
        steps, history = tuple(self.step_rows()), tuple(self.history_rows())
        blobs = tuple(self.blob_rows())
        erased = tuple(self._erased)
        return Salvaged(steps, self.session_rows(), self.alias_rows(), history, blobs, self.deletion_rows(), erased)

    def wait_for_writers(self) -> None:
        """Do nothing: all writers share one lock."""

    def add_deletion(self, row: DeletionRow, erased: Sequence[ErasedRow]) -> None:
        """Insert a deletion and the rows of everything it erases."""
        self._deletions.append(row)
        self._erased += erased

    def erase_steps(self, names: Sequence[str]) -> None:
        """Replace the messages and data of steps by `NO_MESSAGES` and `NO_DATA`."""
        for name in names:
            row = self._steps[name] = erase_content(self._steps[name])
            self._branch_steps[row.branch][row.position - self._branches[row.branch].position - 1] = row

    def drop_blobs(self, digests: Sequence[str]) -> None:
        """Delete blobs."""
        for digest in digests:
            self._blobs.pop(digest, None)

    def drop_session(self, name: str) -> None:
        """Delete a session by its id, with its label, its aliases and its head changes."""
        del self._labels[self._sessions.pop(name).label]
        self._aliases = {alias: row for alias, row in self._aliases.items() if row.session != name}
        self._history = [row for row in self._history if row.session != name]

    def purge(self) -> bool:
        """Mark all deletions as purged."""
        self._deletions = [row._replace(purged=1) for row in self._deletions]
        return True

    def copies(self) -> list[str]:
        """Return no backups."""
        return []

    def deletion_rows(self) -> list[DeletionRow]:
        """Return all deletions in the order of their numbers."""
        return sorted(self._deletions, key=lambda row: row.number)

    def erased_rows(self) -> Iterator[ErasedRow]:
        """Yield the rows of all erased content, deletion by deletion."""
        return iter(sorted(self._erased))

    def erased(self, kind: str, name: str) -> list[ErasedRow]:
        """Return the rows of one erased session, step or blob."""
        return [row for row in self._erased if (row.kind, row.name) == (kind, name)]

    def _find_next_position(self, branch: str) -> int:
        return self._branches[branch].position + 1 + len(self._branch_steps[branch])


class DryRunLedger(StoreLedger):
    """A ledger for dry runs: another ledger, with additions in memory.

    Args:
        base: The other ledger, which is only read.
    """

    def __init__(self, base: StoreLedger) -> None:
        super().__init__(DryRunStore(base.store))


class DryRunStore(MemoryStore):
    """New rows in memory, all others from a store that is only read.

    A step after one of that store begins a new branch, so that no branch is divided between the two.
    """

    def __init__(self, base: LedgerStore) -> None:
        super().__init__()
        self.url = base.url
        self._base = base

    def read(self, work: Callable[[], T]) -> T:
        """Call a function that reads rows, and return its result."""
        return self._base.read(work)

    def write(self, work: Callable[[], T], *, session: str = "") -> T:  # noqa: ARG002 - nothing is written there
        """Call a function that adds rows in memory. The other store is only read."""
        return self._base.read(work)

    def close(self) -> None:
        """Do nothing: the owner of the other store closes it."""

    def session(self, label: str) -> SessionRow | None:
        """Return the session with that label or alias, or None."""
        own = super().session(label)
        if own is not None:
            return own
        row = self._base.session(label)
        return row if row is None else self._sessions.get(row.id, row)

    def move_session(self, row: SessionRow) -> None:
        """Update head, tip and open turn of a session."""
        self.save_session(row)

    def session_rows(self) -> list[SessionRow]:
        """Return all sessions."""
        rows = {row.id: row for row in self._base.session_rows()}
        return list({**rows, **self._sessions}.values())

    def alias_rows(self) -> list[AliasRow]:
        """Return all aliases."""
        return [*self._base.alias_rows(), *super().alias_rows()]

    def place(self, name: str) -> ParentRef | None:
        """Return the fields of a step that the next one depends on, or None."""
        return super().place(name) or self._base.place(name)

    def is_taken(self, branch: str, position: int) -> bool:
        """Return True if a position is occupied, or in a branch of the other store."""
        return branch not in self._branches or super().is_taken(branch, position)

    def branch(self, name: str) -> BranchRow | None:
        """Return the branch with that id, or None."""
        return super().branch(name) or self._base.branch(name)

    def step(self, name: str) -> StepRow | None:
        """Return the step with that id, or None."""
        return super().step(name) or self._base.step(name)

    def tail(self, tip: str, *, floor: int, limit: int) -> list[StepFields]:
        """Return steps of a branch from `tip` down to a position, newest first."""
        if tip in self._steps:
            return super().tail(tip, floor=floor, limit=limit)
        return self._base.tail(tip, floor=floor, limit=limit)

    def blob(self, digest: str) -> bytes | None:
        """Return the blob with that digest, or None."""
        own = super().blob(digest)
        return self._base.blob(digest) if own is None else own
