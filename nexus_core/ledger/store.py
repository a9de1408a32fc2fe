"""Rows with their ids and digests, the JSON and text in them, and the protocol of a store for them.

Each row has a digest, and steps have a digest chain, which `verify` recomputes. Ids are ULIDs, which sort by time: 10
characters of time and 16 random ones.
"""

from __future__ import annotations

import json
import os
import time
from json import encoder
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, runtime_checkable

from nexus_core.deprecation import renamed_attribute
from nexus_core.dialects.fields import read_text
from nexus_core.errors import LedgerError, UsageError
from nexus_core.text.safety import repair_surrogates
from nexus_core.types.base import blake2b

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from nexus_core.types.plugins import Finding

MAX_LABEL_CHARACTERS = 500
"""Maximum characters of a session's label. Longer ones do not fit into the index of every database."""


def _build_encoder(*, sort_keys: bool) -> Callable[[object], str]:
    """Return a function that serializes JSON.

    `json.dumps` would build its encoder anew for each text, three times a step.
    """
    plain = encoder.JSONEncoder(sort_keys=sort_keys, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    make: Any = getattr(encoder, "c_make_encoder", None)
    if make is None:  # another Python than CPython
        return plain.encode
    options = (sort_keys, plain.skipkeys, plain.allow_nan)
    pieces = make(None, plain.default, encoder.encode_basestring, None, ":", ",", *options)
    return lambda value: "".join(pieces(value, 0))


_encode_in_order, _encode_sorted = _build_encoder(sort_keys=False), _build_encoder(sort_keys=True)


def write_json(value: object, what: str = "data") -> str:
    """Serialize JSON as stored: keys in their order, no blanks, no ASCII escapes.

    Surrogates are joined or become U+FFFD. Numbers that are not finite become `"NaN"`, `"Infinity"` and `"-Infinity"`.

    Args:
        value: The value.
        what: Its name in the error.

    Raises:
        LedgerError: It contains a value of a type that JSON does not have.
    """
    return _encode(value, what, _encode_in_order)


_decoder: Any = json.JSONDecoder()
_scan: Callable[[str, int], tuple[Any, int]] = _decoder.scan_once


def parse_json(text: str) -> Any:  # noqa: ANN401 - JSON has many types
    """Parse stored JSON like `json.loads`.

    It needs two thirds of the time for the short texts of most steps.

    Raises:
        ValueError: It is not JSON.
        RecursionError: It is nested too deeply.
    """
    try:
        value, end = _scan(text, 0)
    except (StopIteration, TypeError):  # it begins with a blank, or is not text
        return json.loads(text)
    return value if end == len(text) else json.loads(text)


def write_canonical_json(value: object, what: str = "data") -> str:
    """Serialize JSON with sorted keys, so that equal values give the same text."""
    return _encode(value, what, _encode_sorted)


def clean_text(text: str) -> str:
    """Return a short text as it is stored: NUL and surrogates become U+FFFD."""
    return (text if text.isascii() else repair_surrogates(text)).replace("\0", "\ufffd")


def normalize_label(text: str) -> str:
    """Return the label of a session as it is stored.

    Raises:
        UsageError: It is empty or too long.
    """
    label = clean_text(text)
    if not label.strip():
        raise UsageError("a session needs a name", hint="give it a label such as 'release-notes'")
    if len(label) > MAX_LABEL_CHARACTERS:
        raise UsageError(f"a session's name has at most {MAX_LABEL_CHARACTERS} characters, not {len(label)}")
    return label


def read_label(value: object) -> str:
    """Return a session name in its stored form.

    Raises:
        UsageError: The name is not a text, is empty or is too long.
    """
    return normalize_label(read_text(value, "the name of a session", hint="give it a label such as 'release-notes'"))


def _encode(value: object, what: str, encode: Callable[[object], str]) -> str:
    try:
        text = encode(value)
        if not text.isascii():
            text.encode()
    except (TypeError, ValueError, RecursionError):
        return _encode_repaired(value, what, encode)
    return text


def _encode_repaired(value: object, what: str, encode: Callable[[object], str]) -> str:
    """Serialize a value with surrogates or with numbers that are not finite."""
    try:
        text = repair_surrogates(encode(_replace_non_finite(value)))
        return encode(json.loads(text))  # repaired keys may be equal, or sort differently
    except (TypeError, ValueError, RecursionError) as error:
        hint = "give dicts, lists, text and numbers"
        raise LedgerError(f"{what} cannot be written as JSON: {error}", hint=hint) from None


def _replace_non_finite(value: Any) -> Any:  # noqa: ANN401 - JSON has many types
    if isinstance(value, float) and not isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"  # noqa: PLR0124 - NaN differs from itself
    if isinstance(value, dict):
        return {key: _replace_non_finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_replace_non_finite(item) for item in value]
    return value


_ID_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_FIRST_BATCH_IDS, _MAX_BATCH_IDS = 256, 1 << 16
"""Ids for which random bytes are requested at once: few for a short session, many for one of 100 MB."""
_CHARACTERS_OF_BYTES = _ID_ALPHABET.encode() * (256 // len(_ID_ALPHABET))
"""A character for each byte value, evenly distributed."""
_CHARACTER_PAIRS = tuple(first + second for first in _ID_ALPHABET for second in _ID_ALPHABET)


def new_id(created: int | None = None) -> str:
    """Return a new ULID: 26 characters, unique, sorted by time.

    Args:
        created: The time, in milliseconds since 1970; None for now.
    """
    number = (current_time_ms() if created is None else max(created, 0) % (1 << 50)) << 80 | int.from_bytes(
        os.urandom(10), "big"
    )
    return "".join([_CHARACTER_PAIRS[number >> shift & 1023] for shift in range(120, -1, -10)])


def new_ids() -> Iterator[str]:
    """Yield any number of new ULIDs with the time of the call, sorted in batches, of which each is twice as large.

    A database adds sorted ids to its index page by page. Each of many random ones changes another page.
    """
    prefix = new_id()[:10]
    size = _FIRST_BATCH_IDS
    while True:
        characters = os.urandom(16 * size).translate(_CHARACTERS_OF_BYTES).decode()
        yield from sorted([prefix + characters[at : at + 16] for at in range(0, len(characters), 16)])
        size = min(2 * size, _MAX_BATCH_IDS)


def current_time_ms() -> int:
    """Return the time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class StepRow(NamedTuple):
    """A stored step: a `Step` with messages and data as JSON, and `closes` as 0 or 1."""

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
        """The fields that the row of the next step depends on."""
        return ParentRef(*(getattr(self, name) for name in ParentRef._fields))


class ParentRef(NamedTuple):
    """The fields of a step that the row of the next step depends on."""

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
    """A branch: a sequence of steps, each the parent of the next.

    Attributes:
        id: The id of its first step.
        parent: The branch it was forked from; None for a new one.
        position: The position of the last step they have in common; -1 for none.
    """

    id: str
    parent: str | None
    position: int

    @classmethod
    def behind(cls, parent: ParentRef | StepRow | None, name: str) -> BranchRow:
        """Return the branch whose first step is `name`, forked after `parent` or new."""
        return cls(name, parent.branch, parent.position) if parent else cls(name, None, -1)


class SessionRow(NamedTuple):
    """A stored session: a `SessionRecord` with a permanent id and a digest (`seal`)."""

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

    def with_digest(self) -> SessionRow:
        """Return the row with its digest."""
        return SessionRow(*self[:-1], compute_row_digest(*self[:-1]))


class AliasRow(NamedTuple):
    """A stored alias of a session, by its id."""

    alias: str
    session: str
    created: int
    seal: str = ""

    def with_digest(self) -> AliasRow:
        """Return the row with its digest."""
        return AliasRow(*self[:-1], compute_row_digest(*self[:-1]))


class HistoryRow(NamedTuple):
    """A change of a session's head.

    Attributes:
        session: The id of the session.
        step: The new head.
        reason: The kind of the step, which closed a turn; `create` for the first head of a fork.
        changed: The time, in milliseconds since 1970.
        seal: The digest of the row.
    """

    session: str
    step: str
    reason: str
    changed: int
    seal: str = ""

    def with_digest(self) -> HistoryRow:
        """Return the row with its digest."""
        return HistoryRow(*self[:-1], compute_row_digest(*self[:-1]))


class DeletionRow(NamedTuple):
    """A recorded deletion, by which `verify` distinguishes erased from lost content.

    Attributes:
        id: Its id.
        number: Its number among the deletions of the ledger, from 1.
        session: The id of the deleted session; "" if only a part of one was deleted.
        reason: The reason that the user gave.
        created: The time, in milliseconds since 1970.
        steps, blobs: The numbers of erased steps and blobs.
        digest: The digest of these fields and of the rows of everything that was erased.
        chain: The digest of this deletion and all before it.
        purged: 1 once the store has overwritten the erased bytes, else 0; not part of the digest.
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

    def with_chain(self, before: DeletionRow | None, erased: Iterable[ErasedRow]) -> DeletionRow:
        """Return the row with its digest and its chain digest.

        Args:
            before: The deletion before it; None for the first.
            erased: The rows of everything it erased.
        """
        fields = write_canonical_json(self[:_DELETION_FIELDS_IN_DIGEST])
        lines = "\n".join(sorted(write_canonical_json(row[1:]) for row in erased))
        digest = blake2b(f"{fields}\n{lines}".encode(), digest_size=32).hexdigest()
        return self._replace(digest=digest, chain=compute_chain_digest(before.chain if before else "", digest))


_DELETION_FIELDS_IN_DIGEST = DeletionRow._fields.index("digest")


class ErasedRow(NamedTuple):
    """A session, step or blob that a deletion erased.

    Attributes:
        deletion: The id of the deletion.
        kind: `session`, `step` or `blob`.
        name: The id of the session or step, or the digest of the blob.
        rest: The digest of what is left of a step, which is everything but messages and data; else "".
    """

    deletion: str
    kind: str
    name: str
    rest: str = ""


class Salvaged(NamedTuple):
    """Rows of a damaged store, intact or not, in any order, some in several versions."""

    steps: Iterable[StepRow]
    sessions: Iterable[SessionRow]
    aliases: Iterable[AliasRow]
    history: Iterable[HistoryRow]
    blobs: Iterable[tuple[str, bytes]]
    deletions: Iterable[DeletionRow] = ()
    erased: Iterable[ErasedRow] = ()


_RENAMED_METHODS: dict[type, tuple[str, str]] = {
    SessionRow: ("sealed", "with_digest"),
    AliasRow: ("sealed", "with_digest"),
    HistoryRow: ("sealed", "with_digest"),
    DeletionRow: ("chained", "with_chain"),
}
for _class, (_old, _new) in _RENAMED_METHODS.items():
    setattr(_class, _old, renamed_attribute(_class.__name__, _old, _new))

NO_MESSAGES, NO_DATA = "[]", "{}"
"""Stored in place of the messages and data of an erased step."""


def erase_content(row: StepRow) -> StepRow:
    """Return a step without its messages and data, but with its digest and chain."""
    return row._replace(messages=NO_MESSAGES, data=NO_DATA)


def is_erased(row: StepRow) -> bool:
    """Return True if a step is empty, but its digest is that of some content.

    `verify` checks that a deletion records it.
    """
    if row.messages != NO_MESSAGES or row.data != NO_DATA:
        return False
    try:
        return compute_step_digest(row) != row.digest
    except (LedgerError, UnicodeError):  # a value of a type that is never stored
        return False


def compute_erased_step_digest(row: StepRow) -> str:
    """Return the digest of what is left of an erased step."""
    return blake2b(write_canonical_json(row).encode(), digest_size=32).hexdigest()


def has_valid_digest(row: SessionRow | AliasRow | HistoryRow) -> bool:
    """Return True if a row has the digest of its fields."""
    try:
        return row.with_digest() == row
    except (LedgerError, UnicodeError):  # a value of a type that is never stored
        return False


def compute_step_digest(row: StepRow) -> str:
    """Return the digest of a step: its messages, data, tokens, time, turn and parent.

    Computed from the stored text, in which the order of keys is significant, because that text is sent again.
    """
    short = row.id, row.parent, row.turn, row.kind, row.closes, row.tokens, row.counter, row.created
    return compute_content_digest(*short, row.messages, row.data)


def compute_content_digest(*fields: str | int | None) -> str:
    """Return the digest of the fields of a step that belong to it, in the order of `compute_step_digest`."""
    *short, messages, data = fields
    # JSON escapes line breaks, so that two different contents, even damaged ones, never give the same text.
    return blake2b(f"{write_canonical_json(short)}\n{messages}\n{data}".encode(), digest_size=32).hexdigest()


def compute_chain_digest(before: str, digest: str) -> str:
    """Return the digest of a step and all before it.

    `before` is the chain digest of its parent, "" for none.
    """
    return blake2b(f"{before}{digest}".encode(), digest_size=32).hexdigest()


def compute_row_digest(*fields: str | int | None) -> str:
    """Return the digest of the other fields of a session, alias or history row."""
    return blake2b(write_canonical_json(fields).encode(), digest_size=16).hexdigest()


if TYPE_CHECKING:
    StepFields = tuple[Any, ...]
    """A StepRow, or a plain tuple of its fields: converting thousands of rows would cost time."""

T = TypeVar("T")


class LedgerStore(Protocol):
    """Protocol of a store for the rows of a ledger.

    Methods are called inside `read` or `write`, from any thread, and those after `blob` on a snapshot.

    Attributes:
        url: The URL of the ledger.
    """

    url: str

    def read(self, work: Callable[[], T]) -> T:
        """Call a function that reads rows, and return its result."""

    def write(self, work: Callable[[], T], *, session: str = "") -> T:
        """Call a function in one transaction, which is durable when this returns.

        Args:
            work: Called again if the transaction has to be retried.
            session: The label of the session to lock, for stores with one lock per session.
        """

    def snapshot(self) -> AbstractContextManager[LedgerStore]:
        """Return a context manager with a read-only snapshot, even of damaged rows."""

    def close(self) -> None:
        """Close the store. A second call does nothing."""

    def session(self, label: str) -> SessionRow | None:
        """Return the session with that label, else the one with that alias, else None."""

    def save_session(self, row: SessionRow) -> None:
        """Insert a session, or replace the one with its id."""

    def move_session(self, row: SessionRow) -> None:
        """Update head, tip and open turn of an existing session.

        Label, status and data are unchanged.
        """

    def add_alias(self, row: AliasRow) -> None:
        """Insert an alias."""

    def drop_alias(self, alias: str) -> None:
        """Delete an alias."""

    def add_history(self, rows: Sequence[HistoryRow]) -> None:
        """Insert head changes."""

    def place(self, name: str) -> ParentRef | None:
        """Return the fields of a step that the next one depends on, or None."""

    def is_taken(self, branch: str, position: int) -> bool:
        """Return True if a branch has a step at a position."""

    def add_branch(self, row: BranchRow) -> None:
        """Insert a branch."""

    def branch(self, name: str) -> BranchRow | None:
        """Return the branch with that id, or None."""

    def add_steps(self, rows: Sequence[StepRow]) -> None:
        """Append consecutive steps to the end of their branches."""

    def step(self, name: str) -> StepRow | None:
        """Return the step with that id, or None."""

    def tail(self, tip: str, *, floor: int, limit: int) -> list[StepFields]:
        """Return steps of a branch from `tip` down to a position, newest first.

        Args:
            tip: The newest step to return.
            floor: The lowest position to return.
            limit: The maximum number of steps.
        """

    def search(self, branch: str, *, floor: int, below: int, text: str, limit: int) -> list[StepFields]:
        """Return steps of a branch whose stored messages contain a text, newest first.

        Args:
            branch: The branch.
            floor: The lowest position to search.
            below: The position after the highest to search.
            text: The text, escaped as in JSON.
            limit: The maximum number of steps.
        """

    def add_blob(self, digest: str, content: bytes) -> None:
        """Insert a blob unless it exists."""

    def blob(self, digest: str) -> bytes | None:
        """Return the blob with that digest, or None."""

    def session_rows(self) -> list[SessionRow]:
        """Return all sessions."""

    def alias_rows(self) -> list[AliasRow]:
        """Return all aliases."""

    def history_rows(self, session: str | None = None) -> Iterator[HistoryRow]:
        """Yield all head changes, or those of one session by its id."""

    def branch_rows(self) -> list[BranchRow]:
        """Return all branches."""

    def step_rows(self) -> Iterator[StepRow]:
        """Yield all steps, branch by branch, in order of position."""

    def blob_rows(self) -> Iterator[tuple[str, bytes]]:
        """Yield all blobs with their digests."""

    def damage(self, session: str | None = None) -> Iterable[Finding]:
        """Return findings about the database itself, or about one session by its id."""

    def salvage(self) -> Salvaged:
        """Return all rows that can still be read, intact or not."""


@runtime_checkable
class QueryableStore(LedgerStore, Protocol):
    """A store that counts, filters and joins rows itself.

    From other stores, all rows are read.
    """

    def newest_session_rows(self, *, status: str, text: str, limit: int) -> list[SessionRow]:
        """Return the sessions changed last, then by label.

        Args:
            status: Their status; "" for any.
            text: A text in their stored data; "" for any.
            limit: The maximum number of sessions.
        """

    def session_tips(self) -> list[tuple[str, str | None, str | None, int | None]]:
        """Return label, tip, and the tip's branch and position, of each session.

        In the order of `newest_session_rows`.

        The last two are None if the tip is missing.
        """

    def branches_with(self, text: str) -> list[tuple[str, int]]:
        """Return the branches with a text in their messages, and its first position."""

    def forked_branches(self) -> list[BranchRow]:
        """Return the branches that were forked from another."""

    def count_sessions(self, status: str) -> int:
        """Return the number of sessions of a status, "" for any."""

    def count_steps(self) -> int:
        """Return the number of steps, deleted ones included."""

    def tip_branches(self) -> list[tuple[str, str, str | None, str | None]]:
        """Return tip, branch, origin and the origin's branch of each session with a tip.

        The origin is the step that the branch was forked from.

        Sessions whose tip or the first step of whose branch is missing are left out.
        """


@runtime_checkable
class ErasableStore(LedgerStore, Protocol):
    """A store from which sessions can be deleted. A store need not support that.

    Attributes:
        erasure_note: A note for the user about erased content in the store's own files; "" if there is none.
    """

    erasure_note: str

    def wait_for_writers(self) -> None:
        """Inside `write`, wait for other writers and block new ones until it ends."""

    def add_deletion(self, row: DeletionRow, erased: Sequence[ErasedRow]) -> None:
        """Insert a deletion and the rows of everything it erases."""

    def erase_steps(self, names: Sequence[str]) -> None:
        """Replace the messages and data of steps by `NO_MESSAGES` and `NO_DATA`."""

    def drop_blobs(self, digests: Sequence[str]) -> None:
        """Delete blobs."""

    def drop_session(self, name: str) -> None:
        """Delete a session by its id, with its label, its aliases and its head changes."""

    def purge(self) -> bool:
        """Overwrite erased content as far as the store can. Return True if that is done."""

    def copies(self) -> list[str]:
        """Return the backups that migrations left, which still contain erased content."""

    def deletion_rows(self) -> list[DeletionRow]:
        """Return all deletions in the order of their numbers."""

    def erased_rows(self) -> Iterator[ErasedRow]:
        """Yield the rows of all erased content, deletion by deletion."""

    def erased(self, kind: str, name: str) -> list[ErasedRow]:
        """Return the rows of one erased session, step or blob."""
