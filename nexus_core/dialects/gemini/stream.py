"""The responses of a stream become one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from nexus_core.dialects.fields import at, list_in, mapping_of, named, shown
from nexus_core.dialects.gemini.pieces import Parts
from nexus_core.dialects.gemini.spelling import camel
from nexus_core.dialects.plain import plain
from nexus_core.errors import MessageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Block = dict[str, Any]

CONTENT = "candidates[0].content"
"""Where the answer is, for errors."""
_FIELDS = ("candidates", "prompt_feedback", "usage_metadata", "response_id", "model_version", "error")


def merged(responses: Sequence[object]) -> Block:
    """The fields of a response that are of use, and those of its first candidate, by their names in REST.

    The last word of the stream counts; `parts` has what all of it said.
    """
    answer: Block = {"promptFeedback": {}}
    parts = Parts()
    for index, item in enumerate(responses):
        with at(f"[{index}]" if len(responses) > 1 else ""):
            response = _fields_of(item)
            answer |= {key: value for key, value in response.items() if value is not None and key != "candidates"}
            candidate = _first_candidate(response)
            if candidate.get("finishReason") is not None:
                answer["finishReason"] = candidate["finishReason"]
            with at(CONTENT):
                parts.add(_parts_of(candidate))
    if not responses:
        raise MessageError("there is no answer in it")
    with at(CONTENT):
        return answer | {"parts": parts.whole()}


def _fields_of(item: object) -> Block:
    """The fields of a response that are of use; what the SDK adds to them may be anything."""
    if isinstance(item, Mapping):
        found = {camel(key): plain(value, key) for key, value in item.items() if _is_wanted(key)}
    elif hasattr(item, "candidates"):
        found = {camel(name): plain(getattr(item, name, None), name) for name in _FIELDS}
    else:
        raise MessageError(f"expected a response, not {named(item)}")
    if found.get("error"):
        error = found["error"]
        said = error.get("message") if isinstance(error, dict) else error
        raise MessageError(f"the server answered with an error: {shown(said)}", path="error")
    if not {"candidates", "promptFeedback", "usageMetadata"} & found.keys():
        raise MessageError("there is no 'candidates'", path="candidates", hint="it must be a list")
    for name in ("promptFeedback", "usageMetadata"):
        if found.get(name) is not None:
            with at(name):
                found[name] = _named_as_in_rest(mapping_of(found[name]))
    return found


def _is_wanted(key: object) -> bool:
    return isinstance(key, str) and camel(key) in map(camel, _FIELDS)


def _named_as_in_rest(block: Block) -> Block:
    return {camel(key): value for key, value in block.items()}


def _first_candidate(response: Block) -> Block:
    for index, item in enumerate([] if response.get("candidates") is None else list_in(response, "candidates")):
        with at(f"candidates[{index}]"):
            candidate = _named_as_in_rest(mapping_of(item))
        if candidate.get("index") in (None, 0):
            return candidate
    return {}


def _parts_of(candidate: Block) -> Iterable[Block]:
    content = candidate.get("content")
    parts = None if content is None else mapping_of(content).get("parts")
    if parts is None:
        return []
    if not isinstance(parts, list):
        raise MessageError(f"expected a list of parts, not {named(parts)}", path="parts")
    return [mapping_of(part) for part in parts]
