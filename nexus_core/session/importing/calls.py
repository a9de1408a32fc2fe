"""What was called in a turn, and which of it a result answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.history.groups import UnansweredCalls
from nexus_core.thread.turns import CallKey, find_client_calls

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nexus_core.thread.turns import RecordedCall
    from nexus_core.types.messages import Message, ToolResult

UNASKED = ""
"""In the place of a step, for a result that answers no call of its turn."""


class OpenCalls:
    """The calls of a turn that wait for a result; true as long as there are any.

    Args:
        pending: Those that are recorded.
    """

    def __init__(self, pending: Iterable[RecordedCall] = ()) -> None:
        self._waiting = UnansweredCalls()
        self._keys: list[CallKey] = []
        self._asked = 0
        for each in pending:
            self._waiting.add(each.call)
            self._keys.append(each.key)

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def ask(self, step: str, messages: Sequence[Message]) -> None:
        """What a reply asks for."""
        calls = find_client_calls(messages)
        for place, call in enumerate(calls):
            self._waiting.add(call)
            self._keys.append(CallKey(step, place))
        self._asked = len(calls)

    def answer(self, result: ToolResult) -> CallKey:
        """The call that a result answers; one that answers none stands behind all others."""
        place = self._waiting.take(result)
        return CallKey(UNASKED, self._asked) if place is None else self._keys[place]
