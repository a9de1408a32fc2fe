"""The newest steps of a thread in memory, read on demand, with the tokens and bytes of their messages.

A long tool result is stored whole and sent as head and tail. The cut is stored with its step, so that every later call
sends the same bytes.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from dataclasses import replace
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from nexus_core.dialects.requests import count_message_bytes
from nexus_core.errors import LedgerError
from nexus_core.history.shorten import split_head_and_tail
from nexus_core.history.truncation import replace_item_media, replace_original_media
from nexus_core.ledger.codec import StoredStep
from nexus_core.types.messages import Text, ToolResult
from nexus_core.types.payloads import TextClamp

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from nexus_core.history.truncation import GroupedItems, HistoryItem
    from nexus_core.tokens.counters import CachingCounter
    from nexus_core.types.ledger import Ledger, NewStep, Step
    from nexus_core.types.messages import Message
    from nexus_core.types.prompt import Placement

PLACEHOLDER_STEP_ID = "0" * 26
"""As long as a step id, which does not exist before the step is recorded."""


class ProjectionPrefix(NamedTuple):
    """The first steps of a projection, up to the start of a turn, and the messages that they became.

    Attributes:
        steps: The ids of the steps.
        items: Their messages. A projection that starts with them copies the list.
    """

    steps: list[str]
    items: list[HistoryItem]


class MessageSizer(Protocol):
    """Protocol: token and byte sizes of messages."""

    projected: ProjectionPrefix | None
    """The prefix with which the next projection of the same thread may start; None to start at the first step."""

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
    projected: ProjectionPrefix | None = None

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
        projected: The start of the last projection, for the next one.
        groups: Message groups of the last calls, for `fit_items`.
        placements: Placements of messages, by step, index in the step and index in the call.
    """

    def __init__(self, counter: CachingCounter) -> None:
        self.counter = counter
        self.items_by_step: dict[str, tuple[HistoryItem, ...]] = {}
        self.projected: ProjectionPrefix | None = None
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
        self.projected = None
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

    def count_step(self, step: NewStep, limit: int) -> NewStep:
        """Return a step with the tokens of its messages; tool results above `limit` are cut once and for all."""
        payload, clamps = step.payload, find_clamps(step.messages, limit, self.counter.count)
        if clamps:
            payload = payload.replace(clamps=clamps)
        # An input counts in the step that has it rendered.
        is_counted = step.kind != "input" or step.closes
        messages = apply_clamps(step.messages, clamps, PLACEHOLDER_STEP_ID) if is_counted else ()
        sizes = [self.count_tokens(message) for message in messages]
        if len(sizes) > 1:
            payload = payload.replace(sizes=sizes)
        return step.with_payload(payload, tokens=sum(sizes), counter=self.name)

    def count_step_tokens(self, step: Step) -> list[int]:
        """Return the tokens of each message of a step, as it is sent."""
        # The tokens of an input are those of its rendered form, which another step holds.
        if step.counter == self.counter.name and step.kind != "input" and not step.payload.clamps:
            sizes = step.payload.sizes
            if sizes and len(sizes) == len(step.messages):
                return list(sizes)
            if len(step.messages) == 1:
                return [step.tokens]
        cached = self._step_tokens.get(step.id)
        if cached is None:
            self._step_tokens[step.id] = cached = [self.count_tokens(message) for message in get_sent_messages(step)]
        return cached


# ---- long tool results ----------------------------------------------------------------------------------------------


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
        cut = None
        if sizes[index] > share:
            cut = split_head_and_tail(
                texts[index], share, count, lambda omitted: _build_omission_line(omitted, PLACEHOLDER_STEP_ID)
            )
        if cut is not None:
            yield index, *cut
        limit -= min(sizes[index], share)


def get_sent_messages(step: Step) -> tuple[Message, ...]:
    """Return the messages of a step as they are sent, with long tool results cut."""
    clamps = step.payload.clamps
    return apply_clamps(step.messages, clamps, step.id) if clamps else step.messages


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


STEPS_OF_FIRST_READ = 32
"""Steps of the first read; doubled each time that they are not enough."""
MAX_CACHED_RANGES = 32
"""Ranges farther back in the thread that are cached, and as many single steps."""
STEPS_BETWEEN_TRIMS = 128
"""New steps after which unused ones are dropped: often enough to keep memory flat, seldom enough not to slow down a
call. The ledger still has them."""
MAX_SIZERS = 4
"""A session that changes its model may change its token counter; few use more than two."""


