"""Message groups: a reply with its reasoning, tool calls and their results.

A group begins with an assistant message that has reasoning or a tool call, continues with the assistant messages after
it, and ends with the messages that contain the results. The message about a session's start belongs to the group after
it. Every other message is a group by itself. Messages added later change no group except the newest.
"""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.types.messages import SESSION_START, Message, Reasoning, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import datetime

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
