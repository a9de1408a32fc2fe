"""What tools brought, in the shape of any API, and which calls it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.dialects.responses import OUTPUT_TYPES
from nexus_core.errors import MessageError, TurnError
from nexus_core.history.groups import UnansweredCalls
from nexus_core.session.recording.replies import is_told
from nexus_core.session.steps.recorded import CallKey, CallResult
from nexus_core.types.messages import Message, ToolResult

if TYPE_CHECKING:
    from nexus_core.dialects.registry import DialectRegistry
    from nexus_core.session.steps.turns import Turn
    from nexus_core.types.messages import ToolCall

_OUTPUTS = tuple(OUTPUT_TYPES.values())  # no set: what is looked for may be a list
_BRINGERS = ("tool", "function", "user")
"""Whose messages bring results."""


class Brought(NamedTuple):
    """A result, alone in its message.

    Attributes:
        key: The call it was made for; None where only its id or name tell.
        message: The message.
    """

    key: CallKey | None
    message: Message

    @property
    def result(self) -> ToolResult:
        """The result."""
        return self.message.tool_results[0]


def read_results(given: object, dialects: DialectRegistry) -> tuple[Brought, ...] | None:
    """Results, each in a message of its own; None for something that is no result.

    Raises:
        MessageError: A message brings results and something else.
    """
    if isinstance(given, list) and given:
        each = [_read_message(item, dialects) for item in given]
        found = [results for results in each if results is not None]
        return tuple(brought for results in found for brought in results) if len(found) == len(each) else None
    return _read_message(given, dialects)


def _read_message(given: object, dialects: DialectRegistry) -> tuple[Brought, ...] | None:
    if isinstance(given, CallResult):
        return (Brought(given.key, Message("tool", (given.result,))),)
    if isinstance(given, ToolResult):
        return (Brought(None, Message("tool", (given,))),)
    if isinstance(given, Message) or _brings_results(given):
        return _split(dialects.recognise([given]).read(given))
    return None if is_told(given) else _read_offered(given, dialects)


def _read_offered(given: object, dialects: DialectRegistry) -> tuple[Brought, ...] | None:
    """Results in the shape of a plugin's dialect, in which a reply may be just as well."""
    speaking = dialects.offering(given)
    if speaking is None:
        return None
    try:
        message = speaking.read(given)
    except MessageError:
        return None
    return _split(message)


def match(turn: Turn, brought: tuple[Brought, ...]) -> list[tuple[CallKey, Brought]]:
    """Each result with the call it answers.

    Raises:
        TurnError: A result answers no call of this turn.
    """
    keys = [key for key in turn.calls if key not in turn.answers]
    waiting = UnansweredCalls(turn.calls[key] for key in keys)
    return [(_key_of(turn, each, waiting, keys), each) for each in brought]


def _key_of(turn: Turn, brought: Brought, waiting: UnansweredCalls, keys: list[CallKey]) -> CallKey:
    if brought.key in turn.calls:
        return brought.key
    place = None if brought.key is not None else waiting.take(brought.result)
    if place is not None:
        return keys[place]
    for key in reversed(turn.answers if brought.key is None else ()):  # the same result may come again
        if key in turn.calls and _could_answer(turn.calls[key], brought.result):
            return key
    raise _unasked(brought.result)


def _could_answer(call: ToolCall, result: ToolResult) -> bool:
    return call.id == result.call_id if result.call_id else call.name == result.name


def _unasked(result: ToolResult) -> TurnError:
    what = " ".join(filter(None, (result.name, result.call_id and f"({result.call_id})"))) or "a tool"
    return TurnError(
        f"a result of {what} answers no call of this turn",
        hint="session.pending_calls lists the pending tool calls; call.result(…) makes the result of one of them",
    )


def _split(message: Message) -> tuple[Brought, ...] | None:
    results = message.tool_results
    if not results:
        return None
    if len(results) != len(message.parts):
        raise MessageError(
            "a message brings results of tools and something else",
            hint="record the results alone, and ask(…) the rest when the turn has ended",
            command="give the results alone; the rest can be said when the turn has ended",
        )
    if len(results) == 1:
        return (Brought(None, message),)
    return tuple(Brought(None, replace(message, parts=(result,), extra={})) for result in results)


def _brings_results(given: object) -> bool:
    if isinstance(given, Mapping):
        return given.get("role") in _BRINGERS or given.get("type") in _OUTPUTS
    return hasattr(given, "model_fields_set") and getattr(given, "role", None) in _BRINGERS