class ThreadCache:
    """The newest steps of a session's thread, without gaps.

    Holds what the last calls have asked for, however long the thread grows. Thread-safe. Callers must not change the
    lists that its methods return.

    Args:
        ledger: The ledger with the steps.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._steps: list[Step] = []
        self._positions: dict[str, int] = {}
        self._ranges: dict[tuple[str, str], list[Step]] = {}
        self._single_steps: dict[str, Step] = {}
        self._unchecked: list[Step] = []
        self._changed: dict[str, None] = {}
        self._sizers: dict[str, TokenSizer] = {}
        self._lowest_used: int | None = None  # the lowest position asked for since the last trim
        self._since_trim = 0
        self._lock = Lock()

    def add(self, step: Step) -> None:
        """Add a step that was just appended, so that it need not be read or checked."""
        with self._lock:
            if self._steps and step.parent == self._steps[-1].id:
                self._extend([step], is_recorded_here=True)

    def get_sizer(self, shared: TokenSizer) -> TokenSizer:
        """Return a sizer with the same counter that caches this thread's steps.

        Args:
            shared: The sizer of all sessions with that counter.
        """
        sizer = self._sizers.get(shared.name)
        if sizer is None or sizer.counter is not shared.counter:
            if len(self._sizers) >= MAX_SIZERS:
                self._sizers.clear()
            self._sizers[shared.name] = sizer = TokenSizer(shared.counter)
        return sizer

    def get_step(self, step_id: str) -> Step:
        """Return the step with an id, from the ledger if it is not cached.

        Raises:
            LedgerError: The ledger has no such step.
        """
        with self._lock:
            if step_id in self._positions:
                return self._get_known(step_id)
            if step_id not in self._single_steps:
                step = self._ledger.step(step_id)
                if step is None:
                    hint = "`nexus ledger verify` says what is missing"
                    raise LedgerError(f"there is no step {step_id}", where=self._ledger.url, hint=hint)
                self._single_steps = dict([(step_id, step), *self._single_steps.items()][:MAX_CACHED_RANGES])
                self._unchecked.append(step)
            return self._single_steps[step_id]

    def read_turn(self, tip: str) -> list[Step]:
        """Return the steps of a step's turn, up to that step."""
        with self._lock:
            self._read_up_to(tip)
            turn = self._get_known(tip).turn
        return self.read_since(turn, tip)

    def read_since(self, first: str, tip: str) -> list[Step]:
        """Return the steps from `first` to `tip`, both included.

        Raises:
            LedgerError: `first` is not an ancestor of `tip`.
        """
        with self._lock:
            self._read_up_to(tip)
            if first not in self._positions:
                earlier = self._ledger.step(first)
                if earlier is not None:
                    self._read_back_to(earlier.position)
            if first not in self._positions or self._positions[first] > self._positions[tip]:
                raise LedgerError(
                    f"step {first} is not among those before {tip}",
                    where=self._ledger.url,
                    hint="`nexus ledger verify` says what is wrong",
                )
            return self._slice(self._positions[first], tip)

    def read_range(self, first: str, last: str) -> list[Step]:
        """Return the steps from `first` to `last`, both included.

        The steps after them are not read.
        """
        with self._lock:
            if first in self._positions and last in self._positions:
                return self._slice(self._positions[first], last)
            if (first, last) not in self._ranges:
                self._ranges = {(first, last): self._ledger.thread(last, first=first), **self._ranges}
                self._ranges = dict(list(self._ranges.items())[:MAX_CACHED_RANGES])
                self._unchecked += self._ranges[first, last]
            return self._ranges[first, last]

    def read_newest(self, tip: str, is_enough: Callable[[Sequence[Step]], bool]) -> list[Step]:
        """Return the newest steps up to `tip`, until `is_enough` or all are read."""
        with self._lock:
            self._read_up_to(tip)
            count = STEPS_OF_FIRST_READ
            while True:
                first = max(0, self._positions[tip] - count + 1)
                self._read_back_to(first)
                steps = self._slice(first, tip)
                if first == 0 or is_enough(steps):
                    return steps
                count *= 2

    def list_changed_steps(self) -> tuple[str, ...]:
        """Return the ids of steps read so far whose content was changed."""
        with self._lock:
            self._check_new_steps()
            return tuple(self._changed)

    def _check_new_steps(self) -> None:
        new, self._unchecked = self._unchecked, []
        self._changed |= {step.id: None for step in new if isinstance(step, StoredStep) and not step.is_as_recorded}

    def _read_up_to(self, tip: str) -> None:
        """Read forward until a step is cached."""
        if tip in self._positions:
            return
        newer: list[Step] = []
        if self._steps:
            with suppress(LedgerError):  # the tip is before all cached steps, or on another branch
                newer = self._ledger.thread(tip, first=self._steps[-1].id)
        if newer and newer[0].id == self._steps[-1].id:
            self._extend(newer[1:])
            return
        self._steps.clear()
        self._positions.clear()
        self._extend(self._ledger.thread(tip, limit=STEPS_OF_FIRST_READ))

    def _read_back_to(self, position: int) -> None:
        """Read backward until a position is cached."""
        first = self._steps[0]
        if first.position > position and first.parent is not None:
            earlier = self._ledger.thread(first.parent, limit=first.position - position)
            self._steps[:0] = earlier
            self._positions.update((step.id, step.position) for step in earlier)
            self._unchecked += earlier

    def _extend(self, steps: Sequence[Step], *, is_recorded_here: bool = False) -> None:
        self._since_trim += len(steps)
        if self._since_trim >= STEPS_BETWEEN_TRIMS:
            self._trim()
        self._steps += steps
        if not is_recorded_here:
            self._unchecked += steps
        self._positions.update((step.id, step.position) for step in steps)

    def _trim(self) -> None:
        """Drop the steps before all that were used since the last trim.

        The newest step stays.
        """
        self._check_new_steps()
        if self._steps:
            newest = self._steps[-1].position
            count = (newest if self._lowest_used is None else min(self._lowest_used, newest)) - self._steps[0].position
            for step in self._steps[:count]:
                del self._positions[step.id]
            del self._steps[:count]
        self._lowest_used, self._since_trim = None, 0
        for sizer in self._sizers.values():
            sizer.retain(self._positions)

    def _get_known(self, step_id: str) -> Step:
        return self._steps[self._positions[step_id] - self._steps[0].position]

    def _slice(self, first: int, tip: str) -> list[Step]:
        start = self._steps[0].position
        self._lowest_used = first if self._lowest_used is None else min(self._lowest_used, first)
        return self._steps[first - start : self._positions[tip] - start + 1]
