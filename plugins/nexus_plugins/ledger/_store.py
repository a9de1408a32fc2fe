"""Rows in a database: what SQLite and PostgreSQL do alike."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self, TypeVar

from nexus_core import Finding
from nexus_core.plugin import (
    AliasRow,
    BranchRow,
    DeletionRow,
    ErasedRow,
    HistoryRow,
    LedgerError,
    Place,
    Salvaged,
    SessionRow,
    StepRow,
)
from nexus_plugins.ledger import _statements as sql

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

T = TypeVar("T")

_AT_ONCE = 500
"""So many steps are fetched in one go where all are wanted."""


class Rows(ABC):
    """The rows of a store, over anything that runs the statements."""

    @abstractmethod
    def fetch(self, statement: str, *bound: object) -> list[Any]:
        """What a statement finds, as tuples."""

    @abstractmethod
    def run(self, statement: str, *bound: object) -> None:
        """Run a statement that changes something."""

    @abstractmethod
    def run_many(self, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Run such a statement for each row."""

    def session(self, label: str) -> SessionRow | None:
        """The session of that name, else the one of that alias."""
        found = self.fetch(sql.SESSION, label) or self.fetch(sql.SESSION_BY_ALIAS, label)
        return SessionRow(*found[0]) if found else None

    def save_session(self, row: SessionRow) -> None:
        """Add it, or put it in the place of the one with its id."""
        self.run(sql.SAVE_SESSION, *row)
        self.run(sql.ADD_NAME, row.label, row.id)

    def move_session(self, row: SessionRow) -> None:
        """Put a session that is there on another step."""
        self.run(sql.MOVE_SESSION, row.head, row.tip, row.open_turn, row.updated, row.seal, row.id)

    def add_alias(self, row: AliasRow) -> None:
        """Add another name."""
        self.run(sql.ADD_ALIAS, *row)
        self.run(sql.ADD_NAME, row.alias, row.session)

    def drop_alias(self, alias: str) -> None:
        """Take a name away."""
        self.run(sql.DROP_ALIAS, alias)

    def add_history(self, rows: Sequence[HistoryRow]) -> None:
        """Note where heads were put."""
        self.run_many(sql.ADD_HISTORY, rows)

    def place(self, name: str) -> Place | None:
        """Where a step stands."""
        found = self.fetch(sql.PLACE, name)
        return Place(*found[0]) if found else None

    def is_taken(self, branch: str, position: int) -> bool:
        """Whether a step stands there."""
        return bool(self.fetch(sql.TAKEN, branch, position))

    def add_branch(self, row: BranchRow) -> None:
        """Begin a branch."""
        self.run(sql.ADD_BRANCH, *row)

    def branch(self, name: str) -> BranchRow | None:
        """Where a branch begins."""
        found = self.fetch(sql.BRANCH, name)
        return BranchRow(*found[0]) if found else None

    def add_steps(self, rows: Sequence[StepRow]) -> None:
        """Add steps that follow each other to the end of their branches."""
        self.run_many(sql.ADD_STEP, rows)

    def step(self, name: str) -> StepRow | None:
        """The step of that id."""
        found = self.fetch(sql.STEP, name)
        return StepRow(*found[0]) if found else None

    def tail(self, tip: str, *, floor: int, limit: int) -> list[tuple[Any, ...]]:
        """A step and those before it in its branch, newest first: not below a position, not more than `limit`."""
        return self.fetch(sql.TAIL, tip, tip, floor, limit)

    def search(self, branch: str, *, floor: int, below: int, text: str, limit: int) -> list[tuple[Any, ...]]:
        """The steps of a branch between two positions whose stored messages contain a text, newest first."""
        return self.fetch(sql.SEARCH, branch, floor, below, text, limit)

    def add_blob(self, digest: str, content: bytes) -> None:
        """Keep bytes, unless they are there already."""
        self.run(sql.ADD_BLOB, digest, content)

    def blob(self, digest: str) -> bytes | None:
        """The bytes of that address."""
        found = self.fetch(sql.BLOB, digest)
        content: bytes | None = found[0][0] if found else None
        return content

    def session_rows(self) -> list[SessionRow]:
        """Every session."""
        return [SessionRow(*row) for row in self.fetch(sql.SESSIONS)]

    def alias_rows(self) -> list[AliasRow]:
        """Every alias."""
        return [AliasRow(*row) for row in self.fetch(sql.ALIASES)]

    def history_rows(self, session: str | None = None) -> Iterator[HistoryRow]:
        """Every note on a head, or those of one session by its lasting name."""
        for row in self.fetch(sql.HISTORY) if session is None else self.fetch(sql.HISTORY_OF, session):
            yield HistoryRow(*row)

    def branch_rows(self) -> list[BranchRow]:
        """Every branch."""
        return [BranchRow(*row) for row in self.fetch(sql.BRANCHES)]

    def step_rows(self) -> Iterator[StepRow]:
        """Every step, branch by branch, in order of position."""
        branch = self._next_branch("")
        while branch is not None:
            position = -1
            while rows := self.fetch(sql.STEPS_AFTER, branch, position, _AT_ONCE):
                for row in rows:
                    yield StepRow(*row)
                position = _farther(position, rows[-1][4])
            following = self._next_branch(branch)
            branch = None if following is None else _farther(branch, following)

    def blob_rows(self) -> Iterator[tuple[str, bytes]]:
        """Every blob."""
        digest = ""
        while found := self.fetch(sql.NEXT_BLOB, digest):
            ((following, content),) = found
            digest = _farther(digest, following)
            yield digest, content if isinstance(content, bytes) else b""  # where it is damaged

    def add_deletion(self, row: DeletionRow, erased: Sequence[ErasedRow]) -> None:
        """Record a deletion, and everything it erases."""
        self.run(sql.ADD_DELETION, *row)
        self.run_many(sql.ADD_ERASED, erased)

    def erase_steps(self, names: Sequence[str]) -> None:
        """Replace messages and data of steps by nothing; a trigger refuses those that no deletion records."""
        self.run_many(sql.ERASE_STEP, [(name,) for name in names])

    def drop_blobs(self, digests: Sequence[str]) -> None:
        """Remove blobs."""
        self.run_many(sql.DROP_BLOB, [(digest,) for digest in digests])

    def drop_session(self, name: str) -> None:
        """Remove a session by its lasting name, with its label, its aliases and the notes on its heads."""
        for statement in sql.DROP_SESSION:
            self.run(statement, name)

    def deletion_rows(self) -> list[DeletionRow]:
        """Every deletion, in the order of their numbers."""
        return [DeletionRow(*row) for row in self.fetch(sql.DELETIONS)]

    def erased_rows(self) -> Iterator[ErasedRow]:
        """Everything that was erased, deletion by deletion."""
        for row in self.fetch(sql.ALL_ERASED):
            yield ErasedRow(*row)

    def erased(self, kind: str, name: str) -> list[ErasedRow]:
        """The records of one thing that was erased."""
        return [ErasedRow(*row) for row in self.fetch(sql.ERASED, kind, name)]

    def salvage(self) -> Salvaged:
        """Everything that the database hands out."""
        return Salvaged(
            [*self.step_rows()],
            self.session_rows(),
            self.alias_rows(),
            [*self.history_rows()],
            [*self.blob_rows()],
            self.deletion_rows(),
            [*self.erased_rows()],
        )

    def _next_branch(self, branch: str) -> str | None:
        following: str | None = self.fetch(sql.NEXT_BRANCH, branch)[0][0]
        return following


