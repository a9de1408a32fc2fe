"""Append-only conversations: steps, sessions, and the protocol of a ledger."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from nexus_core.types.base import dataclass
from nexus_core.types.payloads import SessionPayloadMixin, StepPayloadMixin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from nexus_core.types.messages import JSON, Message
    from nexus_core.types.plugins import Finding

StepKind = Literal[
    "input", "sealed", "reply", "result", "interrupted", "turn", "compaction", "revert", "pin", "forget", "state"
]
"""The kind of a step.

`input` opens a turn with a user message, or adds one to it; `sealed` is the rendered input as it was sent; `reply` and
`result` are the model's reply and a tool result; `interrupted` ends a turn that will not be finished; `turn` is a
complete turn that was made elsewhere; `compaction` summarizes the steps before it, and `revert` undoes a compaction;
`pin` names steps that a compaction must not summarize, `forget` memories that are not sent any more; `state` is what
another framework keeps beside the messages, such as a checkpoint.
"""

SessionStatus = Literal["active", "archived"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewStep(StepPayloadMixin):
    """A step to append. The ledger sets its position, digests and the other fields of `Step`.

    Attributes:
        kind: The kind of the step.
        closes: True if it ends the turn.
        messages: Its messages in the neutral format.
        tokens: The tokens of the messages.
        counter: The name of the token counter.
        data: Its metadata as it is stored: the `to_json` of a payload, such as a `ReplyPayload`.
        payload: The same with typed fields.
        id: A unique id, if the caller must know it in advance; "" lets the ledger choose one.
        created: Milliseconds since 1970, for a step that was made elsewhere; None for now.
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
class Step(StepPayloadMixin):
    """One stored, immutable addition to a conversation.

    Attributes:
        id: Its id, unique in the ledger.
        parent: The id of the step before it; None for the first.
        turn: The id of its turn, which is that of the turn's first step.
        branch: The id of its branch, which is that of the branch's first step; a fork starts a new branch.
        position: The number of steps before it, back to the root.
        kind, closes, messages, tokens, counter, data, payload: The values of the `NewStep`.
        total: The tokens of this and all earlier steps.
        compaction: The id of the compaction that applies here; None if there is none.
        created: When it was appended, in milliseconds since 1970. Order follows `position`, never this.
        digest: The digest of its content.
        chain: The digest of this and all earlier steps, which changes if one of them is modified.
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
class SessionRecord(SessionPayloadMixin):
    """A session: a name that points to a step in the tree of steps.

    Attributes:
        label: The session's name.
        head: The id of the last step of the last closed turn; None before the first.
        tip: The id of the newest step: that of the open turn, else the head.
        open_turn: The id of the unfinished turn; None if there is none.
        status: `active` or `archived`.
        origin: The name of the session that it was forked from, "" for none.
        created, updated: When it was created and last changed, in milliseconds since 1970; for an imported session the
            original times. Steps of the kinds `pin` and `forget` do not count.
        data: Its metadata as it is stored, in JSON.
        payload: The same with typed fields: working directory, model, and so on.
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
    """An append-only store of steps, sessions and blobs. Every method that writes is one transaction.

    Attributes:
        url: The URL of the store.
    """

    url: str

    def session(self, label: str) -> SessionRecord | None:
        """Return the session with that name or alias, or None."""

    def sessions(self, *, status: SessionStatus | None = "active") -> list[SessionRecord]:
        """Return the sessions with a status (None for all), the last changed first."""

    def create(
        self,
        label: str,
        *,
        head: str | None = None,
        origin: str = "",
        data: JSON = ...,
        steps: Iterable[NewStep] = (),
    ) -> SessionRecord:
        """Create a session at the end of a closed turn, or before the first.

        With `steps`, these are appended after `head` in the same transaction, and the session was created when the
        first of them was.

        Raises:
            SessionExistsError: There is a session with that name.
        """

    def append(self, label: str, step: NewStep, *, after: str | None) -> Step:
        """Append a step to a session whose tip is `after`.

        Raises:
            ConflictError: The session has another tip, because of a concurrent writer.
        """

    def append_many(self, label: str, steps: Iterable[NewStep], *, after: str | None) -> list[Step]:
        """Append several steps atomically: all of them or none. Errors are those of `append`."""

    def step(self, name: str) -> Step | None:
        """Return the step with that id, or None."""

    def thread(self, tip: str, *, first: str | None = None, limit: int | None = None) -> list[Step]:
        """Return the steps up to and including `tip`, oldest first: from `first` on, or the newest `limit`."""

    def update(
        self,
        label: str,
        *,
        status: SessionStatus | None = None,
        data: JSON | None = None,
        updated: int | None = None,
    ) -> SessionRecord:
        """Update the status or the metadata of a session, never its steps. The time of change is `updated`, or now."""

    def rename(self, label: str, new: str) -> SessionRecord:
        """Rename a session; the old name stays as an alias."""

    def aliases(self, label: str) -> list[str]:
        """Return the aliases of a session."""

    def scan(self, tip: str, text: str, *, limit: int = 20, within: int = 10_000) -> list[Step]:
        """Return the newest `limit` steps whose messages contain a text, among the newest `within` of a thread."""

    def put_blob(self, content: bytes) -> str:
        """Store bytes once and return their digest."""

    def put_blobs(self, contents: Iterable[bytes]) -> list[str]:
        """Store several blobs and return their digests."""

    def blob(self, digest: str) -> bytes | None:
        """Return the bytes with that digest, or None."""

    def steps(self) -> Iterator[Step]:
        """Yield every step, branch by branch, in order of position."""

    def verify(self, *, advance: Callable[[int], None] = ...) -> Iterable[Finding]:
        """Find changed, deleted, reordered or damaged records; call `advance(1)` after each step."""

    def close(self) -> None:
        """Close the file or the connection; a second call does nothing."""
