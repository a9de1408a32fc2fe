"""The records a store keeps, each with a digest by which a change is noticed."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.errors import LedgerError
from nexus_core.history.ledger.texts import canonical

if TYPE_CHECKING:
    from collections.abc import Iterable


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
    def place(self) -> Place:
        """What has to be known of it to put another behind it."""
        return Place(*(getattr(self, name) for name in Place._fields))


class Place(NamedTuple):
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
    def behind(cls, parent: Place | StepRow | None, name: str) -> BranchRow:
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
        return SessionRow(*self[:-1], seal_of(*self[:-1]))


class AliasRow(NamedTuple):
    """Another name of a session."""

    alias: str
    session: str
    created: int
    seal: str = ""

    def sealed(self) -> AliasRow:
        """The same with its digest."""
        return AliasRow(*self[:-1], seal_of(*self[:-1]))


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
        return HistoryRow(*self[:-1], seal_of(*self[:-1]))


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
        facts = canonical(self[:_DELETION_FACTS])
        lines = "\n".join(sorted(canonical(row[1:]) for row in erased))
        digest = blake2b(f"{facts}\n{lines}".encode(), digest_size=32).hexdigest()
        return self._replace(digest=digest, chain=chain_of(before.chain if before else "", digest))


_DELETION_FACTS = DeletionRow._fields.index("digest")


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
        return digest_of(row) != row.digest
    except (LedgerError, UnicodeError):  # a value of a kind that is never stored
        return False


def rest_of(row: StepRow) -> str:
    """The digest of everything that is left of an erased step."""
    return blake2b(canonical(row).encode(), digest_size=32).hexdigest()


def is_sealed(row: SessionRow | AliasRow | HistoryRow) -> bool:
    """Whether a short row is as it was written."""
    try:
        return row.sealed() == row
    except (LedgerError, UnicodeError):  # a value of a kind that is never stored
        return False


def digest_of(row: StepRow) -> str:
    """The address of a step's content: what was said and known, when, in which turn, after what.

    It is that of the text as it is stored, with the order of its keys, because that is what is sent again.
    """
    facts = canonical([row.id, row.parent, row.turn, row.kind, row.closes, row.tokens, row.counter, row.created])
    # Line breaks inside JSON are escaped, so that no two contents give one text, whatever damage made of them.
    return blake2b(f"{facts}\n{row.messages}\n{row.data}".encode(), digest_size=32).hexdigest()


def chain_of(before: str, digest: str) -> str:
    """The digest of a step and all before it; `before` is that of its parent, "" for none."""
    return blake2b(f"{before}{digest}".encode(), digest_size=32).hexdigest()


def seal_of(*facts: str | int | None) -> str:
    """A digest over the other fields of a short row."""
    return blake2b(canonical(facts).encode(), digest_size=16).hexdigest()
