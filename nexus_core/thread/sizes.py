"""Long results of tools: kept whole, sent as head and tail, cut once and for all."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from nexus_core.dialects.requests import count_message_bytes
from nexus_core.history.shorten import split_head_and_tail
from nexus_core.history.truncation import replace_item_media, replace_original_media
from nexus_core.types.messages import Text, ToolResult

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from nexus_core.history.items import HistoryItem
    from nexus_core.history.truncation import GroupedItems
    from nexus_core.tokens.counters import CachingCounter
    from nexus_core.types.ledger import Step
    from nexus_core.types.messages import Message
    from nexus_core.types.prompt import Placement

PLACEHOLDER_STEP_ID = "0" * 26
"""As long as a step's name, which nobody knows before it is recorded."""


class TextClamp(NamedTuple):
    """Where a text is cut.

    Attributes:
        message: The message, by its place in the step.
        part: The result, by its place in the message.
        text: The text, by its place in the result.
        head: How many characters stay of the beginning.
        tail: How many stay of the end.
    """

    message: int
    part: int
    text: int
    head: int
    tail: int


def find_clamps(messages: Sequence[Message], limit: int, count: Callable[[str], int]) -> list[TextClamp]:
    """Where the results in messages must be cut so that the texts of none take more than a limit."""
    return [
        TextClamp(at, place, *cut)
        for at, message in enumerate(messages)
        for place, part in enumerate(message.parts)
        if isinstance(part, ToolResult)
        for cut in _cuts(part, limit, count)
    ]


def get_sent_messages(step: Step) -> tuple[Message, ...]:
    """The messages of a step as they are sent."""
    clamps = step.data.get("clamp")
    if not isinstance(clamps, list | tuple):
        return step.messages
    return apply_clamps(step.messages, (TextClamp(*each) for each in clamps), step.id)


def apply_clamps(messages: Sequence[Message], clamps: Iterable[TextClamp], step: str) -> tuple[Message, ...]:
    """The messages with long texts as head and tail, and a line between them that says where all of it is."""
    by_result: dict[tuple[int, int], list[TextClamp]] = defaultdict(list)
    for clamp in clamps:
        by_result[clamp.message, clamp.part].append(clamp)
    clamped = list(messages)
    for (at, place), found in by_result.items():
        parts = list(clamped[at].parts)
        result = parts[place]
        if isinstance(result, ToolResult):
            parts[place] = _clamped(result, found, step)
        clamped[at] = replace(clamped[at], parts=tuple(parts))
    return tuple(clamped)


def _cuts(result: ToolResult, limit: int, count: Callable[[str], int]) -> Iterator[tuple[int, int, int]]:
    """The texts that must be cut, the longest; short ones among them stay as they are."""
    texts = {place: part.text for place, part in enumerate(result.parts) if isinstance(part, Text)}
    sizes = {place: count(text) for place, text in texts.items()}
    shortest_first = sorted(sizes, key=lambda place: (sizes[place], place))
    for number, place in enumerate(shortest_first):
        share = limit // (len(shortest_first) - number)
        cut = split_head_and_tail(texts[place], share, count, lambda left_out: _line(left_out, PLACEHOLDER_STEP_ID))
        if cut is not None:
            yield place, *cut
        limit -= min(sizes[place], share)


def _clamped(result: ToolResult, clamps: Iterable[TextClamp], step: str) -> ToolResult:
    parts = list(result.parts)
    for clamp in clamps:
        part = parts[clamp.text]
        if isinstance(part, Text):
            parts[clamp.text] = replace(part, text=_shortened(part.text, clamp.head, clamp.tail, step))
    return replace(result, parts=tuple(parts))


def _shortened(text: str, head: int, tail: int, step: str) -> str:
    line = _line(len(text) - head - tail, step)
    return f"{text[:head]}\n{line}\n{text[len(text) - tail :]}" if head + tail else line


def _line(left_out: int, step: str) -> str:
    return f"[… {left_out:,} characters left out; all of it is in step {step} …]"