class StillRows(Rows):
    """The rows of a moment, by a connection of their own; whoever has them only looks."""

    erasure_note = ""

    def read(self, work: Callable[[], T]) -> T:
        """Do something that only looks."""
        return work()

    def write(self, work: Callable[[], T], *, session: str = "") -> T:
        """Nothing is changed through them."""
        raise NotImplementedError(work, session)

    def wait_for_writers(self) -> None:
        """Nothing is changed through them."""
        raise NotImplementedError

    def copies(self) -> list[str]:
        """Nothing is deleted through them."""
        raise NotImplementedError

    def purge(self) -> bool:
        """Nothing is changed through them."""
        raise NotImplementedError

    def name_findings(self, session: str | None = None) -> Iterator[Finding]:
        """Return the sessions and aliases that are gone or were added behind the ledger's back.

        Args:
            session: Only what concerns that session, by its lasting name.
        """
        for name, owner, label in self.fetch(sql.NAMES_LOST):
            if session in (None, owner) and label is None:
                yield Finding("session-missing", f"session {name!r} is gone")
            elif session in (None, owner):
                yield Finding("session-changed", f"session {label!r}: its other name {name!r} is gone")
        for name, owner in self.fetch(sql.NAMES_ADDED):
            if session in (None, owner):
                yield Finding("session-changed", f"session {name!r}: the name was not given by Nexus")

    def run(self, statement: str, *bound: object) -> None:
        """Nothing is changed through them."""
        raise NotImplementedError(statement, bound)

    def run_many(self, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Nothing is changed through them."""
        raise NotImplementedError(statement, rows)

    @contextmanager
    def snapshot(self) -> Iterator[Self]:
        """They are one."""
        yield self


def _farther(before: Any, after: Any) -> Any:  # noqa: ANN401 - what rows are ordered by, or what damage made of it
    """Where to go on; in a damaged index, what comes next may not come after, and there would be no end."""
    if type(before) is not type(after) or after <= before:
        raise LedgerError(f"it is damaged: {after!r} comes after {before!r}")
    return after
