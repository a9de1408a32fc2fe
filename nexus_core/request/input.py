"""The user message: parsed, completed with event metadata, and rendered with sections and memories."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, get_args

from nexus_core.dialects.fields import ErrorPath, describe_json_value, read_path, read_text, read_texts, to_json_types
from nexus_core.dialects.neutral import decode_value, encode_value
from nexus_core.errors import MessageError, UnknownNameError, UsageError
from nexus_core.history.groups import build_session_start_message
from nexus_core.history.truncation import fit_items
from nexus_core.ledger.store import write_json
from nexus_core.rendering import render_current_section
from nexus_core.request.static_context import render_input
from nexus_core.types.messages import Message, Part, Text
from nexus_core.types.prompt import Source

if TYPE_CHECKING:
    import os

    from nexus_core.dialects.registry import DialectRegistry
    from nexus_core.history.truncation import FitLimits, HistoryItem, KeptItems, TruncationPoint
    from nexus_core.request.runtime import ContextWindow
    from nexus_core.request.static_context import StaticContext
    from nexus_core.types.messages import JSON
    from nexus_core.types.payloads import SessionPayload
    from nexus_core.types.prompt import Section
    from nexus_core.types.request import Request

MAX_MEMORY_TOKENS = 4000
"""Limit for all memories together, unless `budget.memory` sets another."""
_SEPARATOR_TOKENS = 2
"""Tokens of the blank lines around a section, at most."""
PROFILE_FIELD = "profile"
"""The field that a session stores: it holds until another profile is passed."""
_PART_TYPES = get_args(Part)
_GEMINI_PARTS = frozenset({"text", "inlineData", "inline_data", "fileData", "file_data"})
_RANGE_LENGTH = 2
_MAPPING_EXAMPLES = {"profile": '{"friends_profile": "Ada likes green tea."}'}
_ATTACHMENTS_HINT = 'for example [{"path": "a.py", "lines": [1, 20]}]'


class EventFields(TypedDict, total=False):
    """Metadata of a user message, as passed to `ask` and `preview`.

    Fields as in `Request`.
    """

    timezone: str | None
    platform: str | None
    platform_actions: Iterable[str] | None
    hook_data: Mapping[str, object] | None
    attachments: Iterable[str | os.PathLike[str] | Mapping[str, object]] | None
    profile: Mapping[str, object] | None
    source: str | None
    event_id: str | None


EVENT_FIELDS = tuple(EventFields.__annotations__)
"""The names of the metadata."""


class UserInput(NamedTuple):
    """A user message and its metadata, as a ledger would return them.

    Attributes:
        message: The user message.
        event: Metadata of the message, by the names of `EventFields`.
    """

    message: Message
    event: JSON


# ---- parsing --------------------------------------------------------------------------------------------------------


def read_input(value: object, event: Mapping[str, Any], dialects: DialectRegistry) -> UserInput:
    """Parse a user message and its metadata.

    Args:
        value: Text, parts, a `Message`, or a user message in the format of any API.
        event: Metadata of the message.
        dialects: The API dialects.

    Raises:
        MessageError: The value is none of these, is not a user message, or is empty.
        UnknownNameError: A field of the metadata is unknown.
        UsageError: A field of the metadata has a wrong type.
    """
    fields = read_event(event)
    with ErrorPath("message"):
        message = round_trip_message(_read_message(value, dialects))
    if message.role != "user" or message.tool_results or message.tool_calls:
        raise MessageError(
            f"what is asked must be the user's words, not a message of the {message.role}",
            path="message",
            hint="replies and results of tools are recorded: session.record(…)",
            command='give a reply or a result as it is, without "ask"',
        )
    if _is_empty(message) and not fields.get("hook_data") and not fields.get("attachments"):
        raise MessageError(
            "the message is empty", path="message", hint="say something, or tell what happened: hook_data"
        )
    return UserInput(message=message, event=fields)


def _read_message(value: object, dialects: DialectRegistry) -> Message:
    if isinstance(value, Message):
        return value
    if isinstance(value, str):
        return Message("user", value)
    if isinstance(value, _PART_TYPES):
        return Message("user", (value,))
    if isinstance(value, Sequence) and value and all(isinstance(part, _PART_TYPES) for part in value):
        return Message("user", value)
    if isinstance(value, list | tuple) and (content := _find_content_field(value)):
        value = {"role": "user", content: value}
    if isinstance(value, Mapping) or hasattr(value, "model_fields_set"):
        return dialects.recognise([value]).read(value)
    hint = "give text, parts (Text, Image, File of nexus_core.context, or those of an API), or a message of an API"
    raise MessageError(f"expected a message, not {describe_json_value(value)}", hint=hint)


def _find_content_field(parts: Sequence[object]) -> str:
    """Return the message field for the parts of an API; "" for other values."""
    if not parts or not all(isinstance(part, Mapping) and "role" not in part for part in parts):
        return ""
    if all("type" in part for part in parts if isinstance(part, Mapping)):
        return "content"
    # Gemini's parts have no type field.
    return "parts" if all(_GEMINI_PARTS & part.keys() for part in parts if isinstance(part, Mapping)) else ""


def _is_empty(message: Message) -> bool:
    return all(isinstance(part, Text) and not part.text.strip() for part in message.parts)


def round_trip_message(message: Message) -> Message:
    """Round-trip a message through JSON, repairing surrogates."""
    return decode_value(Message, json.loads(write_json(encode_value(message), "a message")))


def read_event(event: Mapping[str, Any]) -> dict[str, Any]:
    """Validate metadata and return it as a ledger would; errors as in `read_input`."""
    for name in event:
        if name not in EVENT_FIELDS:
            raise UnknownNameError("argument of ask()", name, EVENT_FIELDS)
    fields = {
        name: _FIELD_READERS.get(name, read_text)(value, name) for name, value in event.items() if value is not None
    }
    # An empty profile stays, because it replaces the stored one.
    fields = {name: value for name, value in fields.items() if value or name == PROFILE_FIELD}
    stored: dict[str, Any] = json.loads(write_json(fields, "what is told about the occasion"))
    return stored


def _read_words(value: object, name: str) -> list[str]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise UsageError(f"{name} must be a list of words", hint='for example ["reply", "react"]')
    return list(read_texts(value, name))


def _read_timezone(value: object, name: str) -> str:
    hint = f'give it as text: "{value}"' if type(value) is int else 'for example "Europe/Zurich"'
    return read_text(value, name, hint=hint)


def _read_mapping(value: object, name: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        example = _MAPPING_EXAMPLES.get(name, '{"git": "clean"}')
        raise UsageError(
            f"{name} must be values by name, not {describe_json_value(value)}", hint=f"for example {example}"
        )
    return {str(key): to_json_types(each, name) for key, each in value.items()}


def _read_attachments(value: object, name: str) -> list[dict[str, Any]]:  # noqa: ARG001 - as the others
    if isinstance(value, str | Mapping) or not isinstance(value, Iterable):
        raise UsageError("attachments must be a list", hint=_ATTACHMENTS_HINT)
    return [_read_attachment(each) for each in value]


def _read_attachment(value: object) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        return {"path": _read_attachment_path(value), "lines": None}
    lines = value.get("lines")
    if lines is not None and not _is_range(lines):
        raise UsageError(
            f"the lines of an attachment are the first and the last one, not {describe_json_value(lines)}",
            hint=_ATTACHMENTS_HINT,
        )
    return {"path": _read_attachment_path(value.get("path")), "lines": None if lines is None else list(lines)}


def _is_range(lines: object) -> bool:
    return isinstance(lines, list | tuple) and len(lines) == _RANGE_LENGTH and all(type(line) is int for line in lines)


def _read_attachment_path(value: object) -> str:
    if value is None or value == "":
        raise UsageError("an attachment needs a path", hint=_ATTACHMENTS_HINT)
    return str(read_path(value, "the path of an attachment"))


_FIELD_READERS: dict[str, Callable[[object, str], Any]] = {
    "platform_actions": _read_words,
    "hook_data": _read_mapping,
    "attachments": _read_attachments,
    "profile": _read_mapping,
    "timezone": _read_timezone,
}


def inherit_user_profile(user_input: UserInput, stored_options: SessionPayload) -> UserInput:
    """Return the input with the stored profile of its session, unless it has its own."""
    if PROFILE_FIELD in user_input.event or not stored_options.profile:
        return user_input
    return user_input._replace(event={**user_input.event, PROFILE_FIELD: stored_options.profile})


def add_event(request: Request, message: Message | None, event: JSON, model: str = "") -> Request:
    """Return the session's request with the message of a turn, its metadata, and the model to call."""
    fields: dict[str, Any] = {name: value for name, value in event.items() if name in EVENT_FIELDS}
    for name in ("platform_actions", "attachments"):
        fields[name] = tuple(fields.get(name, ()))
    return replace(request, message=message, model=model or request.model, **fields)