class MessageSizer(Protocol):
    """Whoever says what messages take, in the name of a counter."""

    @property
    def name(self) -> str:
        """The counter."""

    @property
    def projected(self) -> Mapping[str, tuple[HistoryItem, ...]]:
        """What is remembered of steps: their messages, as they are sent."""

    def remember(self, step: str, sent: tuple[HistoryItem, ...]) -> None:
        """Remember the messages of a step."""

    def count_tokens(self, message: Message) -> int:
        """What a message takes."""

    def count_step_tokens(self, step: Step) -> list[int]:
        """What each message of a step takes, as it is sent."""

    def count_bytes(self, message: Message) -> int:
        """How many bytes a message has in a request."""


class NullSizer:
    """For those who only want to read: nothing is counted, and no counter is needed."""

    name = ""
    projected: Mapping[str, tuple[HistoryItem, ...]] = MappingProxyType({})

    def remember(self, step: str, sent: tuple[HistoryItem, ...]) -> None:
        """Nothing is remembered."""

    def count_tokens(self, message: Message) -> int:  # noqa: ARG002 - whatever it is
        """Nothing."""
        return 0

    def count_step_tokens(self, step: Step) -> list[int]:
        """Nothing."""
        return [0] * len(step.messages)

    def count_bytes(self, message: Message) -> int:  # noqa: ARG002 - as above
        """Nothing."""
        return 0


class TokenSizer:
    """Weighs with one counter; what others weighed is weighed again, once.

    Steps are remembered for one thread only: a tail that drops steps has them dropped here too.

    Args:
        counter: Who counts.
    """

    def __init__(self, counter: CachingCounter) -> None:
        self.counter = counter
        self.projected: dict[str, tuple[HistoryItem, ...]] = {}
        self.grouped: dict[object, GroupedItems] = {}
        self.placed: dict[tuple[str, int, int], Placement] = {}
        self._known: dict[str, list[int]] = {}
        self._hidden: dict[tuple[str, int], HistoryItem] = {}

    @property
    def name(self) -> str:
        """The counter."""
        return self.counter.name

    def forget_all_but(self, steps: Collection[str]) -> None:
        """Drop what is remembered of all steps but some; several threads may weigh meanwhile."""
        keyed: tuple[dict[Any, Any], ...] = (self.projected, self._known, self.placed, self._hidden)
        for known in keyed:
            for key in list(known):
                if (key if isinstance(key, str) else key[0]) not in steps:
                    known.pop(key, None)

    def count_tokens(self, message: Message) -> int:
        """What a message takes."""
        return self.counter.count_messages([message])

    def count_bytes(self, message: Message) -> int:
        """How many bytes a message has in a request."""
        return count_message_bytes(message)

    def replace_media(self, sent: HistoryItem) -> HistoryItem:
        """A message with its pictures and documents in words; the same where it has none."""
        key = sent.step, sent.place
        known = self._hidden.get(key)
        if known is None:
            self._hidden[key] = known = replace_item_media(sent, self.count_tokens)
        # What was said before it was put into words is not known wherever it is read.
        return known._replace(said=replace_original_media(sent)) if known.hidden > sent.hidden else sent

    def remember(self, step: str, sent: tuple[HistoryItem, ...]) -> None:
        """Remember the messages of a step."""
        self.projected[step] = sent

    def count_step_tokens(self, step: Step) -> list[int]:
        """What each message of a step takes, as it is sent."""
        # What was said counts in its seal, as it is sent.
        if step.counter == self.counter.name and step.kind != "input" and "clamp" not in step.data:
            sizes = step.data.get("sizes")
            if isinstance(sizes, list | tuple) and len(sizes) == len(step.messages):
                return [int(size) for size in sizes]
            if len(step.messages) == 1:
                return [step.tokens]
        known = self._known.get(step.id)
        if known is None:
            self._known[step.id] = known = [self.count_tokens(message) for message in get_sent_messages(step)]
        return known
