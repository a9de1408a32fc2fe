"""Messages of a session with their sizes, those that fit a call, and the point where the history was truncated."""

from __future__ import annotations

from itertools import accumulate
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.dialects.requests import count_message_bytes
from nexus_core.history.groups import (
    IndexRange,
    MessageLinks,
    RunningSums,
    find_group_starts,
    get_sender,
    group_messages,
    to_ranges,
)
from nexus_core.history.select import select
from nexus_core.history.shorten import count_media, replace_media

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from nexus_core.types.budget import TruncationStrategy
    from nexus_core.types.messages import Message, Role
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


LOW_WATER = 0.6
"""Share of the limit that the kept messages may use after a truncation, so that it holds for a while."""


class GroupedItems(NamedTuple):
    """Message groups, and running sums of their sizes."""

    groups: list[IndexRange]
    sums: RunningSums


class FitLimits(NamedTuple):
    """Limits of a call, and the rules by which messages are left out.

    Attributes:
        room: Tokens available for messages.
        bytes: Bytes available for messages.
        limit: Tokens that the whole request may use.
        byte_limit: Bytes that it may have.
        replace_media: Returns a message with placeholders for its images and documents.
        truncation: The truncation strategy.
        turn: The open turn.
        compaction: The compaction in effect.
        known: Cached groups, by the messages they were made of.
        pinned: Steps that stay, with their groups.
    """

    room: int
    bytes: int
    limit: int
    byte_limit: int
    replace_media: Callable[[HistoryItem], HistoryItem]
    truncation: TruncationStrategy
    turn: str
    compaction: str | None
    known: dict[object, GroupedItems]
    pinned: Collection[str] = ()

    def still_holds(self, cut: TruncationPoint | None) -> bool:
        """Return True if a truncation still applies: same compaction and strategy, and no larger window."""
        return (
            cut is not None
            and cut.compaction == self.compaction
            and cut.rule == self.truncation.name
            and cut.limit >= self.limit
            and (not cut.byte_limit or cut.byte_limit >= self.byte_limit)
        )

    def fixed(self, sent: Sequence[HistoryItem]) -> set[int]:
        """Return the indices of items that always stay: summary, input of the open turn, pinned items."""
        turn = self.turn
        fixed = {place for place, each in enumerate(sent) if not each.turn or (each.is_input and each.turn == turn)}
        return fixed | _pinned(sent, self.pinned)


def _pinned(sent: Sequence[HistoryItem], pins: Collection[str]) -> set[int]:
    """Return the indices of pinned items and of their groups."""
    if not pins:
        return set()
    whole = [range(*group) for group in group_messages([each.message for each in sent])]
    return {place for group in whole if any(sent[at].is_among(pins) for at in group) for place in group}


def replace_item_media(sent: HistoryItem, count_tokens: Callable[[Message], int]) -> HistoryItem:
    """Return an item with placeholders for its images and documents; the same one if it has none.

    Args:
        sent: The item.
        count_tokens: Returns the tokens of a message.
    """
    count = count_media(sent.message)
    if not count:
        return sent
    message = replace_media(sent.message)
    size = count_message_bytes(message)
    said, tokens = replace_original_media(sent), count_tokens(message)
    return sent._replace(message=message, tokens=tokens, original=said, size=size, masked_media=count, margin=0)


def replace_original_media(sent: HistoryItem) -> Message | None:
    """Return the raw input of an item with placeholders for its images and documents."""
    return None if sent.original is None else replace_media(sent.original)


def replace_media_until(sent: Sequence[HistoryItem], until: MessageKey, limits: FitLimits) -> list[HistoryItem]:
    """Return the items with placeholders for media up to one of them; unchanged if that one is missing."""
    end = next((place for place, each in enumerate(sent, 1) if each.step and each.key == until), 0)
    fixed = limits.fixed(sent) if end else set()
    return [
        limits.replace_media(each) if place < end and place not in fixed else each for place, each in enumerate(sent)
    ]


def replace_oldest_item_media(sent: Sequence[HistoryItem], limits: FitLimits) -> list[HistoryItem]:
    """Return the items with placeholders for the oldest media, as many as are needed to fit."""
    until = find_media_limit(sent, limits) if sum(map(get_bytes, sent)) > limits.bytes else None
    return list(sent) if until is None else replace_media_until(sent, until, limits)


