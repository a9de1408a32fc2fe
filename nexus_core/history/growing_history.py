"""A growing conversation, with its groups and their sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.history.groups import UnansweredCalls, is_session_start
from nexus_core.history.sums import RunningSums
from nexus_core.types.messages import Reasoning

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nexus_core.types.messages import Message

    SizedMessage = tuple[Message, int]
    """A message and its tokens."""


class GrowingHistory:
    """Messages in groups that are kept or dropped together, with running sums of their tokens.

    Attributes:
        messages: All messages, oldest first.
        tokens: The tokens of each message.
        sums: The tokens of each group.
        sound: True if every call has its result and every result its call; calls of the last group may still wait.
    """

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.tokens: list[int] = []
        self.sums = RunningSums()
        self.sound = True
        self._bytes = [0]  # of all before each message
        self._starts: list[int] = []
        self._waiting = UnansweredCalls()
        self._in_run = False

    def append(self, message: Message, tokens: int, size: int = 0) -> None:
        """Append a message to the newest group, or as a new group."""
        if self._joins(message):
            self.sums.grow(tokens)
        else:
            self.sound = self.sound and not self._waiting and not message.tool_results
            self._waiting = UnansweredCalls()
            self._starts.append(len(self.messages))
            self.sums.append(tokens)
        self.messages.append(message)
        self.tokens.append(tokens)
        self._bytes.append(self._bytes[-1] + size)
        self._remember(message)

    def pick(self, slices: Iterable[slice]) -> list[SizedMessage]:
        """Return the messages of the selected groups with their tokens, oldest first."""
        return [
            sized
            for start, end in self._spans(slices)
            for sized in zip(self.messages[start:end], self.tokens[start:end], strict=True)
        ]

    def measure(self, slices: Iterable[slice]) -> int:
        """Return the bytes of the selected groups in a request body; messages appended without a size count 0."""
        return sum(self._bytes[end] - self._bytes[start] for start, end in self._spans(slices))

    def _spans(self, slices: Iterable[slice]) -> list[tuple[int, int]]:
        spans: list[tuple[int, int]] = []
        for first, last, _ in sorted(part.indices(len(self._starts)) for part in slices):
            start, end = self._bound(first), self._bound(max(first, last))
            if spans and start <= spans[-1][1]:
                spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
            elif start < end:
                spans.append((start, end))
        return spans

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
