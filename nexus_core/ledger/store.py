"""Rows with their ids and digests, and the protocol of a store that keeps them.

A digest over each row, and a chain of digests over the steps, are what `verify` compares. Ids sort by time: 10
characters of time and 16 random ones, as ULIDs are written.
"""

from __future__ import annotations

import os
import time
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar, runtime_checkable

from nexus_core.errors import LedgerError
from nexus_core.ledger.json_text import write_canonical_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from typing import Any

    from nexus_core.types.plugins import Finding

_ID_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_IDS_PER_BATCH = 256
"""How much chance is asked for at a time, where many names are made."""
_CHARACTERS_OF_BYTES = _ID_ALPHABET.encode() * (256 // len(_ID_ALPHABET))
"""A character for each byte, every one for as many."""
_CHARACTER_PAIRS = tuple(first + second for first in _ID_ALPHABET for second in _ID_ALPHABET)


def new_id(created: int | None = None) -> str:
    """26 characters that nobody else has; of two milliseconds, the earlier sorts first.

    Args:
        created: When it was made, in milliseconds since 1970; now, if it is not said.
    """
    number = (current_time_ms() if created is None else max(created, 0) % (1 << 50)) << 80 | int.from_bytes(
        os.urandom(10), "big"
    )
    return "".join([_CHARACTER_PAIRS[number >> shift & 1023] for shift in range(120, -1, -10)])


def new_ids() -> Iterator[str]:
    """Any number of such names, all of this moment."""
    moment = new_id()[:10]
    while True:
        chance = os.urandom(16 * _IDS_PER_BATCH).translate(_CHARACTERS_OF_BYTES).decode()
        for at in range(0, len(chance), 16):
            yield moment + chance[at : at + 16]


def current_time_ms() -> int:
    """The time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class StepRow(NamedTuple):
    """A step as it is stored: fields as those of a `Step`; messages and data as JSON, `closes` as 0 or 1."""

    id: str
    parent: str | None
    turn: str
    branch: str
    position: int
    kind: str
    closes: int
    messages: str
    tokens: int
    counter: str
    data: str
    total: int
    compaction: str | None
    created: int
    digest: str
    chain: str

    @property
    def place(self) -> ParentRef:
        """What has to be known of it to put another behind it."""
        return ParentRef(*(getattr(self, name) for name in ParentRef._fields))


class ParentRef(NamedTuple):
    """What has to be known of a step to put another behind it."""

    id: str
    turn: str
    branch: str
    position: int
    closes: int
    counter: str
    total: int
    compaction: str | None
    chain: str


class BranchRow(NamedTuple):
    """A line of steps, named after its first one.

    Attributes:
        id: Its name.
        parent: The branch it leaves, None for one that begins with nothing.
        position: Where it leaves it: the last step they have in common; -1 for none.
    """

    id: str
    parent: str | None
    position: int

    @classmethod
    def behind(cls, parent: ParentRef | StepRow | None, name: str) -> BranchRow:
        """The branch that begins with a step, by its name, behind another or behind nothing."""
        return cls(name, parent.branch, parent.position) if parent else cls(name, None, -1)


class SessionRow(NamedTuple):
    """A session as it is stored: fields as those of a `SessionRecord`, and a name that never changes."""

    id: str
    label: str
    head: str | None
    tip: str | None
    open_turn: str | None
    status: str
    origin: str
    created: int
    updated: int
    data: str
    seal: str = ""

    def sealed(self) -> SessionRow:
        """The same with its digest."""
        return SessionRow(*self[:-1], compute_row_digest(*self[:-1]))


class AliasRow(NamedTuple):
    """Another name of a session."""

    alias: str
    session: str
    created: int
    seal: str = ""

    def sealed(self) -> AliasRow:
        """The same with its digest."""
        return AliasRow(*self[:-1], compute_row_digest(*self[:-1]))


class HistoryRow(NamedTuple):
    """That a session's head was put on a step.

    Attributes:
        session: The session's lasting name.
        step: The new head.
        reason: The kind of step that closed a turn, or `create` for where it began.
        changed: When, in milliseconds since 1970.
    """

    session: str
    step: str
    reason: str
    changed: int
    seal: str = ""

    def sealed(self) -> HistoryRow:
        """The same with its digest."""
        return HistoryRow(*self[:-1], compute_row_digest(*self[:-1]))


class DeletionRow(NamedTuple):
    """The record of a deletion: what is not there any more, and is not missing.

    Attributes:
        id: Its name.
        number: Its place among all deletions of the ledger, from 1.
        session: The session that was deleted, by its lasting name; "" where only a part of one was.
        reason: Why, in the words of the person who deleted it.
        created: When, in milliseconds since 1970.
        steps, blobs: How many of each were erased.
        digest: The address of all of that, and of everything that was erased.
        chain: The digest of this deletion and all before it.
        purged: 0 until the store has overwritten the bytes that were erased, then 1; not part of the digest.
    """

    id: str
    number: int
    session: str
    reason: str
    created: int
    steps: int
    blobs: int
    digest: str = ""
    chain: str = ""
    purged: int = 0

    def chained(self, before: DeletionRow | None, erased: Iterable[ErasedRow]) -> DeletionRow:
        """The same with its digest and its place in the chain.

        Args:
            before: The deletion before it, None for the first.
            erased: Everything it erased.
        """
        facts = write_canonical_json(self[:_DELETION_FIELDS_IN_DIGEST])
        lines = "\n".join(sorted(write_canonical_json(row[1:]) for row in erased))
        digest = blake2b(f"{facts}\n{lines}".encode(), digest_size=32).hexdigest()
        return self._replace(digest=digest, chain=compute_chain_digest(before.chain if before else "", digest))


_DELETION_FIELDS_IN_DIGEST = DeletionRow._fields.index("digest")


class ErasedRow(NamedTuple):
    """Something that a deletion erased.

    Attributes:
        deletion: The deletion, by its name.
        kind: `session`, `step` or `blob`.
        name: The lasting name of the session, the id of the step or the address of the blob.
        rest: Of a step, the digest of what is left of it: everything but messages and data.
    """

    deletion: str
    kind: str
    name: str
    rest: str = ""


class Salvaged(NamedTuple):
    """What was found in a damaged store, whole or not, in any order, some of it more than once."""

    steps: Iterable[StepRow]
    sessions: Iterable[SessionRow]
    aliases: Iterable[AliasRow]
    history: Iterable[HistoryRow]
    blobs: Iterable[tuple[str, bytes]]
    deletions: Iterable[DeletionRow] = ()
    erased: Iterable[ErasedRow] = ()


NO_MESSAGES, NO_DATA = "[]", "{}"
"""Stored in place of the messages and data of an erased step."""


def erase_content(row: StepRow) -> StepRow:
    """A step without its messages and data; its digest and chain stay as they are."""
    return row._replace(messages=NO_MESSAGES, data=NO_DATA)


def is_erased(row: StepRow) -> bool:
    """True if nothing is left of a step's content, though there was some; `verify` says whether that is recorded."""
    if row.messages != NO_MESSAGES or row.data != NO_DATA:
        return False
    try:
        return compute_step_digest(row) != row.digest
    except (LedgerError, UnicodeError):  # a value of a kind that is never stored
        return False


def compute_erased_step_digest(row: StepRow) -> str:
    """The digest of everything that is left of an erased step."""
    return blake2b(write_canonical_json(row).encode(), digest_size=32).hexdigest()


def has_valid_digest(row: SessionRow | AliasRow | HistoryRow) -> bool:
    """Whether a short row is as it was written."""
    try:
        return row.sealed() == row
    except (LedgerError, UnicodeError):  # a value of a kind that is never stored
        return False


def compute_step_digest(row: StepRow) -> str:
    """The address of a step's content: what was said and known, when, in which turn, after what.

    It is that of the text as it is stored, with the order of its keys, because that is what is sent again.
    """
    facts = write_canonical_json(
        [row.id, row.parent, row.turn, row.kind, row.closes, row.tokens, row.counter, row.created]
    )
    # Line breaks inside JSON are escaped, so that no two contents give one text, whatever damage made of them.
    return blake2b(f"{facts}\n{row.messages}\n{row.data}".encode(), digest_size=32).hexdigest()


def compute_chain_digest(before: str, digest: str) -> str:
    """The digest of a step and all before it; `before` is that of its parent, "" for none."""
    return blake2b(f"{before}{digest}".encode(), digest_size=32).hexdigest()


def compute_row_digest(*facts: str | int | None) -> str:
    """A digest over the other fields of a short row."""
    return blake2b(write_canonical_json(facts).encode(), digest_size=16).hexdigest()


if TYPE_CHECKING:
    StepFields = tuple[Any, ...]
    """A StepRow, or its fields in the same order: a long history is not copied only to be named."""

T = TypeVar("T")


class LedgerStore(Protocol):
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

    def snapshot(self) -> AbstractContextManager[LedgerStore]:
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

    def place(self, name: str) -> ParentRef | None:
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

    def tail(self, tip: str, *, floor: int, limit: int) -> list[StepFields]:
        """A step and those before it in its branch, newest first: not below a position, not more than `limit`."""

    def search(self, branch: str, *, floor: int, below: int, text: str, limit: int) -> list[StepFields]:
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
class QueryableStore(LedgerStore, Protocol):
    """A store that counts, filters and joins rows itself. From one without these methods, all rows are read."""

    def newest_session_rows(self, *, status: str, text: str, limit: int) -> list[SessionRow]:
        """Return the sessions changed last, then by label.

        Args:
            status: Their status; "" for any.
            text: A text in their stored data; "" for any.
            limit: How many at most.
        """

    def session_tips(self) -> list[tuple[str, str | None, str | None, int | None]]:
        """Return a tuple for each session, in the order of `newest_session_rows`: label, tip, its branch and position.

        The last two are None if the tip is missing.
        """

    def branches_with(self, text: str) -> list[tuple[str, int]]:
        """Return the branches with a text in their stored messages, each with the first position that has it."""

    def forked_branches(self) -> list[BranchRow]:
        """Return the branches that left another."""

    def count_sessions(self, status: str) -> int:
        """Return the number of sessions of a status; "" for any."""

    def count_steps(self) -> int:
        """Return the number of steps, deleted ones included."""

    def tip_branches(self) -> list[tuple[str, str, str | None, str | None]]:
        """Return a tuple for each session with a tip: the tip, its branch, the step it left, and the branch of that.

        Sessions whose tip or the first step of whose branch is missing are left out.
        """


@runtime_checkable
class ErasableStore(LedgerStore, Protocol):
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
