"""A message on its way to a model."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from nexus_core.types.messages import Message
    from nexus_core.types.prompt import TrustLevel

PREVIEW_TURN = "?"
"""The name of a turn that is only tried out."""


class MessageKey(NamedTuple):
    """Which message is meant: the step that has it, for an input the turn, and the message's place there."""

    step: str
    place: int


class HistoryItem(NamedTuple):  # of which there are many
    """A message on its way to a model.

    Attributes:
        message: As it is sent.
        tokens: What it takes.
        turn: The turn it is of; "" for a summary, and for what was pinned when the rest was summarised.
        is_input: Whether the turn is about it.
        step: The step that has it, "" for one that is only tried out.
        place: Its place in the step.
        created: When the step was made, in milliseconds since 1970.
        original: For an input, what was said before it was rendered; None where that is the message.
        is_shortened: Whether it holds a long result that is sent in part.
        summary_trust: Whose word it is, where its role does not tell: that of a summary.
        size: The bytes that it takes in a request at most.
        masked_media: How many of its pictures and documents are told in words.
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
        """Which message it is."""
        return MessageKey(self.turn if self.is_input else self.step, self.place)

    @property
    def trust(self) -> TrustLevel:
        """Whose word it is: what a tool brought is anybody's."""
        brought = self.message.role == "tool" or bool(self.message.tool_results)
        return self.summary_trust or ("foreign" if brought else "user")

    def is_among(self, steps: Collection[str]) -> bool:
        """Whether a step that says it is one of some; an input is also known by its turn."""
        return self.step in steps or (self.is_input and self.turn in steps)


get_tokens: Callable[[HistoryItem], int] = attrgetter("tokens")
get_bytes: Callable[[HistoryItem], int] = attrgetter("size")
"""What a message takes: `sum(map(BYTES, sent))` is what many do, as quickly as Python can."""


class SplitHistory(NamedTuple):
    """The messages of a call.

    Attributes:
        history: Those before the open turn; all of them where none is open.
        current: What the open turn is about.
        progress: What was said in it since.
    """

    history: list[HistoryItem]
    current: HistoryItem | None
    progress: list[HistoryItem]


def split_history(sent: Iterable[HistoryItem], turn: str) -> SplitHistory:
    """Messages by whether they are of the open turn; a summary is of none, also where no turn is open (`""`)."""
    halves = SplitHistory([], None, [])
    for each in sent:
        if not turn or each.turn != turn:
            halves.history.append(each)
        elif each.is_input and halves.current is None:
            halves = halves._replace(current=each)
        elif not each.is_input:
            halves.progress.append(each)
    return halves


class MessageRange(NamedTuple):
    """Messages from one to another, both included.

    Attributes:
        first, last: The messages.
        until: The step up to which they are read, where that is not the last one's: an input stands as it was sealed.
    """

    first: MessageKey
    last: MessageKey
    until: str = ""

    def to_json(self) -> list[Any]:
        """As it is written down."""
        return [list(self.first), list(self.last), *([self.until] if self.until else [])]


class TruncationPoint(NamedTuple):
    """What stays of a thread.

    Attributes:
        rule: The truncation that chose it.
        since: The message from which on everything stays.
        spans: What stays of what was said before that.
        compaction: The compaction whose kept history it is about; None where there is none.
        limit: The tokens that a request could use when it was made; a larger window deserves another look.
        hidden: The message up to which pictures and documents are told in words; None where all are shown.
        byte_limit: The bytes that a request could have, where it was made for want of them.
    """

    rule: str
    since: MessageKey
    spans: tuple[MessageRange, ...] = ()
    compaction: str | None = None
    limit: int = 0
    hidden: MessageKey | None = None
    byte_limit: int = 0

    def to_json(self) -> dict[str, Any]:
        """As it is written down with a step."""
        spans = [span.to_json() for span in self.spans]
        written: dict[str, Any] = {"rule": self.rule, "since": list(self.since), "limit": self.limit}
        hidden = list(self.hidden) if self.hidden else None
        others = {"spans": spans, "of": self.compaction, "hidden": hidden, "bytes": self.byte_limit}
        return written | {name: value for name, value in others.items() if value}


def read_truncation_point(value: object) -> TruncationPoint | None:
    """A cut as it was written down; None where there is none."""
    if not isinstance(value, dict):
        return None
    spans = tuple(
        MessageRange(MessageKey(*first), MessageKey(*last), *until) for first, last, *until in value.get("spans", ())
    )
    hidden = MessageKey(*value["hidden"]) if value.get("hidden") else None
    limits = {"limit": value.get("limit", 0), "byte_limit": value.get("bytes", 0)}
    return TruncationPoint(value["rule"], MessageKey(*value["since"]), spans, value.get("of"), hidden=hidden, **limits)
