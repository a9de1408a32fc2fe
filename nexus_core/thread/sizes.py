"""Token and byte sizes of messages, and truncation of long tool results.

A long tool result is stored whole and sent as head and tail. The cut is stored with its step, so that every later call
sends the same bytes.
"""

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
"""As long as a step id, which does not exist before the step is recorded."""


class MessageSizer(Protocol):
    """Protocol: token and byte sizes of messages."""

    @property
    def name(self) -> str:
        """The name of the token counter."""

    @property
    def items_by_step(self) -> Mapping[str, tuple[HistoryItem, ...]]:
        """Cached messages as they are sent, by step id."""

    def cache_items(self, step: str, items: tuple[HistoryItem, ...]) -> None:
        """Cache the messages of a step."""

    def count_tokens(self, message: Message) -> int:
        """Return the tokens of a message."""

    def count_step_tokens(self, step: Step) -> list[int]:
        """Return the tokens of each message of a step, as it is sent."""

    def count_bytes(self, message: Message) -> int:
        """Return the bytes of a message in a request body, at most."""


class NullSizer:
    """Sizer for callers that only read: counts nothing and needs no counter."""

    name = ""
    items_by_step: Mapping[str, tuple[HistoryItem, ...]] = MappingProxyType({})

    def cache_items(self, step: str, items: tuple[HistoryItem, ...]) -> None:
        """Do nothing."""

    def count_tokens(self, message: Message) -> int:  # noqa: ARG002 - part of the protocol
        """Return zero."""
        return 0

    def count_step_tokens(self, step: Step) -> list[int]:
        """Return zero for each message."""
        return [0] * len(step.messages)

    def count_bytes(self, message: Message) -> int:  # noqa: ARG002 - part of the protocol
        """Return zero."""
        return 0


class TokenSizer:
    """Sizes by one token counter.

    Steps that another counter counted are counted again, once.

    Caches the steps of one thread; its `ThreadCache` drops them here too (`retain`).

    Args:
        counter: The token counter.

    Attributes:
        items_by_step: Messages as they are sent, by step id.
        groups: Message groups of the last calls, for `fit_items`.
        placements: Placements of messages, by step, index in the step and index in the call.
    """

    def __init__(self, counter: CachingCounter) -> None:
        self.counter = counter
        self.items_by_step: dict[str, tuple[HistoryItem, ...]] = {}
        self.groups: dict[object, GroupedItems] = {}
        self.placements: dict[tuple[str, int, int], Placement] = {}
        self._step_tokens: dict[str, list[int]] = {}
        self._masked_items: dict[tuple[str, int], HistoryItem] = {}

    @property
    def name(self) -> str:
        """The name of the token counter."""
        return self.counter.name

    def retain(self, steps: Collection[str]) -> None:
        """Drop the cached sizes of all steps but `steps`; thread-safe."""
        keyed: tuple[dict[Any, Any], ...] = (self.items_by_step, self._step_tokens, self.placements, self._masked_items)
        for cached in keyed:
            for key in list(cached):
                if (key if isinstance(key, str) else key[0]) not in steps:
                    cached.pop(key, None)

    def count_tokens(self, message: Message) -> int:
        """Return the tokens of a message."""
        return self.counter.count_messages([message])

    def count_bytes(self, message: Message) -> int:
        """Return the bytes of a message in a request body, at most."""
        return count_message_bytes(message)

    def replace_media(self, item: HistoryItem) -> HistoryItem:
        """Return a message with placeholders for images and documents.

        The same message if it has none.
        """
        key = item.step, item.place
        cached = self._masked_items.get(key)
        if cached is None:
            self._masked_items[key] = cached = replace_item_media(item, self.count_tokens)
        if cached.masked_media <= item.masked_media:
            return item
        # Not every reader of a step knows the raw input, so it is not taken from the cache.
        return cached._replace(original=replace_original_media(item))

    def cache_items(self, step: str, items: tuple[HistoryItem, ...]) -> None:
        """Cache the messages of a step."""
        self.items_by_step[step] = items

    def count_step_tokens(self, step: Step) -> list[int]:
        """Return the tokens of each message of a step, as it is sent."""
        # The tokens of an input are those of its rendered form, which another step holds.
        if step.counter == self.counter.name and step.kind != "input" and "clamp" not in step.data:
            sizes = step.data.get("sizes")
            if isinstance(sizes, list | tuple) and len(sizes) == len(step.messages):
                return [int(size) for size in sizes]
            if len(step.messages) == 1:
                return [step.tokens]
        cached = self._step_tokens.get(step.id)
        if cached is None:
            self._step_tokens[step.id] = cached = [self.count_tokens(message) for message in get_sent_messages(step)]
        return cached


