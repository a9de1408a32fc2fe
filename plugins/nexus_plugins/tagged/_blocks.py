"""The four blocks of the tagged format, and escapes for text inside them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta, timezone
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple
from zoneinfo import ZoneInfo, available_timezones

from nexus_core import UnknownNameError, UsageError, get_dialect
from nexus_core.plugin.text import escape_markers, strip_hidden, visible_line
from nexus_plugins.tagged._options import DEFAULT_LIMIT, get_phrases, require_limit

if TYPE_CHECKING:
    from datetime import tzinfo

    from nexus_core import Tool
    from nexus_plugins.tagged._builder import Run
    from nexus_plugins.tagged._options import BlockPhrases

CAPABILITIES_TAG = "[CAPABILITIES]"
SHARED_MEMORY_TAG = "[SHARED_MEMORY count={count}]"
FRIENDS_INFO_TAG = "[FRIENDS_INFO]"
THIS_MOMENT_TAG = "[THIS_MOMENT]"

HUMAN_SPEAKER, NEXUS_SPEAKER = "Human", "Nexus"
TIME_UNKNOWN = "time unknown"

INDENT = "  "

MEMORY_LINE = re.compile(r"\[[^\[\]]*\](?:human|nexus)[(:]")
"""Start of a line in the memory block, in the form that `escape_markers` compares; texts there must not have it."""


def format_block(tag: str, heading: str, body: str) -> str:
    """Return a block with its tag and heading."""
    return f"{tag}\n{heading}\n\n{body}"


def format_element(name: str, text: str) -> str:
    """Return an element with a text, escaped so that it cannot close the element."""
    return f"<{name}>\n{escape_markers(text)}\n</{name}>"


def indent_lines(text: str) -> str:
    """Indent every line but the first, for any kind of line break."""
    return INDENT.join(text.splitlines(keepends=True))


def dedent_lines(text: str) -> str:
    """Undo `indent_lines`."""
    first, *others = text.splitlines(keepends=True) or [""]
    return first + "".join(line.removeprefix(INDENT) for line in others)


def quote_name(name: str) -> str:
    """Return a single-word name unchanged, any other as a JSON string, so that it cannot end its line or list."""
    if name.isprintable() and not re.search(r"""[\s"'`\\:,()]""", name) and name:
        return name
    return json.dumps(name).replace("(", "\\u0028").replace(")", "\\u0029")


def format_one_line(value: object) -> str:
    """Return a value on one line without hidden characters: a text as it is, anything else as JSON."""
    return visible_line(strip_hidden(value if isinstance(value, str) else format_json(value)))


def format_json(value: object) -> str:
    """Return readable JSON, with values that JSON lacks as `str` shows them."""
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):
        return str(value)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MINUTES_PER_DAY = 24 * 60
_MIN_MILLISECONDS = 1e11
"""A larger number is in milliseconds since 1970: in seconds it would be after the year 5000."""


def parse_zone(zone: int | str) -> tzinfo:
    """Return the time zone of an offset or a name.

    Args:
        zone: Minutes west of UTC, as JavaScript's `getTimezoneOffset` gives them (-480 is +08:00), also as text; or a
            name such as `Asia/Shanghai`; "" is UTC.

    Raises:
        UsageError: The offset is out of range, or not a number.
        UnknownNameError: There is no zone of that name.
    """
    if isinstance(zone, str):
        if not re.fullmatch("[+-]?[0-9]{1,9}", zone):
            return _find_zone(zone)
        zone = int(zone)
    if type(zone) is not int or abs(zone) >= _MINUTES_PER_DAY:
        raise UsageError(
            f"{zone!r} is not the offset of a time zone",
            hint="give minutes west of UTC, as JavaScript does (-480 is +08:00), or a name such as Asia/Shanghai",
        )
    return timezone(timedelta(minutes=-zone))


def parse_moment(value: object) -> datetime | None:
    """Parse a timestamp: a datetime, ISO 8601, seconds or milliseconds since 1970. None for anything else.

    A timestamp without an offset is in UTC.
    """
    try:
        if isinstance(value, str):
            value = datetime.fromisoformat(value.strip())
        elif isinstance(value, int | float) and not isinstance(value, bool):
            seconds = value / 1000 if abs(value) > _MIN_MILLISECONDS else value
            value = _EPOCH + timedelta(seconds=seconds)
    except (ValueError, OverflowError):
        return None
    if not isinstance(value, datetime):
        return None
    return value if value.tzinfo else value.replace(tzinfo=UTC)