def find_media_limit(sent: Sequence[HistoryItem], limits: FitLimits) -> MessageKey | None:
    """Return the item up to which media must be replaced by placeholders; None if there is no media to replace.

    Args:
        sent: Items with too many bytes.
        limits: The limits of the call.
    """
    newest = next(find_group_starts(lambda place: MessageLinks(sent[place].message), len(sent)))
    end = newest if sent[-1].turn == limits.turn else len(sent)
    fixed, size = limits.fixed(sent), sum(map(get_bytes, sent))
    told = ((each, limits.replace_media(each)) for place, each in enumerate(sent[:end]) if place not in fixed)
    gains = [(before.key, before.size - after.size) for before, after in told if after is not before]
    until: MessageKey | None = None
    for number, (key, gain) in enumerate(gains, 1):
        if size <= limits.bytes * (1 if number == len(gains) else LOW_WATER):
            break
        size, until = size - gain, key
    return until


MAX_CACHED_GROUPINGS = 8
"""Lists of messages whose groups are cached."""


class KeptItems(NamedTuple):
    """The items that fit a call.

    Attributes:
        sent: The kept items.
        cut: The truncation that leaves them; None if all items are kept.
        taken: Tokens of all items before the selection.
    """

    sent: list[HistoryItem]
    cut: TruncationPoint | None
    taken: int = 0

    @property
    def tokens(self) -> int:
        """Tokens of the kept items."""
        return sum(map(get_tokens, self.sent))

    @property
    def bytes(self) -> int:
        """Bytes of the kept items in a request body."""
        return sum(map(get_bytes, self.sent))


def fit_items(sent: Sequence[HistoryItem], cut: TruncationPoint | None, limits: FitLimits) -> KeptItems:
    """Return the items that fit. Summary, pinned items, the open turn's input and its newest group always stay.

    Args:
        sent: The items of a thread.
        cut: The truncation so far.
        limits: The limits of the call.
    """
    kept = _narrow(_mask_media(sent, cut, limits), cut, limits)
    if kept.bytes <= limits.bytes:
        return kept
    kept = _mask_more_media(kept, limits)
    narrowed = _narrow(kept.sent, kept.cut, limits, in_bytes=True)
    if narrowed.cut is None:
        return narrowed._replace(taken=kept.taken)
    return KeptItems(narrowed.sent, narrowed.cut._replace(byte_limit=limits.byte_limit), kept.taken)


def apply_truncation(sent: Sequence[HistoryItem], cut: TruncationPoint, limits: FitLimits) -> list[HistoryItem] | None:
    """Return the items that a truncation leaves; None if one that it names is missing."""
    pieces = _pieces(_mask_media(sent, cut, limits), cut)
    return None if pieces is None else [each for piece in pieces for each in piece]


def _mask_media(sent: Sequence[HistoryItem], cut: TruncationPoint | None, limits: FitLimits) -> Sequence[HistoryItem]:
    """Return the items with the placeholders that a truncation requires."""
    return sent if cut is None or cut.hidden is None else replace_media_until(sent, cut.hidden, limits)


def _mask_more_media(kept: KeptItems, limits: FitLimits) -> KeptItems:
    """Replace more media by placeholders, enough to hold for a while."""
    until = find_media_limit(kept.sent, limits)
    if until is None:
        return kept
    first = next(each.key for each in kept.sent if each.turn)
    cut = kept.cut or TruncationPoint(limits.truncation.name, first, (), limits.compaction, limits.limit)
    cut = cut._replace(hidden=until, byte_limit=limits.byte_limit)
    return KeptItems(replace_media_until(kept.sent, until, limits), cut, kept.taken)


def _narrow(
    sent: Sequence[HistoryItem], cut: TruncationPoint | None, limits: FitLimits, *, in_bytes: bool = False
) -> KeptItems:
    """Return the messages that fit into the tokens or the bytes of a call; arguments as for `fit_items`."""
    pieces = None if cut is None else _pieces(sent, cut)
    if pieces is None:
        cut, pieces = None, [list(sent)]
    left = [each for piece in pieces for each in piece]
    budget, size = (limits.bytes, get_bytes) if in_bytes else (limits.room, get_tokens)
    taken = sum(map(size, left))
    if taken <= budget:
        return KeptItems(left, cut, taken)
    pinned = limits.fixed(left)
    selection = select(
        SessionItems(left, pinned, size, limits),
        budget,
        limits.truncation,
        pinned,
        first_role="user",
        low_water=LOW_WATER,
        on_overflow="drop",
    )
    if len(selection) == len(left):  # there is nothing more to leave out
        return KeptItems(left, cut, taken)
    places = selection.indices
    ends = set(accumulate(map(len, pieces)))
    narrower = _cut(left, places, ends, limits)
    if cut is not None and narrower is not None:
        narrower = narrower._replace(hidden=cut.hidden, byte_limit=cut.byte_limit)
    return KeptItems([left[place] for place in places], narrower, taken)


