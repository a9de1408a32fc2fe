"""Message groups: a reply with its reasoning, tool calls and their results.

A group begins with an assistant message that has reasoning or a tool call, continues with the assistant messages after
it, and ends with the messages that contain the results. The message about a session's start belongs to the group after
it. Every other message is a group by itself. Messages added later change no group except the newest.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict, deque
from itertools import accumulate
from operator import neg
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.types.messages import SESSION_START, Message, Reasoning, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import datetime

    from nexus_core.types.messages import Role

_ANY_TOOL = ("any", "")


class UnansweredCalls:
    """Tool calls of one batch, in their order, that have no result yet.

    A result answers the first call with its id. A result without an id, or with an id that no call has, answers the
    first call of that tool that has no id itself. If there is none, a result without an id answers the first call of
    that tool (of any tool, if it does not name one).
    """

    def __init__(self, calls: Iterable[ToolCall] = ()) -> None:
        self._calls: list[ToolCall] = []
        self._indices: set[int] = set()
        self._by_id: defaultdict[str, deque[int]] = defaultdict(deque)
        self._by_name: defaultdict[tuple[str, str], deque[int]] = defaultdict(deque)
        self._named = 0  # number of calls in the queues by name, which are filled lazily: few results need them
        for call in calls:
            self.add(call)

    def __bool__(self) -> bool:
        return bool(self._indices)

    def __contains__(self, index: int) -> bool:
        return index in self._indices

    def add(self, call: ToolCall) -> int:
        """Add a call and return its index in the batch."""
        index = len(self._calls)
        self._calls.append(call)
        self._indices.add(index)
        self._by_id[call.id].append(index)
        return index

    def has(self, call_id: str) -> bool:
        """Return True if a call with that id has no result yet."""
        return bool(call_id) and self._first(self._by_id.get(call_id)) is not None

    def take(self, result: ToolResult) -> int | None:
        """Remove the call that a result answers and return its index in the batch, or None if there is none."""
        index = self._find(result)
        if index is not None:
            self._indices.remove(index)
        return index

    def _find(self, result: ToolResult) -> int | None:
        index = self._first(self._by_id.get(result.call_id)) if result.call_id else None
        if index is None:
            index = self._first_named("without id", result.name)
        if index is None and not result.call_id:
            index = self._first_named("name", result.name) if result.name else self._first_named(*_ANY_TOOL)
        return index

    def _first_named(self, kind: str, name: str) -> int | None:
        for index in range(self._named, len(self._calls)):
            call = self._calls[index]
            self._by_name["name", call.name].append(index)
            self._by_name[_ANY_TOOL].append(index)
            if not call.id:
                self._by_name["without id", call.name].append(index)
        self._named = len(self._calls)
        return self._first(self._by_name.get((kind, name)))

    def _first(self, queue: deque[int] | None) -> int | None:
        while queue and queue[0] not in self._indices:
            queue.popleft()
        return queue[0] if queue else None


class MessageLinks:
    """What ties a message to its neighbors: its role, and the ids of its tool calls and results.

    Attributes:
        message: The message.
        role: Its role.
        calls: The ids of its tool calls, in order.
        results: The call ids of its tool results, in order.
        starts_group: True if it has a tool call or reasoning.
    """

    __slots__ = ("calls", "message", "results", "role", "starts_group")

    def __init__(self, message: Message) -> None:
        self.message = message
        self.role = message.role
        self.calls: tuple[str, ...] = ()
        self.results: tuple[str, ...] = ()
        self.starts_group = False
        for part in message.parts:
            if isinstance(part, ToolCall):
                self.calls += (part.id,)
            elif isinstance(part, ToolResult):
                self.results += (part.call_id,)
            self.starts_group = self.starts_group or isinstance(part, ToolCall | Reasoning)


def group_messages(messages: Sequence[Message]) -> list[IndexRange]:
    """Return all groups of a list, oldest first."""
    starts = list(find_group_starts(lambda index: MessageLinks(messages[index]), len(messages)))[::-1]
    if len(starts) > 1 and is_session_start(messages[0]) and not _has_results(messages[1]):
        del starts[1]
    return list(map(IndexRange, starts, [*starts[1:], len(messages)]))


def find_group_starts(read: Callable[[int], MessageLinks], end: int, first: int = 0) -> Iterator[int]:
    """Yield where each group of the messages before `end` begins, newest first. Each message is read once, lazily.

    Args:
        read: Returns the links of the message at an index.
        end: The number of messages.
        first: The index to stop at: earlier messages are in no group.
    """
    replies: list[MessageLinks] = []
    results: list[MessageLinks] = []
    for index in range(end - 1, first - 1, -1):
        links = read(index)
        if links.role == "assistant":
            replies.append(links)
            continue
        if replies or (results and not links.results):
            is_single = len(replies) == 1 >= len(results)
            if is_single and (not results or _are_answers(results[0].results, replies[0].calls)):
                yield index + 1  # fast path: most replies
            else:
                yield from _find_run_starts(index + 1, replies, results)
            replies, results = [], []
        if links.results:
            results.append(links)
        else:
            yield index
    if replies or results:
        yield from _find_run_starts(first, replies, results)


def build_session_start_message(started: datetime) -> Message:
    """Return the first message of a session: the time of its start, in local time."""
    text = f"[Session started: {started:%Y-%m-%d %H:%M} (local)]"
    return Message("user", text, extra={SESSION_START: started.isoformat(timespec="minutes")})


def is_session_start(message: Message) -> bool:
    """Return True for the message about a session's start."""
    return SESSION_START in message.extra


