"""The block `[SHARED_MEMORY]`: the last messages of both sides, the oldest first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.plugin import escape_markers
from nexus_plugins.tagged._clock import local_minute, moment_of, zone_of
from nexus_plugins.tagged._options import LIMIT, require_limit, words_of
from nexus_plugins.tagged._tags import (
    HUMAN,
    MEMORY_LINE,
    NEXUS,
    SHARED_MEMORY,
    TIME_UNKNOWN,
    block,
    element,
    one_line,
    plain_name,
)

if TYPE_CHECKING:
    from datetime import datetime, tzinfo

    from nexus_plugins.tagged._bus import Run
    from nexus_plugins.tagged._options import Words

SPEAKERS = {"human": HUMAN, "user": HUMAN, "ai": NEXUS, "assistant": NEXUS, "nexus": NEXUS, "model": NEXUS}
"""Whose line a message is; a message in any other role has none."""


class Remembered(NamedTuple):
    """A message as it is remembered.

    Attributes:
        moment: When it was said; None when nobody knows.
        speaker: `Human` or `Nexus`.
        text: What was said.
        used: The tools that it asked for. They stand in its own line, whatever comes after it.
        sent: Pictures and files that came with it.
    """

    moment: datetime | None
    speaker: str
    text: str
    used: tuple[str, ...] = ()
    sent: tuple[str, ...] = ()

    @property
    def is_shown(self) -> bool:
        """Whether there is anything to remember."""
        return bool(self.text.strip() or self.used or self.sent)


class MemoryFormatter:
    """Puts a history into the block `[SHARED_MEMORY]`."""

    @staticmethod
    def format_shared_memory(
        history: Iterable[object],
        limit: int = LIMIT,
        *,
        timezone: int | str | None = None,
        language: str = "en",
        tool_calls: bool = False,
    ) -> str:
        """The newest messages of a history.

        Args:
            history: Messages, as dicts or objects, with `role` (human or user, ai or assistant; others are left out),
                `content`, and `timestamp`, by which they are put in order where all have one.
            limit: How many at most.
            timezone: On whose clock the times are told: minutes west of UTC, or the name of a zone; None for that of
                the timestamps.
            language: Of the heading.
            tool_calls: Whether the tools are named that a message asked for.
        """
        told = [_remembered(message, tool_calls=tool_calls) for message in history]
        shown = _oldest_first([each for each in told if each is not None and each.is_shown])
        zone = None if timezone is None else zone_of(timezone)
        return memory_block(reversed(shown), limit=limit, zone=zone, words=words_of(language))


def drop_current_run(history: Iterable[object], run: Run) -> list[object]:
    """Return a history without the messages of a run, whose user message has a block of its own.

    They are recognised by their `run_id`. A newest message of the user that has none and the same text is the current
    one too.
    """
    others = [message for message in history if not run.id or str(get_field(message, "run_id")) != run.id]
    dialogue = [(each, at) for at, message in enumerate(others) if (each := _remembered(message, tool_calls=False))]
    if dialogue:
        newest = _oldest_first([each for each, _ in dialogue])[-1]
        at = next(at for each, at in dialogue if each is newest)
        is_same = newest.speaker == HUMAN and newest.text.strip() == run.current_input.strip()
        if is_same and not get_field(others[at], "run_id"):
            del others[at]
    return others


def first_user_text(history: object) -> str | None:
    """Return the text of the first user message in the history of a run, or None if there is no such text."""
    for message in history if isinstance(history, list | tuple) else ():
        each = _remembered(message, tool_calls=False)
        if each is not None and each.speaker == HUMAN and each.text.strip():
            return each.text
    return None


def get_field(value: object, name: str) -> object:
    """Return a field of a dict or an attribute of an object, None if it has none."""
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def memory_block(
    newest_first: Iterable[Remembered], *, limit: int, zone: tzinfo | None, words: Words, summary: str = ""
) -> str:
    """The block.

    Args:
        newest_first: What may be remembered; no more of it is looked at than is shown.
        limit: How many messages at most.
        zone: On whose clock the times are told; None for the one they come with.
        words: The phrases of the language.
        summary: What stands for everything before.
    """
    shown = list(islice((each for each in newest_first if each.is_shown), require_limit(limit)))
    lines = "\n".join(_line(each, zone) for each in reversed(shown))
    body = lines or words.no_memory
    if summary.strip():
        body = f"{element('memory_summary', summary)}\n\n{body}"
    return block(SHARED_MEMORY.format(count=len(shown)), words.memory, body)


def _line(said: Remembered, zone: tzinfo | None) -> str:
    time = TIME_UNKNOWN if said.moment is None else local_minute(said.moment, zone)
    verbs = {"sent": said.sent, "used": said.used}
    notes = [f"{verb} {', '.join(map(plain_name, names))}" for verb, names in verbs.items() if names]
    head = f"[{time}] {said.speaker}" + (f" ({escape_markers('; '.join(notes))})" if notes else "") + ":"
    return f"{head} {escape_markers(said.text, MEMORY_LINE)}" if said.text.strip() else head


def _remembered(message: object, *, tool_calls: bool) -> Remembered | None:
    role = get_field(message, "role")
    speaker = SPEAKERS.get(str(getattr(role, "value", role)).lower())
    if speaker is None:
        return None
    used = tuple(_called(get_field(message, "tool_calls"))) if tool_calls else ()
    return Remembered(moment_of(get_field(message, "timestamp")), speaker, _words(get_field(message, "content")), used)


def _words(content: object) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list | tuple):
        texts = (part.get("text") if isinstance(part, Mapping) else part for part in content)
        return "\n".join(text for text in texts if isinstance(text, str))
    return "" if content is None else one_line(content)


def _called(calls: object) -> Iterator[str]:
    for call in calls if isinstance(calls, list | tuple) else ():
        function = call.get("function", call) if isinstance(call, Mapping) else None
        name = function.get("name") if isinstance(function, Mapping) else None
        if isinstance(name, str):
            yield name


def _oldest_first(told: list[Remembered]) -> list[Remembered]:
    times = [each.moment for each in told if each.moment is not None]
    if len(times) != len(told):
        return told
    # Databases often give the newest first; of messages with one time, the last is the newest then as well.
    is_reversed = bool(times) and times[0] > times[-1] and times == sorted(times, reverse=True)
    return told[::-1] if is_reversed else sorted(told, key=lambda each: each.moment)  # type: ignore[arg-type, return-value]