# ---- long tool results ----------------------------------------------------------------------------------------------


class TextClamp(NamedTuple):
    """The cut in one text of a tool result.

    Attributes:
        message: Index of the message in its step.
        part: Index of the tool result in the message.
        text: Index of the text in the tool result.
        head: Characters kept of the beginning.
        tail: Characters kept of the end.
    """

    message: int
    part: int
    text: int
    head: int
    tail: int


def find_clamps(messages: Sequence[Message], limit: int, count: Callable[[str], int]) -> list[TextClamp]:
    """Return the cuts that limit the texts of each tool result to `limit` tokens."""
    return [
        TextClamp(message_index, part_index, *cut)
        for message_index, message in enumerate(messages)
        for part_index, part in enumerate(message.parts)
        if isinstance(part, ToolResult)
        for cut in _find_cuts(part, limit, count)
    ]


def _find_cuts(result: ToolResult, limit: int, count: Callable[[str], int]) -> Iterator[tuple[int, int, int]]:
    """Yield index, head and tail of the texts to cut.

    Short texts stay whole and leave the rest of their share to longer ones.
    """
    texts = {index: part.text for index, part in enumerate(result.parts) if isinstance(part, Text)}
    sizes = {index: count(text) for index, text in texts.items()}
    shortest_first = sorted(sizes, key=lambda index: (sizes[index], index))
    for number, index in enumerate(shortest_first):
        share = limit // (len(shortest_first) - number)
        cut = split_head_and_tail(
            texts[index], share, count, lambda omitted: _build_omission_line(omitted, PLACEHOLDER_STEP_ID)
        )
        if cut is not None:
            yield index, *cut
        limit -= min(sizes[index], share)


def get_sent_messages(step: Step) -> tuple[Message, ...]:
    """Return the messages of a step as they are sent, with long tool results cut."""
    clamps = step.data.get("clamp")
    if not isinstance(clamps, list | tuple):
        return step.messages
    return apply_clamps(step.messages, (TextClamp(*each) for each in clamps), step.id)


def apply_clamps(messages: Sequence[Message], clamps: Iterable[TextClamp], step: str) -> tuple[Message, ...]:
    """Return the messages with long texts cut to head and tail.

    A line between them names the step with the whole text.
    """
    by_result: dict[tuple[int, int], list[TextClamp]] = defaultdict(list)
    for clamp in clamps:
        by_result[clamp.message, clamp.part].append(clamp)
    clamped = list(messages)
    for (message_index, part_index), found in by_result.items():
        parts = list(clamped[message_index].parts)
        result = parts[part_index]
        if isinstance(result, ToolResult):
            parts[part_index] = _clamp_result(result, found, step)
        clamped[message_index] = replace(clamped[message_index], parts=tuple(parts))
    return tuple(clamped)


def _clamp_result(result: ToolResult, clamps: Iterable[TextClamp], step: str) -> ToolResult:
    parts = list(result.parts)
    for clamp in clamps:
        part = parts[clamp.text]
        if isinstance(part, Text):
            parts[clamp.text] = replace(part, text=_clamp_text(part.text, clamp.head, clamp.tail, step))
    return replace(result, parts=tuple(parts))


def _clamp_text(text: str, head: int, tail: int, step: str) -> str:
    line = _build_omission_line(len(text) - head - tail, step)
    return f"{text[:head]}\n{line}\n{text[len(text) - tail :]}" if head + tail else line


def _build_omission_line(omitted: int, step: str) -> str:
    return f"[… {omitted:,} characters left out; all of it is in step {step} …]"
