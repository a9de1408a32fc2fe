"""What may be known about the occasion of a message."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, get_args

from nexus_core.dialects.fields import ErrorPath, describe_json_value, to_json_types
from nexus_core.dialects.neutral import decode_value, encode_value
from nexus_core.errors import MessageError, UnknownNameError, UsageError
from nexus_core.history.groups import build_session_start_message
from nexus_core.history.truncation import fit_items
from nexus_core.ledger.json_text import write_json
from nexus_core.rendering import render_current_section
from nexus_core.request.placements import build_section_entry
from nexus_core.request.renderer import render_input
from nexus_core.request.runtime import get_number
from nexus_core.thread.arguments import read_path, read_text, read_texts
from nexus_core.types.messages import Message, Part, Text

if TYPE_CHECKING:
    import os

    from nexus_core.dialects.registry import DialectRegistry
    from nexus_core.history.items import HistoryItem, TruncationPoint
    from nexus_core.history.truncation import FitLimits, KeptItems
    from nexus_core.request.placements import SectionEntry
    from nexus_core.request.static_context import StaticContext
    from nexus_core.request.window import ContextWindow
    from nexus_core.types.messages import JSON
    from nexus_core.types.prompt import Section
    from nexus_core.types.request import Request


class EventFields(TypedDict, total=False):
    """The arguments by which `ask` and `preview` are told about it; fields as those of `Request`."""

    timezone: str | None
    platform: str | None
    platform_actions: Iterable[str] | None
    hook_data: Mapping[str, object] | None
    attachments: Iterable[str | os.PathLike[str] | Mapping[str, object]] | None
    profile: Mapping[str, object] | None
    source: str | None
    event_id: str | None


EVENT_FIELDS = tuple(EventFields.__annotations__)
"""What may be told about it."""


PROFILE_FIELD = "profile"
"""What of the occasion a session remembers: it stays until another is given."""


def add_event(request: Request, message: Message | None, event: JSON) -> Request:
    """The circumstances of a turn: those of the session, what was said and what is known about the occasion."""
    fields: dict[str, Any] = {name: value for name, value in event.items() if name in EVENT_FIELDS}
    for name in ("platform_actions", "attachments"):
        fields[name] = tuple(fields.get(name, ()))
    return replace(request, message=message, **fields)


_PARTS = get_args(Part)
_GEMINI_PARTS = frozenset({"text", "inlineData", "inline_data", "fileData", "file_data"})
_RANGE = 2
_EXAMPLES = {"profile": '{"friends_profile": "Ada likes green tea."}'}
_ATTACHMENTS = 'for example [{"path": "a.py", "lines": [1, 20]}]'


class UserInput(NamedTuple):
    """Something to be answered, as it comes back from a ledger.

    Attributes:
        message: The user's message.
        event: What is known about the occasion, by name.
    """

    message: Message
    event: JSON


def read_input(said: object, event: Mapping[str, Any], dialects: DialectRegistry) -> UserInput:
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
        message = round_trip_message(_message(said, dialects))
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
    return UserInput(message=message, event=told)


def read_event(event: Mapping[str, Any]) -> dict[str, Any]:
    """What is told about the occasion, as it comes back from a ledger; errors as above."""
    for name in event:
        if name not in EVENT_FIELDS:
            raise UnknownNameError("argument of ask()", name, EVENT_FIELDS)
    told = {name: _READERS.get(name, read_text)(value, name) for name, value in event.items() if value is not None}
    kept = {
        name: value for name, value in told.items() if value or name == PROFILE_FIELD
    }  # an empty profile ends the last
    written = write_json(kept, "what is told about the occasion")
    read: dict[str, Any] = json.loads(written)
    return read


def inherit_user_profile(said: UserInput, kept: JSON) -> UserInput:
    """Return the input with the profile that the session remembers, unless it comes with one of its own."""
    profile = kept.get(PROFILE_FIELD)
    if PROFILE_FIELD in said.event or not profile:
        return said
    return said._replace(event={**said.event, PROFILE_FIELD: profile})


def round_trip_message(message: Message) -> Message:
    """A message as it comes back from a ledger, with halves of characters joined."""
    return decode_value(Message, json.loads(write_json(encode_value(message), "a message")))


def build_session_start_message_at(now: int) -> Message:
    """Return the line that says when a session started, in local time."""
    return build_session_start_message(datetime.fromtimestamp(now // 1000))  # noqa: DTZ006 - the line has the local time


def build_message_context(event: JSON, *, hooks: int, now: int) -> JSON:
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

MAX_MEMORY_TOKENS = 4000
"""Memories take no more, unless `budget.memory` says otherwise."""
_BETWEEN = 2
"""Tokens for the blank lines around a block, at most."""


class ChosenMemories(NamedTuple):
    """The sections that are told, and the memories that are not."""

    sections: list[Section]
    left_out: list[Section]


def count_section_tokens(section: Section, count: Callable[[str], int]) -> int:
    """What a section takes in a message."""
    return count(render_current_section(section)) + _BETWEEN


def without_memories(sections: Sequence[Section]) -> list[Section]:
    """The sections that are told in any case."""
    return [section for section in sections if not is_optional(section)]


def is_optional(section: Section) -> bool:
    """Whether a section is a memory that may be left out."""
    return section.kind == "memory" and not section.required


def choose_memories(sections: Sequence[Section], room: int, count: Callable[[str], int]) -> ChosenMemories:
    """Everything that is no memory, and the memories, without those of the lowest priority that do not fit.

    Args:
        sections: What is to be told, in its order; what must not be left out is paid for already.
        room: Tokens there are for memories.
        count: Counts a text.
    """
    optional = [section for section in sections if is_optional(section)]
    sizes = {id(section): count_section_tokens(section, count) for section in optional}
    left_out: list[Section] = []
    # Of equals, the last one first.
    for section in [each for _, each in sorted(enumerate(optional), key=lambda pair: (pair[1].priority, -pair[0]))]:
        if sum(sizes.values()) <= room:
            break
        del sizes[id(section)]
        left_out.append(section)
    gone = {id(section) for section in left_out}
    return ChosenMemories([section for section in sections if id(section) not in gone], left_out)


class RenderedInput(NamedTuple):
    """A message as it is sent.

    Attributes:
        message: The message.
        entries: The sections it tells, and those it leaves out.
        context: What it was put together from, as it is written down.
        plain: The same without memories, which are told only where nothing else needs the room.
    """

    message: Message
    entries: list[SectionEntry]
    context: JSON
    plain: HistoryItem


class InputRenderer:
    """Puts what was said into words.

    Args:
        request: All circumstances of the turn.
        static: What stands around the session.
        sections: What is to be told besides, in its order.
        window: The model's window.
        now: The time, in milliseconds since 1970.
    """

    def __init__(
        self, request: Request, static: StaticContext, sections: Sequence[Section], window: ContextWindow, now: int
    ) -> None:
        self._request = request
        self._static_context = static
        self._sections = sections
        self._window = window
        self._now = now

    def fit(
        self, said: HistoryItem, before: Sequence[HistoryItem], cut: TruncationPoint | None, limits: FitLimits
    ) -> tuple[KeptItems, RenderedInput]:
        """The messages that stay, with the one that was said in words: memories only where nothing else needs the room.

        Args:
            said: What was said.
            before: The history.
            cut: Where it was cut before.
            limits: What there is room for.
        """
        plain = self._said(said, without_memories(self._sections))
        kept = fit_items([*before, plain], cut, limits)
        limit = get_number(self._static_context.settings, "budget.memory", MAX_MEMORY_TOKENS)
        left, spare = limits.room - kept.tokens, limits.bytes - kept.bytes
        room = min(limit, left)
        told = choose_memories(self._sections, room, self._window.sizer.counter.count)
        rendered = self._said(said, told.sections)
        # A renderer may have put more around them.
        while rendered.tokens - plain.tokens > max(left, 0) or rendered.size - plain.size > max(spare, 0):
            told = self._one_less(told)
            rendered = self._said(said, told.sections)
        rule = "budget.memory" if room == limit else "room"
        entries = [*map(self._mention, told.sections), *(self._mention(each, rule) for each in told.left_out)]
        hooks = sum(each.source is not None and bool(each.source.plugin) for each in told.sections)
        context = build_message_context(self._event, hooks=hooks, now=self._now)
        sent = [rendered if each is plain else each for each in kept.sent]
        return kept._replace(sent=sent), RenderedInput(rendered.message, entries, context, plain)

    def _one_less(self, told: ChosenMemories) -> ChosenMemories:
        """What is told without the memory that goes first."""
        count = self._window.sizer.counter.count
        taken = sum(count_section_tokens(each, count) for each in told.sections if is_optional(each))
        return choose_memories(self._sections, taken - 1, count)

    @property
    def _event(self) -> dict[str, Any]:
        request = self._request
        return {
            "platform": request.platform or None,
            "hook_data": request.hook_data,
            "attachments": list(request.attachments),
        }

    def _said(self, said: HistoryItem, sections: Sequence[Section]) -> HistoryItem:
        request = self._request
        if not self._static_context.role.sees_platform:
            request = replace(request, platform="", platform_actions=())
        message = round_trip_message(render_input(self._static_context.renderer, request, sections, self._now))
        return self._window.weigh_event(said._replace(message=message, said=said.message))

    def _mention(self, section: Section, refusal: str = "") -> SectionEntry:
        return build_section_entry(section, count_section_tokens(section, self._window.sizer.counter.count), refusal)