def is_user_input(message: Message) -> bool:
    """Return True for a user message without tool results."""
    return message.role == "user" and not _has_results(message)


def get_sender(message: Message) -> Role:
    """Return the role of a message's sender; `tool` for a user message with tool results."""
    return "tool" if _has_results(message) else message.role


def _find_run_starts(first: int, replies: list[MessageLinks], results: list[MessageLinks]) -> Sequence[int]:
    """Return where the groups of neighbouring replies and the results after them begin, newest first.

    Args:
        first: The index of the first message.
        replies: The replies, newest first.
        results: The messages with results, newest first.
    """
    last = first + len(replies) + len(results) - 1
    leading = next((place for place, links in enumerate(reversed(replies)) if links.starts_group), len(replies))
    if leading == len(replies):
        return range(last, first - 1, -1)
    end = first + len(replies) + _count_answers(replies[::-1][leading:], results[::-1])
    # The messages after the group are results of calls that are not in it.
    return [*range(last, end - 1, -1), *range(first + leading, first - 1, -1)]


def _are_answers(results: Sequence[str], calls: Sequence[str]) -> bool:
    """Return True if there is one result for each call, in order, by the ids of both."""
    return bool(calls) and calls == results and "" not in calls


def _count_answers(replies: list[MessageLinks], results: list[MessageLinks]) -> int:
    """Return how many of the messages with results answer the calls of some replies, both oldest first."""
    call_ids = [call_id for links in replies for call_id in links.calls]
    if _are_answers([call_id for links in results for call_id in links.results], call_ids):
        return len(results)  # the common case
    waiting = UnansweredCalls(call for links in replies for call in links.message.tool_calls)
    for answers, links in enumerate(results):
        if None in [waiting.take(result) for result in links.message.tool_results]:
            return answers
    return len(results)


def _has_results(message: Message) -> bool:
    for part in message.parts:  # noqa: SIM110 - called for every message; `any` with a generator is three times slower
        if isinstance(part, ToolResult):
            return True
    return False


