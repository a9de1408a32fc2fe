"""What a model answered, in the shape of any API."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, cast

from nexus_core.dialects.fields import describe_json_value, format_for_error
from nexus_core.dialects.registry import BUILT_IN_DIALECTS
from nexus_core.errors import MessageError
from nexus_core.types.messages import Message, Reply

if TYPE_CHECKING:
    from nexus_core.dialects.registry import DialectRegistry
    from nexus_core.types.api import Dialect

_OUTPUT = "output"
_FIELDS = {
    "nexus": "neutral",
    "choices": "openai",
    "candidates": "gemini",
    "promptFeedback": "gemini",
    "prompt_feedback": "gemini",
    "usageMetadata": "gemini",
    "usage_metadata": "gemini",
    _OUTPUT: "responses",
    "stop_reason": "anthropic",
}
"""What only one API has in its replies and in the pieces of a stream; the first that is there decides."""
_USUAL = {
    "openai": ("choices", "object", "created", "system_fingerprint"),
    "anthropic": ("stop_reason", "content", "stop_sequence"),
    "gemini": ("candidates", "usageMetadata", "usage_metadata", "modelVersion", "model_version", "responseId"),
    "responses": ("output", "object", "created_at", "status", "output_text", "incomplete_details"),
}
"""What whole replies have; first what no reply of that API is without."""
_MOST_SHOWN = 6
"""So many fields are named of what is none."""
_MOST_COMPARED, _LONGEST, _ALIKE = 20, 40, 0.8
"""So many fields of what is none are compared, so much of each, and so alike are those that are nearly called so."""
_SPEAKERS = ("assistant", "model")
"""What APIs call the model in its messages."""
_END = "stop_reason"
"""Of what has a role, only Anthropic's whole replies have it, and always."""
_EVENTS = {"response.": "responses", "message_": "anthropic", "content_block_": "anthropic", "message": "anthropic"}
"""How the types of the events of a stream begin."""


def read_reply(given: object, dialects: DialectRegistry) -> Reply:
    """A model's answer: a dict, an object of an SDK, the list of a stream's pieces, its message alone, or a `Reply`.

    Raises:
        MessageError: It is in no shape that is known, or wrong in it; says where.
    """
    if isinstance(given, Reply):
        return given
    if _is_message(given):
        return _said(dialects.recognise([given]).read(given))
    if name := _name_of(given):
        return dialects.get(name).read_reply(given)
    _refuse_error(given)
    speaking = _offering(given, dialects)
    if speaking is None:
        raise _unknown(given)
    return _read_offered(given, speaking)


def is_told(given: object) -> bool:
    """Whether it is surely what a model answered, in a shape that is built in."""
    return isinstance(given, Reply) or _is_message(given) or bool(_name_of(given))


def endless() -> MessageError:
    """Why the pieces of a stream are not recorded as an answer."""
    return MessageError(
        "the stream broke off: these pieces do not say how the reply ended",
        hint="next() gives the request again; record(…, interrupted=True) keeps what came and ends the turn; "
        "interrupted=False takes it for the whole reply, where a server never says",
        command="send the request again; --partial keeps what came and ends the turn; "
        '{"reply": …, "interrupted": false} takes it for the whole reply, where a server never says',
    )


def _said(message: Message) -> Reply:
    """What a model said, without anything about the call."""
    return Reply(messages=(message,), stop="tools" if message.tool_calls else "end", api=message.api)


def _offering(given: object, dialects: DialectRegistry) -> Dialect | None:
    """The plugin's dialect in which something is written; of a stream, its first piece that says so."""
    pieces = given if isinstance(given, list | tuple) else (given,)
    return next((found for each in pieces if (found := dialects.offering(each))), None)


def _read_offered(given: object, speaking: Dialect) -> Reply:
    """A reply in the shape of a plugin's dialect, or its message alone: only the dialect itself knows which."""
    try:
        return speaking.read_reply(given)
    except MessageError as error:
        try:
            message = speaking.read(given)
        except MessageError:
            raise error from None
        if message.role != "assistant":
            raise _unknown({"role": message.role}) from None
        return _said(message)


