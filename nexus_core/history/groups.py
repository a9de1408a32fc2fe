"""Messages that live or die together: what an assistant thought, said and called, and the results of its calls.

A group begins with an assistant's message that thinks or calls a tool, goes on with the assistant's messages after it,
and ends with the messages that bring the results. The line that says when a session started belongs to the group after
it. Every other message is a group of its own. Nothing that is added later changes a group except the newest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nexus_core.history.waiting import WaitingCalls
from nexus_core.values.message import Message
from nexus_core.values.parts import Reasoning, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime

SESSION_START = "_session_start"
"""The field of `Message.extra` that marks the line which says when a session started, and holds the time."""

_LEADING = (ToolCall, Reasoning)


class Group(NamedTuple):
    """Neighbours in a list.

    Attributes:
        first: The place of the first message.
        last: The place of the last one.
        open: Whether calls in it still wait for their results.
    """

    first: int
    last: int
    open: bool = False


def groups(messages: Sequence[Message]) -> list[Group]:
    """All groups of a list, oldest first."""
    found = list(newest_groups(messages.__getitem__, len(messages)))[::-1]
    if len(found) > 1 and is_session_start(messages[0]) and not _brings_results(messages[1]):
        found[:2] = [found[1]._replace(first=0)]
    return found


def newest_groups(read: Callable[[int], Message], end: int, first: int = 0) -> Iterator[Group]:
    """The groups of the messages before `end`, newest first; no message is read before it is needed, and none twice.

    Args:
        read: Gives the message at a place.
        end: How many messages there are.
        first: Where to stop: what stands before is in no group.
    """
    said: list[Message] = []
    results: list[Message] = []
    for place in range(end - 1, first - 1, -1):
        message = read(place)
        if message.role == "assistant":
            said.append(message)
            continue
        brings = _brings_results(message)
        if said or (results and not brings):
            yield from _split(place + 1, said[::-1], results[::-1])
            said, results = [], []
        if brings:
            results.append(message)
        else:
            yield Group(place, place)
    if said or results:
        yield from _split(first, said[::-1], results[::-1])


def build_session_start_message(started: datetime) -> Message:
    """Return the first message of a session: the line that says when it started, in local time."""
    text = f"[Session started: {started:%Y-%m-%d %H:%M} (local)]"
    return Message("user", text, extra={SESSION_START: started.isoformat(timespec="minutes")})


def is_session_start(message: Message) -> bool:
    """True for the line that says when a session started."""
    return SESSION_START in message.extra


def is_input(message: Message) -> bool:
    """Whether the user speaks, and no tool with it."""
    return message.role == "user" and not _brings_results(message)


def _split(first: int, said: list[Message], results: list[Message]) -> list[Group]:
    """The groups of an assistant's messages and the results after them, newest first."""
    last = first + len(said) + len(results) - 1
    begin = 0
    while begin < len(said) and not _leads(said[begin]):
        begin += 1
    if begin == len(said):  # most answers
        return _alone(first, last)
    answers, is_open = _answered(said[begin:], results)
    end = first + len(said) + answers - 1
    group = Group(first + begin, end, is_open)
    if not begin and end == last:
        return [group]
    # What stands after it are results of calls that are not in this group.
    return [*_alone(end + 1, last), group, *_alone(first, first + begin - 1)]


def _alone(first: int, last: int) -> list[Group]:
    return [Group(place, place) for place in range(last, first - 1, -1)]


def _answered(said: list[Message], results: list[Message]) -> tuple[int, bool]:
    """How many of the messages with results answer these calls, and whether a call waits after them."""
    asked = [part.id for message in said for part in message.parts if isinstance(part, ToolCall)]
    if "" not in asked and asked == [part.call_id for message in results for part in message.tool_results]:
        return len(results), False  # one by one, as nearly always
    waiting = WaitingCalls(part for message in said for part in message.tool_calls)
    answers, is_open = 0, bool(waiting)
    for message in results:
        if None in [waiting.take(result) for result in message.tool_results]:
            break
        answers, is_open = answers + 1, bool(waiting)
    return answers, is_open


# Both are asked of every message that is read, and `any` with a generator takes three times as long as a loop.
def _leads(message: Message) -> bool:
    for part in message.parts:  # noqa: SIM110 - as above
        if isinstance(part, _LEADING):
            return True
    return False


def _brings_results(message: Message) -> bool:
    for part in message.parts:  # noqa: SIM110 - as above
        if isinstance(part, ToolResult):
            return True
    return False