def build_session_start_message_at(now: int) -> Message:
    """Return the message with the start time of a session, in local time."""
    return build_session_start_message(datetime.fromtimestamp(now // 1000))  # noqa: DTZ006 - shown in local time


# ---- rendering ------------------------------------------------------------------------------------------------------


class SectionEntry(NamedTuple):
    """A section of the input, as it is stored with the rendered message.

    Attributes:
        id, title, kind: As in the section.
        source: The file or plugin of the section.
        tokens: Tokens of the section, also if it was left out.
        digest: The digest of its text.
        refusal: The rule by which it was left out; "" if it is sent.
        reason: Why a memory was recalled; "" for other sections.
        span: Where a memory begins and ends in the first text of the message, so that it can be taken out; None for
            other sections.
    """

    id: str
    title: str
    kind: str
    source: Source
    tokens: int
    digest: str
    refusal: str = ""
    reason: str = ""
    span: tuple[int, int] | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the entry as it is stored."""
        source: dict[str, Any] = {
            "uri": self.source.uri,
            "plugin": self.source.plugin,
            "trust": self.source.trust,
        }
        if self.source.lines is not None:
            source["lines"] = list(self.source.lines)
        stored = {**self._asdict(), "source": source}
        optional = {"reason": self.reason, "span": None if self.span is None else list(self.span)}
        return {name: value for name, value in stored.items() if name not in optional} | {
            name: value for name, value in optional.items() if value
        }


def read_section_entries(value: object) -> list[SectionEntry]:
    """Parse the stored entries of a rendered message."""
    rows = value if isinstance(value, list) else []
    return [
        SectionEntry(**{**each, "source": _read_source(each["source"]), "span": _read_pair(each.get("span"))})
        for each in rows
    ]


def _read_source(stored: dict[str, Any]) -> Source:
    return Source(**{**stored, "lines": _read_pair(stored.get("lines"))})


def _read_pair(value: object) -> tuple[int, int] | None:
    return (value[0], value[1]) if isinstance(value, list) and len(value) == 2 else None  # noqa: PLR2004 - a pair


def build_section_entry(section: Section, tokens: int, refusal: str = "") -> SectionEntry:
    """Return the entry of a section that is sent, or left out by the rule `refusal`."""
    source = section.source or Source(uri="plugin:nexus")
    reason = get_recall_reason(section)
    return SectionEntry(section.id, section.title, section.kind, source, tokens, section.digest, refusal, reason)


def get_recall_reason(section: Section) -> str:
    """Return why a memory was recalled; "" for other sections."""
    recalled = section.data.get("memory") if section.kind == "memory" else None
    return str(recalled.get("reason", "")) if isinstance(recalled, dict) else ""


class RenderedInput(NamedTuple):
    """A user message as it is sent.

    Attributes:
        message: The rendered message.
        entries: Its sections, and those that were left out.
        context: Metadata that is stored with it.
        plain: The message without memories, which are sent only if everything else fits.
    """

    message: Message
    entries: list[SectionEntry]
    context: JSON
    plain: HistoryItem


class InputRenderer:
    """Renders a user message with its sections, as many memories as fit among them.

    Args:
        request: The request of the turn.
        static: The static context of the session.
        sections: The sections of the message, in their order.
        window: The model's context window.
        now: The time, in milliseconds since 1970.
    """

    def __init__(
        self, request: Request, static: StaticContext, sections: Sequence[Section], window: ContextWindow, now: int
    ) -> None:
        self._request = request
        self._static = static
        self._sections = sections
        self._window = window
        self._now = now

    def fit(
        self, raw: HistoryItem, before: Sequence[HistoryItem], cut: TruncationPoint | None, limits: FitLimits
    ) -> tuple[KeptItems, RenderedInput]:
        """Return the messages that fit, and the rendered input.

        Memories only get the room that the other messages leave.

        Args:
            raw: The input before it is rendered.
            before: The history.
            cut: The truncation point of the last call.
            limits: The limits for all messages.
        """
        plain = self._render(raw, without_memories(self._sections))
        kept = fit_items([*before, plain], cut, limits)
        memory_limit = self._static.settings.get_number("budget.memory", MAX_MEMORY_TOKENS)
        free_tokens, free_bytes = limits.room - kept.tokens, limits.bytes - kept.bytes
        memory_tokens = min(memory_limit, free_tokens)
        chosen = choose_memories(self._sections, memory_tokens, self._window.sizer.counter.count)
        rendered = self._render(raw, chosen.sections)
        # A renderer may add text around memories.
        while rendered.tokens - plain.tokens > max(free_tokens, 0) or rendered.size - plain.size > max(free_bytes, 0):
            chosen = self._drop_one_memory(chosen)
            rendered = self._render(raw, chosen.sections)
        rule = "budget.memory" if memory_tokens == memory_limit else "room"
        entries = [
            *(
                self._build_entry(each)._replace(span=find_memory_span(each, rendered.message))
                for each in chosen.sections
            ),
            *(self._build_entry(each, rule) for each in chosen.left_out),
        ]
        hooks = sum(each.source is not None and bool(each.source.plugin) for each in chosen.sections)
        context = build_message_context(self._event, hooks=hooks, now=self._now)
        sent = [rendered if each is plain else each for each in kept.sent]
        return kept._replace(sent=sent), RenderedInput(rendered.message, entries, context, plain)

    def _drop_one_memory(self, chosen: ChosenMemories) -> ChosenMemories:
        """Leave out one more memory."""
        count = self._window.sizer.counter.count
        used = sum(count_section_tokens(each, count) for each in chosen.sections if is_optional(each))
        return choose_memories(self._sections, used - 1, count)

    @property
    def _event(self) -> dict[str, Any]:
        request = self._request
        return {
            "platform": request.platform or None,
            "hook_data": request.hook_data,
            "attachments": list(request.attachments),
        }

    def _render(self, raw: HistoryItem, sections: Sequence[Section]) -> HistoryItem:
        request = self._request
        if not self._static.role.sees_platform:
            request = replace(request, platform="", platform_actions=())
        message = round_trip_message(render_input(self._static.renderer, request, sections, self._now))
        return self._window.size_input(raw._replace(message=message, original=raw.message))

    def _build_entry(self, section: Section, refusal: str = "") -> SectionEntry:
        return build_section_entry(section, count_section_tokens(section, self._window.sizer.counter.count), refusal)


def build_message_context(event: JSON, *, hooks: int, now: int) -> JSON:
    """Return the metadata that is stored with a rendered message.

    Args:
        event: Metadata of the message.
        hooks: Number of sections that plugins have added.
        now: The time, in milliseconds since 1970.
    """
    data, attachments = event.get("hook_data"), event.get("attachments")
    data_count = len(data) if isinstance(data, dict) else 0
    return {
        "event": {"platform": event.get("platform"), "hookCount": data_count + hooks},
        "attachments": list(attachments) if isinstance(attachments, list) else [],
        "injectedAt": now,
    }


# ---- memories -------------------------------------------------------------------------------------------------------


class ChosenMemories(NamedTuple):
    """The sections that are sent, and the memories that are left out."""

    sections: list[Section]
    left_out: list[Section]


def choose_memories(sections: Sequence[Section], room: int, count: Callable[[str], int]) -> ChosenMemories:
    """Leave out the memories with the lowest priority until the others fit.

    Args:
        sections: The sections in their order; those that are never left out do not count.
        room: Tokens available for memories.
        count: Counts the tokens of a text.
    """
    optional = [section for section in sections if is_optional(section)]
    sizes = {id(section): count_section_tokens(section, count) for section in optional}
    left_out: list[Section] = []
    # Among equals, the last one is left out first.
    for section in [each for _, each in sorted(enumerate(optional), key=lambda pair: (pair[1].priority, -pair[0]))]:
        if sum(sizes.values()) <= room:
            break
        del sizes[id(section)]
        left_out.append(section)
    left_out_ids = {id(section) for section in left_out}
    return ChosenMemories([section for section in sections if id(section) not in left_out_ids], left_out)


def find_memory_span(section: Section, message: Message) -> tuple[int, int] | None:
    """Return where a memory is in the first text of a rendered message; None if it cannot be found there."""
    first = message.parts[0] if message.parts else None
    if section.kind != "memory" or not isinstance(first, Text):
        return None
    for block in (render_current_section(section), section.text):
        if first.text.count(block) == 1:
            return first.text.index(block), first.text.index(block) + len(block)
    return None


def without_memories(sections: Sequence[Section]) -> list[Section]:
    """Return the sections that are never left out."""
    return [section for section in sections if not is_optional(section)]


def is_optional(section: Section) -> bool:
    """True if a section is a memory that may be left out."""
    return section.kind == "memory" and not section.required


def count_section_tokens(section: Section, count: Callable[[str], int]) -> int:
    """Return the tokens of a section in a message."""
    return count(render_current_section(section)) + _SEPARATOR_TOKENS
