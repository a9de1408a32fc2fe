"""Messages that live or die together: what an assistant thought, said and called, and the results of its calls.

A group begins with an assistant's message that thinks or calls a tool, goes on with the assistant's messages after it,
and ends with the messages that bring the results. Every other message is a group of its own. Nothing that is added
later changes a group except the newest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nexus_core.history.waiting import WaitingCalls
from nexus_core.values.parts import Reasoning, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from nexus_core.values.message import Message


class Group(NamedTuple):
    """Neighbours in a list.

    Attributes:
        first: The place of the first message.
        last: The place of the last one.
        open: Whether calls in it still wait for their results.
    """

    first: int
    last: int
    open: bool


def groups(messages: Sequence[Message]) -> list[Group]:
    """All groups of a list, oldest first."""
    return list(newest_groups(messages.__getitem__, len(messages)))[::-1]


def newest_groups(read: Callable[[int], Message], end: int) -> Iterator[Group]:
    """The groups of the messages before `end`, newest first; no message is read before it is needed, and none twice.

    Args:
        read: Gives the message at a place.
        end: How many messages there are.
    """
    messages = _Backwards(read, end)
    while messages.left:
        last = messages.left - 1
        results = messages.take(_brings_results)
        said = messages.take(_is_assistant)
        if not results and not said:
            messages.take_one()
            yield Group(last, last, open=False)
        else:
            yield from _split(messages.left, said, results)


def is_input(message: Message) -> bool:
    """Whether the user speaks, and no tool with it."""
    return message.role == "user" and not any(isinstance(part, ToolResult) for part in message.parts)


def _split(first: int, said: list[Message], results: list[Message]) -> Iterator[Group]:
    """The groups of an assistant's messages and the results after them, newest first."""
    last = first + len(said) + len(results) - 1
    begin = next((place for place, message in enumerate(said) if _leads(message)), len(said))
    if begin == len(said):  # nobody called anything: most answers
        yield from (Group(place, place, open=False) for place in range(last, first - 1, -1))
        return
    waiting = WaitingCalls(part for message in said[begin:] for part in message.tool_calls)
    answers, is_open = 0, bool(waiting)
    for message in results:
        places = [waiting.take(result) for result in message.tool_results]
        if None in places:
            break
        answers, is_open = answers + 1, bool(waiting)
    end = first + len(said) + answers - 1
    for place in range(last, end, -1):  # results of calls that are not in this group
        yield Group(place, place, open=False)
    yield Group(first + begin, end, open=is_open)
    for place in range(first + begin - 1, first - 1, -1):
        yield Group(place, place, open=False)


class _Backwards:
    """A list read from its end."""

    def __init__(self, read: Callable[[int], Message], end: int) -> None:
        self.left = end
        self._read = read
        self._seen: Message | None = None

    def take(self, wanted: Callable[[Message], bool]) -> list[Message]:
        """The messages before the last one taken, as long as they are what is wanted; in the order of the list."""
        taken = []
        while self.left and wanted(message := self._next()):
            taken.append(message)
            self.take_one()
        return taken[::-1]

    def take_one(self) -> None:
        """Go on to the message before."""
        self.left -= 1
        self._seen = None

    def _next(self) -> Message:
        if self._seen is None:
            self._seen = self._read(self.left - 1)
        return self._seen


def _is_assistant(message: Message) -> bool:
    return message.role == "assistant"


def _leads(message: Message) -> bool:
    return any(isinstance(part, ToolCall | Reasoning) for part in message.parts)


def _brings_results(message: Message) -> bool:
    return message.role != "assistant" and any(isinstance(part, ToolResult) for part in message.parts)
