"""Ids for calls that came without: Gemini matches results by name and order, everybody else by id."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import replace
from typing import TYPE_CHECKING

from nexus_core.values.parts import ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nexus_core.values.message import Message
    from nexus_core.values.parts import Part


def with_ids(messages: Iterable[Message], api: str) -> list[Message]:
    """The messages, every call with an id and every result with that of its call.

    Messages of the API itself stay as they are, and so do all that have their ids.
    """
    given = list(messages)
    if not any(_lacks_id(part) for message in given if message.api != api for part in message.parts):
        return given
    return _Numbering(given, api).numbered()


def _lacks_id(part: Part) -> bool:
    return (isinstance(part, ToolCall) and not part.id) or (isinstance(part, ToolResult) and not part.call_id)


class _Numbering:
    def __init__(self, messages: list[Message], api: str) -> None:
        self._messages = messages
        self._api = api
        self._taken = {part.id for message in messages for part in message.tool_calls}
        self._count = 0
        self._waiting: deque[str] = deque()
        self._waiting_for: dict[str, deque[str]] = defaultdict(deque)
        self._answered: set[str] = set()

    def numbered(self) -> list[Message]:
        return [
            replace(message, parts=tuple(map(self._part, message.parts)))
            if message.api != self._api and any(map(_lacks_id, message.parts))
            else message
            for message in self._messages
        ]

    def _part(self, part: Part) -> Part:
        if isinstance(part, ToolCall) and not part.id:
            call = replace(part, id=self._next_id())
            self._waiting.append(call.id)
            self._waiting_for[call.name].append(call.id)
            return call
        if isinstance(part, ToolResult) and not part.call_id:
            return replace(part, call_id=self._answer(part.name))
        return part

    def _next_id(self) -> str:
        self._count += 1
        while f"call_{self._count}" in self._taken:
            self._count += 1
        return f"call_{self._count}"

    def _answer(self, name: str) -> str:
        """The id of the oldest call of that tool that waits for its result; of any tool, where none has the name."""
        for waiting in (self._waiting_for[name], self._waiting):
            while waiting:
                answered = waiting.popleft()
                if answered not in self._answered:
                    self._answered.add(answered)
                    return answered
        return self._next_id()