def convert_milliseconds(milliseconds: int) -> datetime:
    """Convert milliseconds since 1970 to a datetime, at most the latest that Python has."""
    try:
        return _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC)


def format_local_time(moment: datetime, zone: tzinfo) -> str:
    """Return `YYYY-MM-DD HH:MM:SS±HH:MM` in a time zone."""
    return re.sub(r"([+-]\d\d:\d\d):.*", r"\1", _convert_zone(moment, zone).isoformat(" ", "seconds"))


def format_local_minute(moment: datetime, zone: tzinfo | None) -> str:
    """Return `YYYY-MM-DD HH:MM` in a time zone, or None for the moment's own."""
    return (_convert_zone(moment, zone) if zone else moment).replace(tzinfo=None).isoformat(" ", "minutes")


def _convert_zone(moment: datetime, zone: tzinfo) -> datetime:
    try:
        return moment.astimezone(zone)
    except (OverflowError, ValueError):  # on the first or last day that Python has
        return moment


def _find_zone(name: str) -> tzinfo:
    if name in ("", "UTC"):
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # unknown, malformed, or a directory of zones
        raise UnknownNameError("time zone", name, available_timezones()) from None


def read_tools(definitions: Iterable[object]) -> tuple[Tool, ...]:
    """Parse tool definitions in the format of any API.

    Raises:
        MessageError: A definition is invalid; the error names it.
    """
    return get_dialect("openai").read_tools(definitions)


def format_capabilities(tools: Iterable[Tool], phrases: BlockPhrases) -> str:
    """Return the block `[CAPABILITIES]`: an indented item per tool, so that no description can start another."""
    items = "\n".join(map(_format_tool, tools))
    return format_block(CAPABILITIES_TAG, phrases.tools, escape_markers(items) if items else phrases.no_tools)


def _format_tool(tool: Tool) -> str:
    # A tool that the provider runs itself may have nothing but a type.
    name = tool.name or str(tool.extra.get("type", ""))
    lines = [
        quote_name(name) + (f": {tool.description}" if tool.description else ""),
        *_format_parameters(tool.parameters),
    ]
    return "- " + indent_lines("\n".join(lines))


def _format_parameters(schema: Mapping[str, object]) -> Iterator[str]:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return
    required = schema.get("required")
    required_names = required if isinstance(required, list | tuple) else ()
    if properties:
        yield "Parameters:"
    for name, value in properties.items():
        parameter = value if isinstance(value, Mapping) else {}
        kind = [_format_type(parameter), *(["required"] if name in required_names else [])]
        line = f"- {quote_name(str(name))} ({', '.join(kind)})"
        description = parameter.get("description")
        yield f"{line}: {format_one_line(description)}" if description else line


def _format_type(schema: Mapping[str, object]) -> str:
    if "enum" in schema:
        return f"one of {format_one_line(schema['enum'])}"
    kind = schema.get("type", "any")
    if kind == "array" and isinstance(schema.get("items"), Mapping):
        return f"array of {_format_type(schema['items'])}"  # type: ignore[arg-type]
    if kind == "object" and schema.get("properties"):
        return f"object {format_one_line(format_json(schema['properties']))}"
    return format_one_line(kind)


SPEAKERS_BY_ROLE = {
    "human": HUMAN_SPEAKER,
    "user": HUMAN_SPEAKER,
    "ai": NEXUS_SPEAKER,
    "assistant": NEXUS_SPEAKER,
    "nexus": NEXUS_SPEAKER,
    "model": NEXUS_SPEAKER,
}
"""The speaker of a message by its role; other roles are not remembered."""


class MemoryEntry(NamedTuple):
    """A message in the memory block.

    Attributes:
        moment: The time of the message; None if unknown.
        speaker: `Human` or `Nexus`.
        text: Its text.
        used: The tools that it called, shown in its own line.
        sent: The images and files in it.
    """

    moment: datetime | None
    speaker: str
    text: str
    used: tuple[str, ...] = ()
    sent: tuple[str, ...] = ()

    @property
    def is_shown(self) -> bool:
        """True if the message has text, tool calls or media."""
        return bool(self.text.strip() or self.used or self.sent)


