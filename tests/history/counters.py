"""A counter that remembers what it was asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.types.messages import Reasoning, Text, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexus_core.types.messages import Message


class Characters:
    """One token a character, and one a part, so that nothing is free."""

    def __init__(self) -> None:
        self.asked: list[Message] = []

    def count(self, text: str) -> int:
        return len(text)

    def count_messages(self, messages: Sequence[Message]) -> int:
        self.asked += messages
        return sum(1 + self._part(part) for message in messages for part in message.parts)

    def _part(self, part: object) -> int:
        match part:
            case Text(text=text) | Reasoning(text=text):
                return len(text)
            case ToolCall():
                return len(part.name)
            case ToolResult():
                return sum(map(self._part, part.parts))
        return 10
