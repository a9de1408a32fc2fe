"""What is said to a session, and what is known about the occasion."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

from nexus_core.dialects.fields import at, named
from nexus_core.dialects.finding import recognise
from nexus_core.dialects.plain import plain
from nexus_core.errors import MessageError, UnknownNameError, UsageError
from nexus_core.values.message import Message
from nexus_core.values.parts import Part

if TYPE_CHECKING:
    from nexus_core.values.parts import JSON

EVENT = ("platform", "attachments", "event_id", "source", "hook_data")
"""What may be told about the occasion of a message."""

_PARTS = get_args(Part)
_RANGE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """Something to be answered.

    Attributes:
        message: The user's message.
        event: What is known about the occasion, by name.
        context: The same as it is written down beside the message.
    """

    message: Message
    event: JSON
    context: JSON


def read_input(said: object, event: Mapping[str, Any]) -> Said:
    """A message: text, parts, a `Message`, or a user's message in the shape of any API.

    Raises:
        MessageError: It is none of these, or not the user's.
        UnknownNameError: Something is told about the occasion that means nothing.
    """
    for name in event:
        if name not in EVENT:
            raise UnknownNameError("argument of ask()", name, EVENT)
    with at("message"):
        message = _message(said)
    if message.role != "user" or message.tool_results or message.tool_calls:
        raise MessageError(
            f"what is asked must be the user's words, not a message of the {message.role}",
            path="message",
            hint="replies and results of tools are recorded: session.record(…)",
        )
    told = {name: plain(value, name) for name, value in event.items() if value is not None and name != "attachments"}
    attachments = _attachments(event.get("attachments") or ())
    hooks = told.get("hook_data")
    context = {
        "event": {"platform": told.get("platform"), "hookCount": len(hooks) if isinstance(hooks, dict | list) else 0},
        "attachments": attachments,
        "injectedAt": time.time_ns() // 1_000_000,
    }
    return Said(message=message, event=told, context=context)


def _message(said: object) -> Message:
    if isinstance(said, Message):
        return said
    if isinstance(said, str):
        return Message("user", said)
    if isinstance(said, _PARTS):
        return Message("user", (said,))
    if isinstance(said, Sequence) and said and all(isinstance(part, _PARTS) for part in said):
        return Message("user", said)
    if isinstance(said, Mapping) or hasattr(said, "model_fields_set"):
        return recognise([said]).read(said)
    raise MessageError(f"expected a message, not {named(said)}", hint="give text, parts, or a message of an API")


def _attachments(given: object) -> list[dict[str, Any]]:
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise UsageError("attachments must be a list", hint='attachments=[{"path": "a.py", "lines": [1, 20]}]')
    return [_attachment(each) for each in given]


def _attachment(given: object) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        return {"path": str(given), "lines": None}
    lines = given.get("lines")
    if lines is not None and (len(lines) != _RANGE or not all(isinstance(line, int) for line in lines)):
        raise UsageError(f"the lines of an attachment are the first and the last one, not {lines!r}")
    if not given.get("path"):
        raise UsageError("an attachment needs a path", hint='attachments=[{"path": "a.py", "lines": [1, 20]}]')
    return {"path": str(given["path"]), "lines": None if lines is None else list(lines)}