class RunningSums:
    """Known group sizes; appending one is O(1).

    Args:
        sizes: The tokens of each group, oldest first.
    """

    def __init__(self, sizes: Iterable[int] = ()) -> None:
        # sums[i] is the size of all groups before i, so that the size of any range is one subtraction.
        self._sums = [0, *accumulate(sizes)]

    def append(self, tokens: int) -> None:
        """Append a group."""
        self._sums.append(self._sums[-1] + tokens)

    def grow(self, tokens: int) -> None:
        """Add tokens to the newest group."""
        self._sums[-1] += tokens

    @property
    def total(self) -> int:
        """The tokens of all groups."""
        return self._sums[-1]

    def __len__(self) -> int:
        return len(self._sums) - 1

    def __getitem__(self, index: int) -> int:
        place = range(len(self))[index]
        return self._sums[place + 1] - self._sums[place]

    def newest(self, budget: int, *, at_least: int = 1) -> int:
        """Return how many of the newest groups fit into a budget together, never fewer than `at_least`."""
        first = bisect_left(self._sums, self.total - budget) if budget >= 0 else len(self)
        return max(min(at_least, len(self)), len(self) - first)


if TYPE_CHECKING:
    SizedMessage = tuple[Message, int]
    """A message and its tokens."""


class IndexRange(NamedTuple):
    """Neighbouring indices in a list: from `first` up to, but not including, `end`."""

    first: int
    end: int


def join_ranges(spans: Iterable[IndexRange]) -> list[IndexRange]:
    """Return the ranges in ascending order, with overlapping and adjacent ones joined."""
    apart: list[IndexRange] = []
    for span in sorted(spans):
        if apart and span.first <= apart[-1].end:
            apart[-1] = IndexRange(apart[-1].first, max(span.end, apart[-1].end))
        else:
            apart.append(span)
    return apart


def to_ranges(indices: Iterable[int]) -> list[IndexRange]:
    """Return indices as ascending ranges that do not touch."""
    return join_ranges(IndexRange(index, index + 1) for index in indices)


def find_gaps(bounds: IndexRange, ranges: Sequence[IndexRange]) -> list[IndexRange]:
    """Return the ranges within bounds that are before, between and after other ranges."""
    starts = [bounds.first, *(span.end for span in ranges)]
    ends = [*(span.first for span in ranges), bounds.end]
    return [IndexRange(first, end) for first, end in zip(starts, ends, strict=True) if first < end]


