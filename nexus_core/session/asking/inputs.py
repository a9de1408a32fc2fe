"""What is said to a session, and what is known about the occasion."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from nexus_core.dialects.fields import ErrorPath, describe_json_value, to_json_types
from nexus_core.dialects.neutral import decode_value, encode_value
from nexus_core.errors import MessageError, UnknownNameError, UsageError
from nexus_core.history.groups import build_session_start_message
from nexus_core.ledger.json_text import write_json
from nexus_core.session.arguments import read_path, read_text, read_texts
from nexus_core.session.asking.occasion import EVENT, PROFILE
from nexus_core.types.messages import Message, Part, Text

if TYPE_CHECKING:
    from nexus_core.dialects.registry import DialectRegistry
    from nexus_core.types.messages import JSON

_PARTS = get_args(Part)
_GEMINI_PARTS = frozenset({"text", "inlineData", "inline_data", "fileData", "file_data"})
_RANGE = 2
_EXAMPLES = {"profile": '{"friends_profile": "Ada likes green tea."}'}
_ATTACHMENTS = 'for example [{"path": "a.py", "lines": [1, 20]}]'


class Said(NamedTuple):
    """Something to be answered, as it comes back from a ledger.

    Attributes:
        message: The user's message.
        event: What is known about the occasion, by name.
    """

    message: Message
    event: JSON


def read_input(said: object, event: Mapping[str, Any], dialects: DialectRegistry) -> Said:
    """A message: text, parts, a `Message`, or a user's message in the shape of any API.

    Args:
        said: The message.
        event: What is told about the occasion.
        dialects: The shapes that there are.

    Raises:
        MessageError: It is none of these, not the user's, or empty.
        UnknownNameError: Something is told about the occasion that means nothing.
        UsageError: Something is told about it in a shape that means nothing.
    """
    told = read_event(event)
    with ErrorPath("message"):
        message = as_kept(_message(said, dialects))
    if message.role != "user" or message.tool_results or message.tool_calls:
        raise MessageError(
            f"what is asked must be the user's words, not a message of the {message.role}",
            path="message",
            hint="replies and results of tools are recorded: session.record(…)",
            command='give a reply or a result as it is, without "ask"',
        )
    if _is_empty(message) and not told.get("hook_data") and not told.get("attachments"):
        raise MessageError(
            "the message is empty", path="message", hint="say something, or tell what happened: hook_data"
        )
    return Said(message=message, event=told)


def read_event(event: Mapping[str, Any]) -> dict[str, Any]:
    """What is told about the occasion, as it comes back from a ledger; errors as above."""
    for name in event:
        if name not in EVENT:
            raise UnknownNameError("argument of ask()", name, EVENT)
    told = {name: _READERS.get(name, read_text)(value, name) for name, value in event.items() if value is not None}
    kept = {name: value for name, value in told.items() if value or name == PROFILE}  # an empty profile ends the last
    written = write_json(kept, "what is told about the occasion")
    read: dict[str, Any] = json.loads(written)
    return read


def inherit_user_profile(said: Said, kept: JSON) -> Said:
    """Return the input with the profile that the session remembers, unless it comes with one of its own."""
    profile = kept.get(PROFILE)
    if PROFILE in said.event or not profile:
        return said
    return said._replace(event={**said.event, PROFILE: profile})


def as_kept(message: Message) -> Message:
    """A message as it comes back from a ledger, with halves of characters joined."""
    return decode_value(Message, json.loads(write_json(encode_value(message), "a message")))


def build_session_start_message_at(now: int) -> Message:
    """Return the line that says when a session started, in local time."""
    return build_session_start_message(datetime.fromtimestamp(now // 1000))  # noqa: DTZ006 - the line has the local time


def message_context(event: JSON, *, hooks: int, now: int) -> JSON:
    """What is written down beside a message of the user: the occasion, what was handed over, and when.

    Args:
        event: What is known about the occasion.
        hooks: How many sections plugins have added.
        now: The time, in milliseconds since 1970.
    """
    data, attachments = event.get("hook_data"), event.get("attachments")
    told = len(data) if isinstance(data, dict) else 0
    return {
        "event": {"platform": event.get("platform"), "hookCount": told + hooks},
        "attachments": list(attachments) if isinstance(attachments, list) else [],
        "injectedAt": now,
    }


def _is_empty(message: Message) -> bool:
    return all(isinstance(part, Text) and not part.text.strip() for part in message.parts)


def _message(said: object, dialects: DialectRegistry) -> Message:
    if isinstance(said, Message):
        return said
    if isinstance(said, str):
        return Message("user", said)
    if isinstance(said, _PARTS):
        return Message("user", (said,))
    if isinstance(said, Sequence) and said and all(isinstance(part, _PARTS) for part in said):
        return Message("user", said)
    if isinstance(said, list | tuple) and (content := _content_of(said)):
        said = {"role": "user", content: said}
    if isinstance(said, Mapping) or hasattr(said, "model_fields_set"):
        return dialects.recognise([said]).read(said)
    hint = "give text, parts (Text, Image, File of nexus_core.context, or those of an API), or a message of an API"
    raise MessageError(f"expected a message, not {describe_json_value(said)}", hint=hint)


def _content_of(parts: Sequence[object]) -> str:
    """What the parts of an API are called in its messages; "" for what is no list of such."""
    if not parts or not all(isinstance(part, Mapping) and "role" not in part for part in parts):
        return ""
    if all("type" in part for part in parts if isinstance(part, Mapping)):
        return "content"
    # Gemini's do not say of what type they are.
    return "parts" if all(_GEMINI_PARTS & part.keys() for part in parts if isinstance(part, Mapping)) else ""


def _words(given: object, name: str) -> list[str]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise UsageError(f"{name} must be a list of words", hint='for example ["reply", "react"]')
    return list(read_texts(given, name))


def _zone(given: object, name: str) -> str:
    hint = f'give it as text: "{given}"' if type(given) is int else 'for example "Europe/Zurich"'
    return read_text(given, name, hint=hint)


def _mapping(given: object, name: str) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        example = _EXAMPLES.get(name, '{"git": "clean"}')
        raise UsageError(
            f"{name} must be values by name, not {describe_json_value(given)}", hint=f"for example {example}"
        )
    return {str(key): to_json_types(value, name) for key, value in given.items()}


def _attachments(given: object, name: str) -> list[dict[str, Any]]:  # noqa: ARG001 - as the others
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise UsageError("attachments must be a list", hint=_ATTACHMENTS)
    return [_attachment(each) for each in given]


def _attachment(given: object) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        return {"path": _path(given), "lines": None}
    lines = given.get("lines")
    if lines is not None and not _is_range(lines):
        raise UsageError(
            f"the lines of an attachment are the first and the last one, not {describe_json_value(lines)}",
            hint=_ATTACHMENTS,
        )
    return {"path": _path(given.get("path")), "lines": None if lines is None else list(lines)}


def _is_range(lines: object) -> bool:
    return isinstance(lines, list | tuple) and len(lines) == _RANGE and all(type(line) is int for line in lines)


def _path(given: object) -> str:
    if given is None or given == "":
        raise UsageError("an attachment needs a path", hint=_ATTACHMENTS)
    return str(read_path(given, "the path of an attachment"))


_READERS: dict[str, Callable[[object, str], Any]] = {
    "platform_actions": _words,
    "hook_data": _mapping,
    "attachments": _attachments,
    "profile": _mapping,
    "timezone": _zone,
}
