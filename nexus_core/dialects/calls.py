"""Tool calls of any API: arguments, missing ids, and replies split over messages."""

from __future__ import annotations

import json
import re
from collections import defaultdict, deque
from dataclasses import replace
from itertools import groupby
from math import isfinite
from typing import TYPE_CHECKING, Any, NoReturn

from nexus_core.dialects.fields import MAX_NESTING_LEVELS, to_json_types
from nexus_core.errors import MessageError
from nexus_core.types.messages import Message, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nexus_core.types.messages import JSON, Part

FUNCTION_CALL, CUSTOM_TOOL_CALL = "function_call", "custom_tool_call"
OUTPUT_TYPES = {
    FUNCTION_CALL: "function_call_output",
    CUSTOM_TOOL_CALL: "custom_tool_call_output",
    "apply_patch_call": "apply_patch_call_output",
    "computer_call": "computer_call_output",
    "local_shell_call": "local_shell_call_output",
    "shell_call": "shell_call_output",
    "tool_search_call": "tool_search_output",
}
"""Types of the calls that a client of the Responses API runs, and of their results."""
FREE_TEXT_ARGUMENT = "input"
"""Argument name for the free text that a custom tool gets."""

INVALID_JSON_ARGUMENT = "INVALID_JSON"
"""Key for arguments that are not valid JSON, from Anthropic's documentation; other projects use it, too."""

_EMPTY_ARGUMENTS = re.compile(r"\s*(?:\{\s*\}\s*)?")


def parse_arguments(raw: str) -> dict[str, Any]:
    """Parse the JSON text of arguments, {} if it is not a JSON object."""
    try:
        value = parse_strict_json(raw)
        # Writers for other APIs recurse into arguments: `to_json_types` rejects deep nesting.
        value = to_json_types(value) if raw.count("{") + raw.count("[") > MAX_NESTING_LEVELS else value
    except (ValueError, RecursionError, MessageError):
        return {}
    return value if isinstance(value, dict) else {}


def serialize_arguments(call: ToolCall) -> str:
    """Return the arguments as JSON text, the model's raw text if there is one.

    Raises:
        MessageError: They have a value that JSON does not support, or a number that Python refuses to print.
    """
    if call.raw is not None:
        return call.raw
    try:
        return serialize_compact_json(call.arguments)
    except (TypeError, ValueError, RecursionError) as error:
        raise MessageError(f"the arguments of {call.name!a} cannot be written as JSON: {error}") from None


def serialize_compact_json(arguments: JSON) -> str:
    """Serialize arguments to JSON without whitespace, in their order."""
    return json.dumps(arguments, ensure_ascii=False, separators=(",", ":"), default=dict)


def get_call_arguments(call: ToolCall) -> dict[str, Any]:
    """Return the arguments as an object.

    Raw text that is not JSON is under `FREE_TEXT_ARGUMENT`.
    """
    if has_invalid_arguments(call):
        return {FREE_TEXT_ARGUMENT: call.raw}
    copied: dict[str, Any] = to_json_types(call.arguments)
    return copied


def has_invalid_arguments(call: ToolCall) -> bool:
    """Return True if the model wrote arguments that are not a JSON object."""
    return call.raw is not None and not call.arguments and not _EMPTY_ARGUMENTS.fullmatch(call.raw)


def _parse_finite_float(number: str) -> float:
    value = float(number)
    return value if isfinite(value) else _reject_constant(number)  # 1e999 would be serialized as Infinity


def _reject_constant(constant: str) -> NoReturn:
    raise ValueError(constant)


_STRICT_DECODER = json.JSONDecoder(parse_constant=_reject_constant, parse_float=_parse_finite_float)
"""Shared, because building one is slower than most decoding."""
_JSON_WHITESPACE = " \t\n\r"


def parse_strict_json(text: str) -> object:
    """Parse JSON without Python's extensions such as NaN.

    Raises:
        ValueError: It is not JSON.
        RecursionError: It is nested too deeply.
    """
    # `decode` finds the whitespace with two regular expressions, which takes longer than parsing short arguments.
    stripped = text.strip(_JSON_WHITESPACE)
    value, end = _STRICT_DECODER.raw_decode(stripped)
    if end != len(stripped):
        raise ValueError(f"unexpected text after the JSON value, at character {end}")
    return value


LEGACY_CALL_KEY = "_former"
"""Metadata key of legacy calls and results (`function_call`, role `function`), which have no id."""


def assign_call_ids(messages: Iterable[Message], api: str) -> list[Message]:
    """Return the messages with an id on every tool call and its result.

    Messages that were read from `api`, and those that have ids, are not changed.
    """
    given = list(messages)
    if not any(_lacks_call_id(part) for message in given if message.api != api for part in message.parts):
        return given
    return _CallIdAssigner(given, api).assign()


def build_legacy_call_id(name: str) -> str:
    """Return the id of a legacy call and its result.

    The name suffices, because a reply has only one such call.
    """
    return f"call_{name}"


def _lacks_call_id(part: Part) -> bool:
    return (isinstance(part, ToolCall) and not part.id) or (isinstance(part, ToolResult) and not part.call_id)


class _CallIdAssigner:
    def __init__(self, messages: list[Message], api: str) -> None:
        self._messages = messages
        self._api = api
        self._used_ids = {part.id for message in messages for part in message.tool_calls}
        self._count = 0
        self._waiting: deque[str] = deque()
        self._waiting_by_name: dict[str, deque[str]] = defaultdict(deque)
        self._answered: set[str] = set()

    def assign(self) -> list[Message]:
        return [
            replace(message, parts=tuple(map(self._assign_part, message.parts)))
            if message.api != self._api and any(map(_lacks_call_id, message.parts))
            else message
            for message in self._messages
        ]

    def _assign_part(self, part: Part) -> Part:
        if isinstance(part, ToolCall) and not part.id:
            call = replace(part, id=self._next_id())
            self._waiting.append(call.id)
            self._waiting_by_name[call.name].append(call.id)
            return call
        if isinstance(part, ToolResult) and not part.call_id:
            return replace(part, call_id=self._find_waiting_call(part.name))
        return part

    def _next_id(self) -> str:
        self._count += 1
        while f"call_{self._count}" in self._used_ids:
            self._count += 1
        return f"call_{self._count}"

    def _find_waiting_call(self, name: str) -> str:
        """Return the id of the oldest call without a result.

        One of the same tool is preferred.
        """
        for waiting in (self._waiting_by_name[name], self._waiting):
            while waiting:
                answered = waiting.popleft()
                if answered not in self._answered:
                    self._answered.add(answered)
                    return answered
        return self._next_id()


def merge_assistant_messages(messages: Iterable[Message], api: str) -> list[Message]:
    """Merge consecutive assistant messages if they have tool calls.

    For an API that needs tool results right after the calls, which a second reply would separate. Messages that were
    read from `api` are not changed.
    """
    merged: list[Message] = []
    for is_converted, run in groupby(messages, key=lambda message: message.role == "assistant" and message.api != api):
        neighbours = list(run)
        if is_converted and len(neighbours) > 1 and any(message.tool_calls for message in neighbours):
            apis = {message.api for message in neighbours}
            parts = tuple(part for message in neighbours for part in message.parts)
            merged.append(Message("assistant", parts, neighbours[0].name, apis.pop() if len(apis) == 1 else ""))
        else:
            merged += neighbours
    return merged