class MemoryFormatter:
    """Formatter of the block `[SHARED_MEMORY]`."""

    @staticmethod
    def format_shared_memory(
        history: Iterable[object],
        limit: int = DEFAULT_LIMIT,
        *,
        timezone: int | str | None = None,
        language: str = "en",
        tool_calls: bool = False,
    ) -> str:
        """Return the block with the newest messages of a history.

        Args:
            history: Messages, as dicts or objects, with `role` (human or user, ai or assistant; others are left out),
                `content`, and `timestamp`, by which they are sorted if all have one.
            limit: Maximum number of messages.
            timezone: The time zone of the times: minutes west of UTC, or a name; None for that of the timestamps.
            language: Language of the heading.
            tool_calls: True to name the tools that a message called.
        """
        entries = [_read_entry(message, tool_calls=tool_calls) for message in history]
        shown = _sort_oldest_first([each for each in entries if each is not None and each.is_shown])
        zone = None if timezone is None else parse_zone(timezone)
        return format_memory(reversed(shown), limit=limit, zone=zone, phrases=get_phrases(language))


def drop_current_run(history: Iterable[object], run: Run) -> list[object]:
    """Return a history without the messages of a run, whose user message is in another block.

    They are identified by their `run_id`. The newest user message also counts as the run's if it has no `run_id` and
    the same text.
    """
    others = [message for message in history if not run.id or str(get_field(message, "run_id")) != run.id]
    dialogue = [(each, at) for at, message in enumerate(others) if (each := _read_entry(message, tool_calls=False))]
    if dialogue:
        newest = _sort_oldest_first([each for each, _ in dialogue])[-1]
        at = next(at for each, at in dialogue if each is newest)
        is_same = newest.speaker == HUMAN_SPEAKER and newest.text.strip() == run.current_input.strip()
        if is_same and not get_field(others[at], "run_id"):
            del others[at]
    return others


def first_user_text(history: object) -> str | None:
    """Return the text of the first user message in the history of a run, or None if there is no such text."""
    for message in history if isinstance(history, list | tuple) else ():
        each = _read_entry(message, tool_calls=False)
        if each is not None and each.speaker == HUMAN_SPEAKER and each.text.strip():
            return each.text
    return None


def get_field(value: object, name: str) -> object:
    """Return a field of a dict or an attribute of an object, or None if it is missing."""
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def format_memory(
    newest_first: Iterable[MemoryEntry], *, limit: int, zone: tzinfo | None, phrases: BlockPhrases, summary: str = ""
) -> str:
    """Return the block `[SHARED_MEMORY]`.

    Args:
        newest_first: The messages, newest first; only as many are consumed as are shown.
        limit: Maximum number of messages.
        zone: The time zone of the times; None for that of each message.
        phrases: The phrases of the language.
        summary: The summary of older messages; "" for none.
    """
    shown = list(islice((each for each in newest_first if each.is_shown), require_limit(limit)))
    lines = "\n".join(_format_entry(each, zone) for each in reversed(shown))
    body = lines or phrases.no_memory
    if summary.strip():
        body = f"{format_element('memory_summary', summary)}\n\n{body}"
    return format_block(SHARED_MEMORY_TAG.format(count=len(shown)), phrases.memory, body)


def _format_entry(entry: MemoryEntry, zone: tzinfo | None) -> str:
    time = TIME_UNKNOWN if entry.moment is None else format_local_minute(entry.moment, zone)
    verbs = {"sent": entry.sent, "used": entry.used}
    notes = [f"{verb} {', '.join(map(quote_name, names))}" for verb, names in verbs.items() if names]
    head = f"[{time}] {entry.speaker}" + (f" ({escape_markers('; '.join(notes))})" if notes else "") + ":"
    return f"{head} {escape_markers(entry.text, MEMORY_LINE)}" if entry.text.strip() else head


def _read_entry(message: object, *, tool_calls: bool) -> MemoryEntry | None:
    role = get_field(message, "role")
    speaker = SPEAKERS_BY_ROLE.get(str(getattr(role, "value", role)).lower())
    if speaker is None:
        return None
    used = tuple(_list_called_tools(get_field(message, "tool_calls"))) if tool_calls else ()
    return MemoryEntry(
        parse_moment(get_field(message, "timestamp")), speaker, _read_content(get_field(message, "content")), used
    )