def _is_message(given: object) -> bool:
    """Whether it is what the model said, without anything about the call."""
    if isinstance(given, Message):
        return given.role == "assistant"
    if isinstance(given, Mapping):
        return given.get("role") in _SPEAKERS and _END not in given
    is_of_an_sdk = hasattr(given, "model_fields_set") and not hasattr(given, _END)
    return is_of_an_sdk and getattr(given, "role", None) in _SPEAKERS


def _refuse_error(given: object) -> None:
    """What a provider says instead of an answer is no answer."""
    for each in given if isinstance(given, list | tuple) else (given,):
        error = each.get("error") if isinstance(each, Mapping) else None
        if error:
            said = error.get("message") if isinstance(error, Mapping) else error
            what = f": {said}" if isinstance(said, str) else ""
            hint = "there is nothing to record; try the call again"
            raise MessageError(f"this is an error of the API{what}", path="error", hint=hint)


def _unknown(given: object) -> MessageError:
    seen = [key for key in given if isinstance(key, str)] if isinstance(given, Mapping) else []
    fields = (
        f" with {', '.join(map(format_for_error, seen[:_MOST_SHOWN]))}{', …' if len(seen) > _MOST_SHOWN else ''}"
        if seen
        else ""
    )
    return MessageError(
        f"expected a reply or a result, not {describe_json_value(given)}{fields}", hint=_what_to_do(given, seen)
    )


def _what_to_do(given: object, seen: Sequence[str]) -> str:
    role = given.get("role") if isinstance(given, Mapping) else getattr(given, "role", None)
    if role == "user":
        return "ask(…) takes the user's words, and opens a turn"
    takes = "give what an SDK returned, the model's message, call.result(…), or AgentResult(…)"
    if stream := next((key for key in seen if _is_unread(cast("Mapping[str, object]", given)[key])), ""):
        return f"it holds a stream that was not read; give what that brings: list(…[{stream!r}])"
    api = _nearest(seen)
    return f"nearest is a reply of {api}, which has {_USUAL[api][0]!r}; {takes}" if api else takes


def _is_unread(value: object) -> bool:
    """Whether it can be read only once."""
    return hasattr(value, "__iter__") and not isinstance(value, str | bytes | Mapping | list | tuple)


def _nearest(seen: Iterable[str]) -> str:
    """The API whose replies have the most of these fields, or of some that are nearly called so; "" for none."""
    from difflib import get_close_matches

    names = [name[:_LONGEST] for name in islice(seen, _MOST_COMPARED)]
    alike = {
        api: sum(bool(get_close_matches(name, usual, 1, _ALIKE)) for name in names) for api, usual in _USUAL.items()
    }
    nearest = max(alike, key=lambda api: alike[api])
    return nearest if alike[nearest] else ""


def _name_of(given: object) -> str:
    """The built-in dialect that a reply, or the pieces of a stream, is written in; "" for none."""
    if isinstance(given, list | tuple):
        return next(filter(None, map(_name_of_one, given)), "")
    return _name_of_one(given)


def _name_of_one(given: object) -> str:
    if isinstance(given, Mapping):
        return _name_of_dict(given)
    if not hasattr(given, "model_fields_set"):
        return ""
    try:
        return BUILT_IN_DIALECTS.recognise([given]).name
    except MessageError:  # an object of no SDK that is known; it may still have the fields of one
        return next((name for field, name in _FIELDS.items() if hasattr(given, field)), "")


def _name_of_dict(given: Mapping[object, object]) -> str:
    found = next((name for field, name in _FIELDS.items() if field in given), "")
    if found and not (found == "responses" and isinstance(given[_OUTPUT], Mapping)):  # which is a list
        return found
    kind = given.get("type")
    if isinstance(kind, str):
        return next((name for start, name in _EVENTS.items() if kind.startswith(start)), "")
    return ""
