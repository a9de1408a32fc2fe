"""Merging of Gemini's streamed responses into one.

Only Vertex AI streams the arguments of a call one by one, each with its path: `$.rooms[0].light`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from nexus_core.dialects.fields import (
    MAX_NESTING_LEVELS,
    ErrorPath,
    describe_json_value,
    format_for_error,
    get_list,
    get_text,
    require_object,
    to_camel_case,
    to_json_types,
)
from nexus_core.errors import MessageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Block = dict[str, Any]

_PATH_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d{1,4})\]|\['([^']*)'\]|\[\"([^\"]*)\"\]")
_VALUE_KEYS = ("stringValue", "numberValue", "boolValue")


class StreamedFunctionCall:
    """A function call that is being streamed."""

    def __init__(self, call: Block) -> None:
        self._call = {key: value for key, value in call.items() if key not in ("willContinue", "partialArgs")}
        self._values: dict[str, list[Any]] = {}
        self.add(call)

    @staticmethod
    def starts(call: Block) -> bool:
        """Return True if more pieces of the call follow or its arguments are in pieces."""
        return call.get("willContinue") is True or bool(call.get("partialArgs"))

    def add(self, call: Block) -> None:
        """Add the arguments, or pieces of arguments, of the next chunk."""
        if call.get("partialArgs") is None:
            return
        for index, item in enumerate(get_list(call, "partialArgs")):
            with ErrorPath(f"partialArgs[{index}]"):
                argument = {to_camel_case(key): value for key, value in require_object(item).items()}
                value = next((argument[name] for name in _VALUE_KEYS if argument.get(name) is not None), None)
                self._values.setdefault(get_text(argument, "jsonPath"), []).append(value)

    def join(self) -> Block:
        """Return the call as the API returns it without streaming."""
        given = self._call.get("args")
        arguments = dict(given) if isinstance(given, dict) else {}
        for path, pieces in self._values.items():
            texts = all(isinstance(piece, str) for piece in pieces)
            _set_argument(arguments, path, "".join(pieces) if texts else pieces[-1])
        return self._call | {"args": arguments}


def _set_argument(arguments: Block, path: str, value: object) -> None:
    matches = list(_PATH_STEP.finditer(path))
    if not matches or len(matches) > MAX_NESTING_LEVELS or "$" + "".join(match.group() for match in matches) != path:
        raise MessageError(f"not a path into the arguments: {format_for_error(path)}", path="partialArgs")
    steps = [_parse_path_step(match) for match in matches]
    holder: list[Any] | Block = arguments
    for step, following in pairwise(steps):
        held = _get_or_make_room(holder, step, path)
        holder = _set_item(holder, step, held or ([] if isinstance(following, int) else {}))
    _get_or_make_room(holder, steps[-1], path)
    _set_item(holder, steps[-1], value)


def _get_or_make_room(holder: object, step: str | int, path: str) -> Any:  # noqa: ANN401 - JSON has many types
    """Return the value at a step, or None. A list that is too short is extended."""
    if isinstance(holder, dict) and isinstance(step, str):
        return holder.get(step)
    if isinstance(holder, list) and isinstance(step, int):
        holder.extend([None] * (step + 1 - len(holder)))
        return holder[step]
    raise MessageError(f"the arguments do not have the shape of {format_for_error(path)}", path="partialArgs")


def _set_item(holder: Any, step: str | int, value: Any) -> Any:  # noqa: ANN401 - JSON has many types
    holder[step] = value
    return value


def _parse_path_step(match: re.Match[str]) -> str | int:
    name, index, single_quoted, double_quoted = match.groups()
    if index is not None:
        return int(index)
    return next(each for each in (name, single_quoted, double_quoted) if each is not None)


_FUNCTION_CALL_KEY = "functionCall"


class StreamedParts:
    """Parts of a streamed reply.

    A response may continue the last part of the one before.
    """

    def __init__(self) -> None:
        self._parts: list[Block] = []
        self._text: list[str] = []
        self._call: StreamedFunctionCall | None = None

    def add(self, parts: Iterable[Block]) -> None:
        """Add the parts of the next response."""
        for index, part in enumerate(parts):
            call = _find_function_call(part)
            if self._call is not None and call is not None and not call.get("name"):
                self._call.add(call)
            elif index == 0 and self._parts and _continues_text(part, self._parts[-1]):
                self._text.append(part["text"])
            else:
                self._close()
                self._start(part, call)

    def join(self) -> list[Block]:
        """Return the merged parts."""
        self._close()
        return self._parts

    def _start(self, part: Block, call: Block | None) -> None:
        if call is not None and StreamedFunctionCall.starts(call):
            self._call = StreamedFunctionCall(call)
        self._parts.append(part)

    def _close(self) -> None:
        if self._text:
            self._parts[-1] = self._parts[-1] | {"text": "".join([self._parts[-1]["text"], *self._text])}
        if self._call:
            rest = {key: value for key, value in self._parts[-1].items() if to_camel_case(key) != _FUNCTION_CALL_KEY}
            self._parts[-1] = rest | {_FUNCTION_CALL_KEY: self._call.join()}
        self._text, self._call = [], None


def _find_function_call(part: Block) -> Block | None:
    call = next((value for key, value in part.items() if to_camel_case(key) == _FUNCTION_CALL_KEY), None)
    return {to_camel_case(key): value for key, value in call.items()} if isinstance(call, dict) else None


def _continues_text(part: Block, before: Block) -> bool:
    """Return True if a text continues the one before.

    A signed part does not: its signature covers its own text.
    """
    is_plain = all(each.keys() <= {"text", "thought"} and isinstance(each.get("text"), str) for each in (part, before))
    return is_plain and part.get("thought") == before.get("thought")


CONTENT_PATH = "candidates[0].content"
"""Path of the reply in a response, for errors."""
_RESPONSE_FIELDS = ("candidates", "prompt_feedback", "usage_metadata", "response_id", "model_version", "error")


def merge_responses(responses: Sequence[object]) -> Block:
    """Merge the responses of a stream, of which only the first candidate is read.

    Returns the response's fields under their camelCase names, `finishReason`, and `parts` with the merged parts. If
    several responses have a field, the last one wins.
    """
    merged: Block = {"promptFeedback": {}}
    parts = StreamedParts()
    for index, item in enumerate(responses):
        with ErrorPath(f"[{index}]" if len(responses) > 1 else ""):
            response = _read_response_fields(item)
            merged |= {key: value for key, value in response.items() if value is not None and key != "candidates"}
            candidate = _get_first_candidate(response)
            if candidate.get("finishReason") is not None:
                merged["finishReason"] = candidate["finishReason"]
            with ErrorPath(CONTENT_PATH):
                parts.add(_get_candidate_parts(candidate))
    if not responses:
        raise MessageError("the stream contains no reply")
    with ErrorPath(CONTENT_PATH):
        return merged | {"parts": parts.join()}


def _read_response_fields(item: object) -> Block:
    """Return the known fields of a response as JSON.

    Others are skipped: the SDK adds fields that JSON lacks.
    """
    if isinstance(item, Mapping):
        found = {
            to_camel_case(key): to_json_types(value, key) for key, value in item.items() if _is_response_field(key)
        }
    elif hasattr(item, "candidates"):
        found = {to_camel_case(name): to_json_types(getattr(item, name, None), name) for name in _RESPONSE_FIELDS}
    else:
        raise MessageError(f"expected a response, not {describe_json_value(item)}")
    if found.get("error"):
        error = found["error"]
        message = error.get("message") if isinstance(error, dict) else error
        raise MessageError(f"the server answered with an error: {format_for_error(message)}", path="error")
    if not {"candidates", "promptFeedback", "usageMetadata"} & found.keys():
        raise MessageError("there is no 'candidates'", path="candidates", hint="it must be a list")
    for name in ("promptFeedback", "usageMetadata"):
        if found.get(name) is not None:
            with ErrorPath(name):
                found[name] = _to_camel_case_keys(require_object(found[name]))
    return found


def _is_response_field(key: object) -> bool:
    return isinstance(key, str) and to_camel_case(key) in map(to_camel_case, _RESPONSE_FIELDS)


def _to_camel_case_keys(block: Block) -> Block:
    return {to_camel_case(key): value for key, value in block.items()}


def _get_first_candidate(response: Block) -> Block:
    for index, item in enumerate([] if response.get("candidates") is None else get_list(response, "candidates")):
        with ErrorPath(f"candidates[{index}]"):
            candidate = _to_camel_case_keys(require_object(item))
        if candidate.get("index") in (None, 0):
            return candidate
    return {}


def _get_candidate_parts(candidate: Block) -> Iterable[Block]:
    content = candidate.get("content")
    parts = None if content is None else require_object(content).get("parts")
    if parts is None:
        return []
    if not isinstance(parts, list):
        raise MessageError(f"expected a list of parts, not {describe_json_value(parts)}", path="parts")
    return [require_object(part) for part in parts]