def _pieces(sent: Sequence[HistoryItem], cut: TruncationPoint) -> list[Sequence[HistoryItem]] | None:
    """Return what a truncation leaves: summary, kept ranges of the beginning, and the rest."""
    keys = {cut.since, *(key for span in cut.spans for key in (span.first, span.last))}
    found = {each.key: place for place, each in enumerate(sent) if each.step and each.key in keys}
    if len(found) != len(keys):
        return None
    early = [sent[found[span.first] : found[span.last] + 1] for span in cut.spans]
    return [[each for each in sent if not each.turn], *early, sent[found[cut.since] :]]


class SessionItems:
    """Messages of a session, as `select` reads them. Pinned messages are in no group.

    Args:
        sent: The messages.
        pinned: The indices of those that stay in any case.
        size: Returns the size of a message.
        limits: The open turn, and the groups that are known.
    """

    is_whole = True

    def __init__(
        self, sent: Sequence[HistoryItem], pinned: set[int], size: Callable[[HistoryItem], int], limits: FitLimits
    ) -> None:
        self._sent = sent
        self._pinned = pinned
        self._size = size
        self._turn = limits.turn
        self._free = [index for index in range(len(sent)) if index not in pinned]
        free = [sent[index] for index in self._free]
        self._groups, self.sizes = _grouped(free, limits.known, size) if free else GroupedItems([], RunningSums())

    @property
    def bounds(self) -> IndexRange:
        """The indices of all messages."""
        return IndexRange(0, len(self._sent))

    def fits(self, budget: int) -> bool:
        """Return True if all messages fit into a budget."""
        return self.measure([self.bounds]) <= budget

    def ranges(self, slices: Iterable[slice]) -> list[IndexRange]:
        """Return the index ranges of the selected groups, ascending, with neighbours joined."""
        groups = (group for part in slices for group in self._groups[part])
        return to_ranges(index for group in groups for index in self._free[slice(*group)])

    def measure(self, ranges: Iterable[IndexRange]) -> int:
        """Return the size of some ranges."""
        return sum(sum(map(self._size, self._sent[first:end])) for first, end in ranges)

    def is_grouped(self, index: int) -> bool:
        """Return True if a message is not pinned."""
        return index not in self._pinned

    def is_open(self, index: int) -> bool:
        """Return True for a message of the open turn."""
        return self._sent[index].turn == self._turn

    def sender(self, index: int) -> Role:
        """Return the role of a message's sender."""
        return get_sender(self._sent[index].message)


def _grouped(
    sent: Sequence[HistoryItem], known: dict[object, GroupedItems], of: Callable[[HistoryItem], int]
) -> GroupedItems:
    """Return the groups of items, from the cache if the items are the same."""
    # The size is part of the key, because placeholders change it.
    key = sent[0].key, sent[-1].key, len(sent), sum(map(of, sent))
    grouped = known.get(key)
    if grouped is None:
        found = group_messages([each.message for each in sent])
        sizes = (sum(map(of, sent[slice(*group)])) for group in found)
        grouped = GroupedItems(found, RunningSums(sizes))
        if len(known) >= MAX_CACHED_GROUPINGS:
            known.clear()
        known[key] = grouped
    return grouped


def _cut(
    sent: Sequence[HistoryItem], places: Sequence[int], ends: set[int], limits: FitLimits
) -> TruncationPoint | None:
    """The cut that leaves some places: the last run of them is open, what stays before it is closed.

    Args:
        sent: The messages.
        places: Those that stay.
        ends: Where pieces end behind which something was left out before.
        limits: What there is room for.
    """
    runs = list(_runs([place for place in places if sent[place].turn], ends))
    if not runs:
        return None
    spans = tuple(_span(sent[run[0]], sent[run[-1]]) for run in runs[:-1])
    return TruncationPoint(limits.truncation.name, sent[runs[-1][0]].key, spans, limits.compaction, limits.limit)


def _span(first: HistoryItem, last: HistoryItem) -> MessageRange:
    return MessageRange(first.key, last.key, "" if last.step == last.key.step else last.step)


def _runs(places: Sequence[int], ends: set[int]) -> Iterator[list[int]]:
    run: list[int] = []
    for place in places:
        if run and (place != run[-1] + 1 or place in ends):
            yield run
            run = []
        run.append(place)
    if run:
        yield run