def _read_content(content: object) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list | tuple):
        texts = (part.get("text") if isinstance(part, Mapping) else part for part in content)
        return "\n".join(text for text in texts if isinstance(text, str))
    return "" if content is None else format_one_line(content)


def _list_called_tools(calls: object) -> Iterator[str]:
    for call in calls if isinstance(calls, list | tuple) else ():
        function = call.get("function", call) if isinstance(call, Mapping) else None
        name = function.get("name") if isinstance(function, Mapping) else None
        if isinstance(name, str):
            yield name


def _sort_oldest_first(entries: list[MemoryEntry]) -> list[MemoryEntry]:
    times = [each.moment for each in entries if each.moment is not None]
    if len(times) != len(entries):
        return entries
    # Databases often return the newest first. Such a list is reversed, so that messages of the same time are too.
    is_reversed = bool(times) and times[0] > times[-1] and times == sorted(times, reverse=True)
    return entries[::-1] if is_reversed else sorted(entries, key=lambda each: each.moment)  # type: ignore[arg-type, return-value]


PROFILE_KEYS = ("friends_profile", "learning")
"""The keys of a profile; the second is the legacy name."""


class FriendsInfoFormatter:
    """Formatter of the block `[FRIENDS_INFO]`."""

    @staticmethod
    def format_friends_info(user_profile: Mapping[str, object] | None, *, language: str = "en") -> str:
        """Return the block with a user's profile.

        Args:
            user_profile: `{"prompt_overrides": {"friends_profile": "…"}}`; without that key `learning` is used. The
                value may be a text, a list or an object.
            language: Language of the heading.
        """
        return format_friends(user_profile, get_phrases(language))


def format_friends(profile: Mapping[str, object] | None, phrases: BlockPhrases) -> str:
    """Return the block `[FRIENDS_INFO]`."""
    text = next((text for text in _list_profile_texts(profile) if text.strip()), "")
    return format_block(FRIENDS_INFO_TAG, phrases.friend, escape_markers(text) if text else phrases.no_friend)


def _list_profile_texts(profile: object) -> Iterator[str]:
    if not isinstance(profile, Mapping):
        return
    for table in (profile.get("prompt_overrides"), profile):
        if isinstance(table, Mapping):
            yield from (_format_profile(table.get(key)) for key in PROFILE_KEYS)


def _format_profile(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return "\n".join(f"- {format_one_line(name)}: {format_one_line(each)}" for name, each in value.items())
    if isinstance(value, list | tuple):
        return "\n".join(f"- {format_one_line(each)}" for each in value)
    return "" if value is None else format_one_line(value)


class MomentSection(NamedTuple):
    """A titled text in the block `[THIS_MOMENT]`."""

    title: str
    text: str


class MomentFormatter:
    """Formatter of the block `[THIS_MOMENT]`."""

    @staticmethod
    def format_this_moment(current_input: str, timestamp_utc: object = None, timezone_offset: int | str = 0) -> str:
        """Return the block with the user message and the user's local time.

        Args:
            current_input: The text of the user message.
            timestamp_utc: Its time: ISO 8601, a datetime, or seconds or milliseconds since 1970. None or an invalid
                value omits `<current_time>`.
            timezone_offset: Minutes west of UTC as JavaScript gives them (-480 is +08:00), or the name of a zone.

        Raises:
            UsageError: The time zone is invalid.
        """
        moment, zone = parse_moment(timestamp_utc), parse_zone(timezone_offset)
        return format_moment(current_input, "" if moment is None else format_local_time(moment, zone))


def format_moment(
    text: str, time: str, *, facts: Iterable[tuple[str, object]] = (), sections: Iterable[MomentSection] = ()
) -> str:
    """Return the block `[THIS_MOMENT]`.

    Args:
        text: The text of the user message.
        time: Its time, as the model reads it; "" for none.
        facts: Metadata of the message by name; a line each.
        sections: Further titled texts.
    """
    lines = "\n".join(f"{format_one_line(name)}: {format_one_line(value)}" for name, value in facts)
    return "\n".join(
        [
            THIS_MOMENT_TAG,
            *([f"<current_time>{time}</current_time>"] if time else []),
            *([format_element("current_facts", lines)] if lines else []),
            *(
                format_element("current_section", f"{format_one_line(each.title)}\n{each.text}")
                for each in sections
                if each.text.strip()
            ),
            format_element("human_input", text),
        ]
    )
