"""Messages to send, with their sizes and steps, and the truncation point of a history."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from nexus_core.types.messages import Message
    from nexus_core.types.prompt import TrustLevel

PREVIEW_TURN = "?"
"""The turn of a preview, which is not stored."""


class MessageKey(NamedTuple):
    """Identifies a message: its step (its turn, for an input) and its index there."""

    step: str
    place: int


class HistoryItem(NamedTuple):  # not a dataclass, because a call has thousands
    """A message to send, with its size and its step.

    Attributes:
        message: The message as it is sent.
        tokens: Tokens of the message.
        turn: Its turn; "" for a summary and for messages that were pinned at a compaction.
        is_input: True if it is the input of its turn.
        step: Its step; "" for a preview.
        place: Its index in the step.
        created: When the step was recorded, in milliseconds since 1970.
        original: The raw input of a rendered one; None if it is not rendered.
        is_shortened: True if a long tool result in it is cut.
        summary_trust: The trust level of a summary; None for other messages.
        size: Bytes in a request body, at most.
        masked_media: Images and documents in it that are replaced by placeholders.
        margin: The part of `tokens` that is a safety margin.
    """

    message: Message
    tokens: int
    turn: str = ""
    is_input: bool = False
    step: str = ""
    place: int = 0
    created: int = 0
    original: Message | None = None
    is_shortened: bool = False
    summary_trust: TrustLevel | None = None
    size: int = 0
    masked_media: int = 0
    margin: int = 0

    @property
    def key(self) -> MessageKey:
        """The identity of the message in its thread."""
        return MessageKey(self.turn if self.is_input else self.step, self.place)

    @property
    def trust(self) -> TrustLevel:
        """The trust level: tool results are foreign."""
        is_result = self.message.role == "tool" or bool(self.message.tool_results)
        return self.summary_trust or ("foreign" if is_result else "user")

    def is_among(self, steps: Collection[str]) -> bool:
        """True if its step is one of `steps`; for an input also if its turn is."""
        return self.step in steps or (self.is_input and self.turn in steps)


get_tokens: Callable[[HistoryItem], int] = attrgetter("tokens")
get_bytes: Callable[[HistoryItem], int] = attrgetter("size")
"""For `sum(map(get_bytes, items))`, the fastest form in Python."""


class SplitHistory(NamedTuple):
    """The messages of a call.

    Attributes:
        history: Messages before the open turn; all if none is open.
        current: The input of the open turn.
        progress: Replies and results of the open turn.
    """

    history: list[HistoryItem]
    current: HistoryItem | None
    progress: list[HistoryItem]


def split_history(items: Iterable[HistoryItem], turn: str) -> SplitHistory:
    """Split messages at the open turn.

    A summary belongs to no turn, also if none is open (`""`).
    """
    split = SplitHistory([], None, [])
    for each in items:
        if not turn or each.turn != turn:
            split.history.append(each)
        elif each.is_input and split.current is None:
            split = split._replace(current=each)
        elif not each.is_input:
            split.progress.append(each)
    return split


class MessageRange(NamedTuple):
    """Messages from one to another, both included.

    Attributes:
        first, last: The messages.
        until: The step up to which they are read, if it is not the last one's: an input is sent as it was rendered.
    """

    first: MessageKey
    last: MessageKey
    until: str = ""

    def to_json(self) -> list[Any]:
        """Return the range as it is stored."""
        return [list(self.first), list(self.last), *([self.until] if self.until else [])]


class TruncationPoint(NamedTuple):
    """The part of a thread that is sent.

    Attributes:
        rule: The strategy that chose it.
        since: The message from which on everything is sent.
        spans: Ranges before it that are sent.
        compaction: The compaction after which the history starts; None if there is none.
        limit: Tokens available when it was chosen; with a larger window it is chosen again.
        hidden: The message up to which media are replaced by placeholders; None if none are.
        byte_limit: Bytes available when it was chosen, if they were the reason; else 0.
    """

    rule: str
    since: MessageKey
    spans: tuple[MessageRange, ...] = ()
    compaction: str | None = None
    limit: int = 0
    hidden: MessageKey | None = None
    byte_limit: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return the truncation point as it is stored with a step."""
        spans = [span.to_json() for span in self.spans]
        stored: dict[str, Any] = {"rule": self.rule, "since": list(self.since), "limit": self.limit}
        hidden = list(self.hidden) if self.hidden else None
        others = {"spans": spans, "of": self.compaction, "hidden": hidden, "bytes": self.byte_limit}
        return stored | {name: value for name, value in others.items() if value}


def read_truncation_point(value: object) -> TruncationPoint | None:
    """Parse a stored truncation point; None if there is none."""
    if not isinstance(value, dict):
        return None
    spans = tuple(
        MessageRange(MessageKey(*first), MessageKey(*last), *until) for first, last, *until in value.get("spans", ())
    )
    hidden = MessageKey(*value["hidden"]) if value.get("hidden") else None
    limits = {"limit": value.get("limit", 0), "byte_limit": value.get("bytes", 0)}
    return TruncationPoint(value["rule"], MessageKey(*value["since"]), spans, value.get("of"), hidden=hidden, **limits)
