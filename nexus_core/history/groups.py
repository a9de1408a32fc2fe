"""Message groups: a reply with its reasoning, tool calls and their results.

A group begins with an assistant message that has reasoning or a tool call, continues with the assistant messages after
it, and ends with the messages that contain the results. The message about a session's start belongs to the group after
it. Every other message is a group by itself. Messages added later change no group except the newest.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict, deque
from itertools import accumulate
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


_GROUP_STARTS = (ToolCall, Reasoning)


class MessageGroup(NamedTuple):
    """A range of messages in a list that are kept or dropped together.

    Attributes:
        first: The index of the first message.
        last: The index of the last message.
        open: True if a tool call in it has no result yet.
    """

    first: int
    last: int
    open: bool = False


def group_messages(messages: Sequence[Message]) -> list[MessageGroup]:
    """Return all groups of a list, oldest first."""
    found = list(group_newest_first(messages.__getitem__, len(messages)))[::-1]
    if len(found) > 1 and is_session_start(messages[0]) and not _has_results(messages[1]):
        found[:2] = [found[1]._replace(first=0)]
    return found


def group_newest_first(read: Callable[[int], Message], end: int, first: int = 0) -> Iterator[MessageGroup]:
    """Yield the groups of the messages before `end`, newest first. Messages are read lazily, and none twice.

    Args:
        read: Returns the message at an index.
        end: The number of messages.
        first: The index to stop at: earlier messages are in no group.
    """
    replies: list[Message] = []
    results: list[Message] = []
    for index in range(end - 1, first - 1, -1):
        message = read(index)
        if message.role == "assistant":
            replies.append(message)
            continue
        has_results = _has_results(message)
        if replies or (results and not has_results):
            if len(replies) == 1 and not results and not _starts_group(replies[0]):  # fast path: most replies
                yield MessageGroup(index + 1, index + 1)
                replies = []
            elif len(replies) == len(results) == 1 and _answers_all(replies[0], results[0]):  # fast path, too
                yield MessageGroup(index + 1, index + 2)
                replies, results = [], []
            else:
                yield from _split_run(index + 1, replies[::-1], results[::-1])
                replies, results = [], []
        if has_results:
            results.append(message)
        else:
            yield MessageGroup(index, index)
    if replies or results:
        yield from _split_run(first, replies[::-1], results[::-1])


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


def _split_run(first: int, replies: list[Message], results: list[Message]) -> list[MessageGroup]:
    """Return the groups of neighbouring replies and the results after them, newest first."""
    last = first + len(replies) + len(results) - 1
    begin = 0
    while begin < len(replies) and not _starts_group(replies[begin]):
        begin += 1
    if begin == len(replies):  # most replies
        return _build_single_groups(first, last)
    answers, is_open = _count_answers(replies[begin:], results)
    end = first + len(replies) + answers - 1
    group = MessageGroup(first + begin, end, is_open)
    if not begin and end == last:
        return [group]
    # The messages after it are results of calls that are not in this group.
    return [*_build_single_groups(end + 1, last), group, *_build_single_groups(first, first + begin - 1)]


def _answers_all(reply: Message, answer: Message) -> bool:
    """Return True if a message has one result for each tool call of a reply, in order."""
    call_ids = [part.id for part in reply.parts if isinstance(part, ToolCall)]
    if not call_ids or "" in call_ids:
        return False
    return call_ids == [part.call_id for part in answer.parts if isinstance(part, ToolResult)]


def _build_single_groups(first: int, last: int) -> list[MessageGroup]:
    return [MessageGroup(index, index) for index in range(last, first - 1, -1)]


def _count_answers(replies: list[Message], results: list[Message]) -> tuple[int, bool]:
    """Return how many of the messages with results answer these calls, and True if a call has no result then."""
    call_ids = [part.id for message in replies for part in message.parts if isinstance(part, ToolCall)]
    if "" not in call_ids and call_ids == [part.call_id for message in results for part in message.tool_results]:
        return len(results), False  # the common case: one result per call, in order
    waiting = UnansweredCalls(part for message in replies for part in message.tool_calls)
    answers, is_open = 0, bool(waiting)
    for message in results:
        if None in [waiting.take(result) for result in message.tool_results]:
            break
        answers, is_open = answers + 1, bool(waiting)
    return answers, is_open


def _starts_group(message: Message) -> bool:
    for part in message.parts:  # noqa: SIM110 - called for every message; `any` with a generator is three times slower
        if isinstance(part, _GROUP_STARTS):
            return True
    return False


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
        read: Returns the message at an index; called once per index, except for the oldest group.
        first: Index of the first message of the conversation; earlier ones are ignored.
        end: Index after its last message.
        size: Returns the size of the message at an index.

    Attributes:
        bounds: The indices of the conversation.
        is_whole: True, since the list starts with the first message.
    """

    is_whole = True

    def __init__(self, read: Callable[[int], Message], first: int, end: int, size: Callable[[int], int]) -> None:
        self._read = read
        self._size = size
        self.bounds = IndexRange(first, end)
        self._older: Iterator[MessageGroup] = group_newest_first(read, end, first)
        self._newest: list[MessageGroup] = []
        self._sums = [0]
        self._oldest: MessageGroup | None = None

    def __len__(self) -> int:
        while self._find_one_more():
            pass
        return len(self._newest)

    def __getitem__(self, index: int) -> int:
        if index == 0:
            return self._tokens(self._oldest_group())
        if index > 0:
            index -= len(self)
        while len(self._newest) < -index and self._find_one_more():
            pass
        if not 0 < -index <= len(self._newest):
            raise IndexError(index)
        return self._sums[-index] - self._sums[-index - 1]

    def newest(self, budget: int, *, at_least: int = 1) -> int:
        """Return how many of the newest groups fit into a budget together, never fewer than `at_least`."""
        sums = self._sums
        # One group more than necessary is counted, so that its size is known to the decision that leaves it out.
        while len(sums) <= at_least + 1 and self._find_one_more():
            pass
        total, size, newest = sums[-1], self._size, self._newest
        while total <= budget:  # inline, since most of the time of `fit` is spent here
            group = next(self._older, None)
            if group is None:
                break
            first, last, _ = group
            total += size(first) if first == last else sum([size(place) for place in range(first, last + 1)])
            newest.append(group)
            sums.append(total)
        fitting = bisect_right(self._sums, budget) - 1
        return min(max(fitting, at_least), len(self._newest))

    def measure_again(self, group: IndexRange) -> None:
        """Count a group again whose messages have changed in size."""
        place = bisect_left(self._newest, -group.first, key=lambda each: -each.first)
        if place < len(self._newest) and self._newest[place].first == group.first:
            added = self._tokens(self._newest[place]) - (self._sums[place + 1] - self._sums[place])
            self._sums[place + 1 :] = [total + added for total in self._sums[place + 1 :]]

    def find_before(self, end: int) -> IndexRange | None:
        """Return the group that ends before an index, or None if no group ends there."""
        while (not self._newest or self._newest[-1].first >= end) and self._find_one_more():
            pass
        place = bisect_right(self._newest, -end, key=lambda group: -group.first)
        group = self._newest[place] if place < len(self._newest) else None
        return IndexRange(group.first, end) if group is not None and group.last == end - 1 else None

    def group(self, index: int) -> MessageGroup | None:
        """Return the group at a negative index (-1 is the newest), or None if there is none."""
        while len(self._newest) < -index and self._find_one_more():
            pass
        return self._newest[-index - 1] if -index <= len(self._newest) else None

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
        return get_sender(self._read(index))

    def ranges(self, slices: Iterable[slice]) -> list[IndexRange]:
        """Return the index ranges of the selected groups, ascending, with neighbours joined."""
        return join_ranges(filter(None, map(self._span, slices)))

    def _measure(self, span: IndexRange) -> int:
        if span.end == self.bounds.end and self._newest:  # fast path: the newest groups, whose sum is known
            place = bisect_left(self._newest, -span.first, key=lambda group: -group.first)
            if place < len(self._newest) and self._newest[place].first == span.first:
                return self._sums[place + 1]
        return sum(map(self._size, range(*span)))

    def _span(self, part: slice) -> IndexRange | None:
        if part == slice(0, 1):
            oldest = self._oldest_group() if self.bounds.end > self.bounds.first else None
            return IndexRange(oldest.first, oldest.last + 1) if oldest else None
        if part.start is not None and part.start < 0 and part.stop is None:
            oldest = self.group(part.start) or self.group(-len(self))
            return IndexRange(oldest.first, self.bounds.end) if oldest else None
        first, last, _ = part.indices(len(self))
        if first >= last:
            return None
        chosen = self._newest[::-1][first:last]
        return IndexRange(chosen[0].first, chosen[-1].last + 1)

    def _find_one_more(self) -> bool:
        group = next(self._older, None)
        if group is None:
            return False
        self._newest.append(group)
        self._sums.append(self._sums[-1] + self._tokens(group))
        return True

    def _tokens(self, group: MessageGroup) -> int:
        if group.first == group.last:  # fast path: most groups have one message
            return self._size(group.first)
        return sum([self._size(place) for place in range(group.first, group.last + 1)])

    def _oldest_group(self) -> MessageGroup:
        """Return the first group, reading from the beginning until another starts."""
        if self._oldest is None:
            beginning = GrowingHistory()
            for place in range(*self.bounds):
                beginning.append(self._read(place), 0)
                if len(beginning.sizes) > 1:
                    break
            first, last, is_open = group_messages(beginning.messages)[0]
            self._oldest = MessageGroup(self.bounds.first + first, self.bounds.first + last, is_open)
        return self._oldest
