"""What a place to keep rows must be able to do, for `StoreLedger` to make a ledger of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from typing import Any

    from nexus_core.history.ledger.rows import (
        AliasRow,
        BranchRow,
        DeletionRow,
        ErasedRow,
        HistoryRow,
        Place,
        Salvaged,
        SessionRow,
        StepRow,
    )
    from nexus_core.values.finding import Finding

    Record = tuple[Any, ...]
    """A StepRow, or its fields in the same order: a long history is not copied only to be named."""

T = TypeVar("T")


class Store(Protocol):
    """Keeps rows. Its methods are called inside `read` or `write`, from any thread; those after `blob` on a snapshot.

    Attributes:
        url: Where it is.
    """

    url: str

    def read(self, work: Callable[[], T]) -> T:
        """Do something that only looks."""

    def write(self, work: Callable[[], T], *, session: str = "") -> T:
        """Do something in one transaction: all of it is durable when this returns, or nothing of it is there.

        Args:
            work: May be called again when the transaction could not be finished.
            session: The name of the session it is about, for stores that lock each by itself.
        """

    def snapshot(self) -> AbstractContextManager[Store]:
        """The store as it is now, whatever is added meanwhile; made to be read by `verify`, damaged or not."""

    def close(self) -> None:
        """Let go of it; a second call does nothing."""

    def session(self, label: str) -> SessionRow | None:
        """The session of that name, else the one of that alias."""

    def save_session(self, row: SessionRow) -> None:
        """Add it, or put it in the place of the one with its id."""

    def move_session(self, row: SessionRow) -> None:
        """Put a session that is there on another step; its name, status and data are what they were."""

    def add_alias(self, row: AliasRow) -> None:
        """Add another name."""

    def drop_alias(self, alias: str) -> None:
        """Take a name away."""

    def add_history(self, rows: Sequence[HistoryRow]) -> None:
        """Note where heads were put."""

    def place(self, name: str) -> Place | None:
        """Where a step stands."""

    def is_taken(self, branch: str, position: int) -> bool:
        """Whether a step stands there."""

    def add_branch(self, row: BranchRow) -> None:
        """Begin a branch."""

    def branch(self, name: str) -> BranchRow | None:
        """Where a branch begins."""

    def add_steps(self, rows: Sequence[StepRow]) -> None:
        """Add steps that follow each other to the end of their branches."""

    def step(self, name: str) -> StepRow | None:
        """The step of that id."""

    def tail(self, tip: str, *, floor: int, limit: int) -> list[Record]:
        """A step and those before it in its branch, newest first: not below a position, not more than `limit`."""

    def search(self, branch: str, *, floor: int, below: int, text: str, limit: int) -> list[Record]:
        """The steps of a branch between two positions whose stored messages contain a text, newest first."""

    def add_blob(self, digest: str, content: bytes) -> None:
        """Keep bytes, unless they are there already."""

    def blob(self, digest: str) -> bytes | None:
        """The bytes of that address."""

    def session_rows(self) -> list[SessionRow]:
        """Every session."""

    def alias_rows(self) -> list[AliasRow]:
        """Every alias."""

    def history_rows(self, session: str | None = None) -> Iterator[HistoryRow]:
        """Every note on a head, or those of one session by its lasting name."""

    def branch_rows(self) -> list[BranchRow]:
        """Every branch."""

    def step_rows(self) -> Iterator[StepRow]:
        """Every step, branch by branch, in order of position."""

    def blob_rows(self) -> Iterator[tuple[str, bytes]]:
        """Every blob."""

    def damage(self, session: str | None = None) -> Iterable[Finding]:
        """Return defects of the file or database itself; with a session's id, only those that concern it."""

    def salvage(self) -> Salvaged:
        """Everything that can still be read, whole or not."""


@runtime_checkable
class ErasableStore(Store, Protocol):
    """A store from which a session can be deleted. A store without these methods is a whole store all the same.

    Attributes:
        erasure_note: What the store's own files may still keep after a deletion, for the user; "" for nothing.
    """

    erasure_note: str

    def wait_for_writers(self) -> None:
        """Inside `write`: let no other writer in until the transaction ends, and wait for those that have begun."""

    def add_deletion(self, row: DeletionRow, erased: Sequence[ErasedRow]) -> None:
        """Record a deletion, and everything it erases."""

    def erase_steps(self, names: Sequence[str]) -> None:
        """Replace messages and data of steps by `NO_MESSAGES` and `NO_DATA`; all else stays."""

    def drop_blobs(self, digests: Sequence[str]) -> None:
        """Remove blobs."""

    def drop_session(self, name: str) -> None:
        """Remove a session by its lasting name, with its label, its aliases and the notes on its heads."""

    def purge(self) -> bool:
        """After a deletion: overwrite what was erased, as far as the store can; True when that is done."""

    def copies(self) -> list[str]:
        """Copies of an older schema that a migration left, and that have what was erased since."""

    def deletion_rows(self) -> list[DeletionRow]:
        """Every deletion, in the order of their numbers."""

    def erased_rows(self) -> Iterator[ErasedRow]:
        """Everything that was erased, deletion by deletion."""

    def erased(self, kind: str, name: str) -> list[ErasedRow]:
        """The records of one thing that was erased."""