class GrowingHistory:
    """Messages in groups that are kept or dropped together, with running sums of their tokens.

    Attributes:
        messages: All messages, oldest first.
        tokens: The tokens of each message.
        sizes: The tokens of each group.
        sound: True if every call has its result and every result its call; calls of the last group may still wait.
        is_whole: False, since the messages that did not fit earlier are not stored.
    """

    is_whole = False

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.tokens: list[int] = []
        self.sizes = RunningSums()
        self.sound = True
        self._bytes = [0]  # of all before each message
        self._starts: list[int] = []
        self._waiting = UnansweredCalls()
        self._in_run = False

    def append(self, message: Message, tokens: int, size: int = 0) -> None:
        """Append a message to the newest group, or as a new group."""
        if self._joins(message):
            self.sizes.grow(tokens)
        else:
            self.sound = self.sound and not self._waiting and not message.tool_results
            self._waiting = UnansweredCalls()
            self._starts.append(len(self.messages))
            self.sizes.append(tokens)
        self.messages.append(message)
        self.tokens.append(tokens)
        self._bytes.append(self._bytes[-1] + size)
        self._remember(message)

    @property
    def bounds(self) -> IndexRange:
        """The indices of all messages."""
        return IndexRange(0, len(self.messages))

    def fits(self, budget: int) -> bool:
        """Return True if all messages fit into a budget."""
        return self.sizes.total <= budget

    def ranges(self, slices: Iterable[slice]) -> list[IndexRange]:
        """Return the index ranges of the selected groups, ascending, with neighbours joined."""
        chosen = (part.indices(len(self._starts)) for part in slices)
        return join_ranges(IndexRange(self._bound(first), self._bound(end)) for first, end, _ in chosen if first < end)

    def pick(self, ranges: Iterable[IndexRange]) -> list[SizedMessage]:
        """Return the messages of some ranges with their tokens."""
        return [
            sized
            for first, end in ranges
            for sized in zip(self.messages[first:end], self.tokens[first:end], strict=True)
        ]

    def measure(self, ranges: Iterable[IndexRange]) -> int:
        """Return the tokens of some ranges."""
        return sum(sum(self.tokens[first:end]) for first, end in ranges)

    def measure_bytes(self, ranges: Iterable[IndexRange]) -> int:
        """Return the bytes of some ranges in a request body; messages appended without a size count 0."""
        return sum(self._bytes[end] - self._bytes[first] for first, end in ranges)

    def is_grouped(self, index: int) -> bool:
        """Return True: every message is in a group."""
        return 0 <= index < len(self.messages)

    def is_open(self, index: int) -> bool:  # noqa: ARG002 - the protocol of `select`
        """Return False: a conversation in memory has no turns."""
        return False

    def sender(self, index: int) -> Role:
        """Return the role of a message's sender."""
        return get_sender(self.messages[index])

    def _bound(self, group: int) -> int:
        return self._starts[group] if group < len(self._starts) else len(self.messages)

    def _joins(self, message: Message) -> bool:
        if len(self.messages) == 1 and is_session_start(self.messages[0]) and not message.tool_results:
            return True
        if message.role == "assistant":
            return self._in_run
        answered = [self._waiting.take(result) for result in message.tool_results]
        return bool(answered) and None not in answered

    def _remember(self, message: Message) -> None:
        calls = message.tool_calls
        for call in calls:
            self.sound = self.sound and bool(call.id) and not self._waiting.has(call.id)
            self._waiting.add(call)
        # Replies after reasoning or a call belong to the same group until another role follows.
        leads = bool(calls) or any(isinstance(part, Reasoning) for part in message.parts)
        self._in_run = message.role == "assistant" and (self._in_run or leads)


