"""What a model answered, in the shape of any API."""

from __future__ import annotations

from collections.abc import Mapping

from nexus_core.dialects.fields import named
from nexus_core.dialects.finding import dialect, recognise
from nexus_core.errors import MessageError
from nexus_core.values.conversation import Reply

_FIELDS = {
    "nexus": "neutral",
    "choices": "openai",
    "candidates": "gemini",
    "promptFeedback": "gemini",
    "prompt_feedback": "gemini",
    "usageMetadata": "gemini",
    "usage_metadata": "gemini",
    "output": "responses",
    "stop_reason": "anthropic",
}
"""What only one API has in its replies and in the pieces of a stream; the first that is there decides."""
_EVENTS = {"response.": "responses", "message_": "anthropic", "content_block_": "anthropic", "message": "anthropic"}
"""How the types of the events of a stream begin."""


def read_reply(given: object) -> Reply:
    """A model's answer: a dict, an object of an SDK, the list of a stream's pieces, or a `Reply`.

    Raises:
        MessageError: It is in no shape that is known, or wrong in it; says where.
    """
    if isinstance(given, Reply):
        return given
    name = _name_of(given)
    if not name:
        raise MessageError(
            f"expected a reply or a result, not {named(given)}",
            hint="give what an SDK returned, call.result(…), or AgentResult(…)",
        )
    return dialect(name).read_reply(given)


def _name_of(given: object) -> str:
    if isinstance(given, list | tuple):
        return next(filter(None, map(_name_of_one, given)), "")
    return _name_of_one(given)


def _name_of_one(given: object) -> str:
    if isinstance(given, Mapping):
        return _name_of_dict(given)
    if not hasattr(given, "model_fields_set"):
        return ""
    try:
        return recognise([given]).name
    except MessageError:  # an object of no SDK that is known; it may still have the fields of one
        return next((name for field, name in _FIELDS.items() if hasattr(given, field)), "")


def _name_of_dict(given: Mapping[object, object]) -> str:
    found = next((name for field, name in _FIELDS.items() if field in given), "")
    if found:
        return found
    kind = given.get("type")
    if isinstance(kind, str):
        return next((name for start, name in _EVENTS.items() if kind.startswith(start)), "")
    return ""
