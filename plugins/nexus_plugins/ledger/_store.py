"""Rows in a database: what SQLite and PostgreSQL do alike."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self, TypeVar

from nexus_core.plugin import AliasRow, BranchRow, HistoryRow, LedgerError, Place, Salvaged, SessionRow, StepRow
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

    def move_session(self, row: SessionRow) -> None:
        """Put a session that is there on another step."""
        self.run(sql.MOVE_SESSION, row.head, row.tip, row.open_turn, row.updated, row.seal, row.id)

    def add_alias(self, row: AliasRow) -> None:
        """Add another name."""
        self.run(sql.ADD_ALIAS, *row)

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

    def history_rows(self) -> Iterator[HistoryRow]:
        """Every note on a head."""
        for row in self.fetch(sql.HISTORY):
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

    def salvage(self) -> Salvaged:
        """Everything that the database hands out."""
        return Salvaged(
            [*self.step_rows()],
            self.session_rows(),
            self.alias_rows(),
            [*self.history_rows()],
            [*self.blob_rows()],
        )

    def _next_branch(self, branch: str) -> str | None:
        following: str | None = self.fetch(sql.NEXT_BRANCH, branch)[0][0]
        return following


class StillRows(Rows):
    """The rows of a moment, by a connection of their own; whoever has them only looks."""

    def read(self, work: Callable[[], T]) -> T:
        """Do something that only looks."""
        return work()

    def write(self, work: Callable[[], T], *, session: str = "") -> T:
        """Nothing is changed through them."""
        raise NotImplementedError(work, session)

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