class LazyGroups:
    """Sizes of groups, counted lazily from the newest on.

    Args:
        read: Returns the links of the message at an index; called once per index, except for the oldest group.
        first: Index of the first message of the conversation; earlier ones are ignored.
        end: Index after its last message.
        size: Returns the size of the message at an index.

    Attributes:
        bounds: The indices of the conversation.
        is_whole: True, since the list starts with the first message.
    """

    is_whole = True

    def __init__(self, read: Callable[[int], MessageLinks], first: int, end: int, size: Callable[[int], int]) -> None:
        self._read = read
        self._size = size
        self.bounds = IndexRange(first, end)
        self._older: Iterator[int] = find_group_starts(read, end, first)
        self._starts = [end]  # of the groups that were found, newest first, after the end of the newest
        self._sums = [0]  # of as many of the newest groups
        self._oldest: IndexRange | None = None

    def __len__(self) -> int:
        while self._find_one_more():
            pass
        return len(self._sums) - 1

    def __getitem__(self, index: int) -> int:
        if index == 0:
            return sum(map(self._size, range(*self._oldest_group())))
        if index > 0:
            index -= len(self)
        while len(self._sums) <= -index and self._find_one_more():
            pass
        if not 0 < -index < len(self._sums):
            raise IndexError(index)
        return self._sums[-index] - self._sums[-index - 1]

    def newest(self, budget: int, *, at_least: int = 1) -> int:
        """Return how many of the newest groups fit into a budget together, never fewer than `at_least`."""
        # One group more than necessary is counted, so that its size is known to the decision that leaves it out.
        while len(self._sums) <= at_least + 1 and self._find_one_more():
            pass
        starts, sums, size = self._starts, self._sums, self._size
        end, total = starts[-1], sums[-1]
        while total <= budget:  # inline, since most of the time of `fit` is spent here
            start = next(self._older, None)
            if start is None:
                break
            total += size(start) if start + 1 == end else sum([size(place) for place in range(start, end)])
            starts.append(start)
            sums.append(total)
            end = start
        return min(max(bisect_right(self._sums, budget) - 1, at_least), len(self._sums) - 1)

    def measure_again(self, group: IndexRange) -> None:
        """Count a group again whose messages have changed in size."""
        place = self._find_start(group.first)
        if place:
            added = sum(map(self._size, range(*group))) - (self._sums[place] - self._sums[place - 1])
            self._sums[place:] = [total + added for total in self._sums[place:]]

    def find_before(self, end: int) -> IndexRange | None:
        """Return the group that ends before an index, or None if no group ends there."""
        while self._starts[-1] >= end and self._find_one_more():
            pass
        place = bisect_left(self._starts, -end, key=neg)
        is_found = place + 1 < len(self._starts) and self._starts[place] == end
        return IndexRange(self._starts[place + 1], end) if is_found else None

    def group(self, index: int) -> IndexRange | None:
        """Return the group at a negative index (-1 is the newest), or None if there is none."""
        while len(self._sums) <= -index and self._find_one_more():
            pass
        return IndexRange(self._starts[-index], self._starts[-index - 1]) if -index < len(self._sums) else None

    @property
    def sizes(self) -> LazyGroups:
        """The sizes of the groups: the object itself."""
        return self

    def fits(self, budget: int) -> bool:
        """Return True if all groups fit into a budget. Only one group more than fits is counted."""
        return self.group(-self.newest(budget, at_least=0) - 1) is None

    def measure(self, ranges: Iterable[IndexRange]) -> int:
        """Return the size of some ranges."""
        return sum(map(self._measure, ranges))

    def is_grouped(self, index: int) -> bool:
        """Return True: every message of the conversation is in a group."""
        return self.bounds.first <= index < self.bounds.end

    def is_open(self, index: int) -> bool:  # noqa: ARG002 - the protocol of `select`
        """Return False: a list has no turns."""
        return False

    def sender(self, index: int) -> Role:
        """Return the role of a message's sender."""
        links = self._read(index)
        return "tool" if links.results else links.role

    def ranges(self, slices: Iterable[slice]) -> list[IndexRange]:
        """Return the index ranges of the selected groups, ascending, with neighbours joined."""
        return join_ranges(filter(None, map(self._span, slices)))

    def _measure(self, span: IndexRange) -> int:
        if span.end == self.bounds.end and (place := self._find_start(span.first)):  # fast path: the newest groups
            return self._sums[place]
        return sum(map(self._size, range(*span)))

    def _find_start(self, index: int) -> int:
        """Return how many of the newest groups begin at an index or after it; 0 if none begins there."""
        place = bisect_left(self._starts, -index, key=neg)
        return place if place < len(self._starts) and self._starts[place] == index else 0

    def _span(self, part: slice) -> IndexRange | None:
        if part == slice(0, 1):
            return self._oldest_group() if self.bounds.end > self.bounds.first else None
        if part.start is not None and part.start < 0 and part.stop is None:
            oldest = self.group(part.start) or self.group(-len(self))
            return IndexRange(oldest.first, self.bounds.end) if oldest else None
        first, last, _ = part.indices(len(self))
        starts = self._starts[::-1]
        return IndexRange(starts[first], starts[last]) if first < last else None

    def _find_one_more(self) -> bool:
        start = next(self._older, None)
        if start is None:
            return False
        self._sums.append(self._sums[-1] + sum([self._size(place) for place in range(start, self._starts[-1])]))
        self._starts.append(start)
        return True

    def _oldest_group(self) -> IndexRange:
        """Return the first group, reading from the beginning until another starts."""
        if self._oldest is None:
            beginning = GrowingHistory()
            for place in range(*self.bounds):
                beginning.append(self._read(place).message, 0)
                if len(beginning.sizes) > 1:
                    break
            self._oldest = IndexRange(self.bounds.first, self.bounds.first + group_messages(beginning.messages)[0].end)
        return self._oldest
