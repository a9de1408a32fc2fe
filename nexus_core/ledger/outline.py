"""Roles and tool calls of stored messages, read from their JSON.

Steps are counted without decoding their messages, unless only the decoder can tell whether a message is intact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nexus_core.ledger.codec import StoredStep, refers_to_media
from nexus_core.ledger.store import parse_json
from nexus_core.types.messages import ROLES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from nexus_core.types.ledger import Step

    FieldCheck = Callable[[object], bool]

MAX_OUTLINED_LEVELS = 20
"""Levels of nesting in a field; deeper ones are left to the decoder, which refuses more than a hundred."""
_SCALARS = frozenset({str, int, float, bool, type(None)})
_PLAIN_TEXT_FIELDS, _PLAIN_MESSAGE_FIELDS = 2, 3
"""Numbers of fields of plain text and of a message of it: `kind`, `text`; `nexus`, `role`, `parts`."""


class MessageOutline(NamedTuple):
    """The role of a message, and the names of the tools that it calls."""

    role: str
    tools: tuple[str, ...] = ()


_OUTLINES = {role: MessageOutline(role) for role in ROLES}


def outline_step(step: Step) -> list[MessageOutline]:
    """Return an outline of each message of a step.

    Raises:
        LedgerError: The messages cannot be read.
    """
    outlines = outline_messages(step.stored_messages) if isinstance(step, StoredStep) else None
    if outlines is not None:
        return outlines
    return [MessageOutline(each.role, tuple(call.name for call in each.tool_calls)) for each in step.messages]


def outline_messages(text: str) -> list[MessageOutline] | None:
    """Return an outline of each stored message, or None to leave it to the decoder.

    None if only the decoder can tell whether the messages are readable.
    """
    if refers_to_media(text):
        return None
    try:
        written = parse_json(text)
    except (ValueError, TypeError, RecursionError):
        return None
    if type(written) is not list:
        return None
    outlines: list[MessageOutline] = []
    for message in written:
        if not _is_plain_text(message) and not _is_readable(message, _MESSAGE):
            return None
        tools = [part["name"] for part in message.get("parts", ()) if part["kind"] == "tool_call"]
        role = message["role"]
        outlines.append(MessageOutline(role, tuple(tools)) if tools else _OUTLINES[role])
    return outlines


class _JsonForm(NamedTuple):
    """The fields that a stored message or part can have.

    Attributes:
        checks: A check of the value of each field, by its name.
        needed: The fields that must be there.
    """

    checks: dict[str, FieldCheck]
    needed: frozenset[str]


def _is_readable(value: object, form: _JsonForm) -> bool:
    """True if the decoder certainly reads the value, too."""
    if type(value) is not dict:
        return False
    checks = form.checks
    try:
        for name, given in value.items():
            if not checks[name](given):
                return False
    except KeyError:  # a field that is not known
        return False
    return form.needed <= value.keys()


def _is_plain_text(message: object) -> bool:
    """True if a message is one text without other fields.

    Most are, and it saves half of the checks.
    """
    if type(message) is not dict or len(message) != _PLAIN_MESSAGE_FIELDS:
        return False
    parts = message.get("parts")
    if type(parts) is not list or len(parts) != 1 or message.get("nexus") != 1 or message.get("role") not in ROLES:
        return False
    part = parts[0]
    return (
        type(part) is dict
        and len(part) == _PLAIN_TEXT_FIELDS
        and part.get("kind") == "text"
        and type(part.get("text")) is str
    )


def _is_text(value: object) -> bool:
    return type(value) is str


def _is_object(value: object) -> bool:
    return type(value) is dict and _are_shallow(value.values(), MAX_OUTLINED_LEVELS)


def _are_shallow(values: Iterable[object], depth: int) -> bool:
    """True if JSON values are nested at most `depth` levels deep."""
    for value in values:
        if type(value) in _SCALARS:
            continue
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
        if inner is None or depth <= 1 or not _are_shallow(inner, depth - 1):
            return False
    return True


def _are_parts(kinds: dict[str, _JsonForm], value: object) -> bool:
    if type(value) is not list:
        return False
    for part in value:
        kind = part.get("kind") if type(part) is dict else None
        form = kinds.get(kind) if type(kind) is str else None
        if form is None or not _is_readable(part, form):
            return False
    return True


def _build_form(*needed: str, **checks: FieldCheck) -> _JsonForm:
    return _JsonForm(checks | {"kind": _is_text, "extra": _is_object}, frozenset({"kind", *needed}))


_TEXT = _build_form("text", text=_is_text)
_PARTS = {
    "text": _TEXT,
    "reasoning": _build_form(text=_is_text, signature=_is_text, encrypted=_is_text, api=_is_text),
    "tool_call": _build_form(
        "id",
        "name",
        id=_is_text,
        name=_is_text,
        arguments=_is_object,
        raw=lambda value: value is None or _is_text(value),
    ),
    "tool_result": _build_form(
        "call_id",
        call_id=_is_text,
        parts=lambda value: _are_parts({"text": _TEXT}, value),
        name=_is_text,
        is_error=lambda value: type(value) is bool,
    ),
}
_MESSAGE = _JsonForm(
    {
        "nexus": lambda value: value == 1,
        "role": lambda value: value in ROLES,
        "parts": lambda value: _are_parts(_PARTS, value),
        "name": _is_text,
        "api": _is_text,
        "extra": _is_object,
    },
    frozenset({"role"}),
)
