"""Conversations as they are kept: steps that are only ever added, turns, sessions, and who keeps them."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from nexus_core.values.fast_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from nexus_core.values.finding import Finding
    from nexus_core.values.message import Message
    from nexus_core.values.parts import JSON

StepKind = Literal["input", "sealed", "reply", "result", "interrupted", "turn", "compaction", "revert", "pin"]
"""What a step adds to a turn.

`input` opens a turn with what was said, or says more in it; `sealed` is what opened it as it was sent; `reply` and
`result` are what the model answered and what tools brought; `interrupted` ends a turn that nobody will finish; `turn`
is a whole turn that was made elsewhere; `compaction` summarises what came before, and `revert` takes a compaction back;
`pin` says which steps stay as they are when others are summarised.
"""

SessionStatus = Literal["active", "archived"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewStep:
    """What is to be added; the ledger knows the rest.

    Attributes:
        kind: What it adds.
        closes: Whether the turn ends with it.
        messages: What was said, in no API's shape.
        tokens: What the messages take.
        counter: Who counted.
        data: What else is known: model, usage, stop reason, the reply's id; for a compaction `summary` and
            `first_kept`, for a revert `restores`.
        id: Its name, where somebody has to know it before; nobody else may have it.
        created: When it was made, where that was elsewhere; in milliseconds since 1970.
    """

    kind: StepKind
    closes: bool = False
    messages: tuple[Message, ...] = ()
    tokens: int = 0
    counter: str = ""
    data: JSON = field(default_factory=dict)
    id: str = ""
    created: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One durable addition to a conversation; it never changes.

    Attributes:
        id: Its name, unique in the ledger.
        parent: The step before it, None for the first.
        turn: The turn it belongs to, by the id of the turn's first step.
        branch: The line of steps it stands in, by the id of its first step; a fork begins another.
        position: How many steps stand before it, back to the root.
        kind, closes, messages, tokens, counter, data: As they were given.
        total: The tokens of this and all steps before it.
        compaction: The compaction that counts here; None where everything is there in full.
        created: When it was added, in milliseconds since 1970. Order is told by `position`, never by this.
        digest: The content's address.
        chain: The digest of this and all steps before it; whoever changes one of them breaks it.
    """

    id: str
    parent: str | None
    turn: str
    branch: str
    position: int
    kind: StepKind
    closes: bool
    messages: tuple[Message, ...]
    tokens: int
    counter: str
    data: JSON
    total: int
    compaction: str | None
    created: int
    digest: str
    chain: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRecord:
    """A name for a place in the tree of steps.

    Attributes:
        label: The name.
        head: The last step of the last closed turn; None before the first.
        tip: The newest step: that of the open turn, else the head.
        open_turn: The turn that is not finished, if there is one.
        status: Whether it is in use.
        origin: The session it was forked from, "" for none.
        created, updated: When it was begun and last changed, in milliseconds since 1970; of one that comes from
            elsewhere, when that was there.
        data: What else is known: the directory it works in, its model.
    """

    label: str
    head: str | None = None
    tip: str | None = None
    open_turn: str | None = None
    status: SessionStatus = "active"
    origin: str = ""
    created: int = 0
    updated: int = 0
    data: JSON = field(default_factory=dict)


@runtime_checkable
class Ledger(Protocol):
    """Keeps steps, sessions and blobs. Every method that writes is one transaction.

    Attributes:
        url: Where it is.
    """

    url: str

    def session(self, label: str) -> SessionRecord | None:
        """The session of that name or alias."""

    def sessions(self, *, status: SessionStatus | None = "active") -> list[SessionRecord]:
        """All sessions, those changed last first."""

    def create(
        self,
        label: str,
        *,
        head: str | None = None,
        origin: str = "",
        data: JSON = ...,
        steps: Iterable[NewStep] = (),
    ) -> SessionRecord:
        """A new session, at the end of a closed turn or before the first; ExistsError when the name is taken.

        With `steps`, these are added behind `head`: all of it is there, or nothing. It was begun when the first of them
        was made.
        """

    def append(self, label: str, step: NewStep, *, after: str | None) -> Step:
        """Add a step to a session whose tip is `after`; ConflictError when it is another by now."""

    def append_many(self, label: str, steps: Iterable[NewStep], *, after: str | None) -> list[Step]:
        """The same with several steps: all of them are there, or none."""

    def step(self, name: str) -> Step | None:
        """The step of that id."""

    def thread(self, tip: str, *, first: str | None = None, limit: int | None = None) -> list[Step]:
        """The steps up to and including `tip`, oldest first: from `first` on, or the newest `limit`."""

    def update(
        self,
        label: str,
        *,
        status: SessionStatus | None = None,
        data: JSON | None = None,
        updated: int | None = None,
    ) -> SessionRecord:
        """Change what is known of a session, but not where it stands; a change of this moment, or of `updated`."""

    def rename(self, label: str, new: str) -> SessionRecord:
        """Another name; the old one stays as an alias."""

    def aliases(self, label: str) -> list[str]:
        """The other names of a session."""

    def scan(self, tip: str, text: str, *, limit: int = 20, within: int = 10_000) -> list[Step]:
        """Of the newest `within` steps of a thread the newest `limit` in whose messages a text occurs."""

    def put_blob(self, content: bytes) -> str:
        """Keep bytes once; returns their address."""

    def put_blobs(self, contents: Iterable[bytes]) -> list[str]:
        """The same with several."""

    def blob(self, digest: str) -> bytes | None:
        """The bytes of that address."""

    def steps(self) -> Iterator[Step]:
        """Every step there is, branch by branch, in order of position."""

    def verify(self, *, advance: Callable[[int], None] = ...) -> Iterable[Finding]:
        """What was changed, deleted, reordered or damaged; `advance(1)` is called for every step looked at."""

    def close(self) -> None:
        """Let go of the file or the connection; a second call does nothing."""
