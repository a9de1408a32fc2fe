"""What is said in a turn, with the circumstances before it: the clock, the platform, what programs add, sections."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from nexus_core.rendering.labelled import render_section
from nexus_core.text.hidden import bare, strip_hidden
from nexus_core.text.markers import neutralise
from nexus_core.text.visible import visible_line
from nexus_core.values.message import Message
from nexus_core.values.parts import Text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nexus_core.values.request import Request
    from nexus_core.values.section import Section

SOURCE = "_source"
"""The note on a message that says who or what said it; no API is told."""

_OWN = frozenset({"current time", "timezone", "platform", "available actions"})
"""What the lines are called that nobody else may write."""
_LONGEST = 96
"""Longer than any of them, however it is spaced."""


def render_current(request: Request, sections: Sequence[Section], now: int) -> Message:
    """The user's message with what a model should know about the moment in front of it.

    What was said stays as it is. Sections and data of hooks, which may come from anywhere, cannot pass for Nexus's own
    lines.

    Args:
        request: The circumstances; `request.message` is what was said.
        sections: What is to be told besides, in its order; memories come last.
        now: The time, in milliseconds since 1970.
    """
    blocks = ["\n".join(_lines(request, now)), *(render_block(section) for section in memories_last(sections))]
    words = "\n\n".join(blocks)
    said = request.message or Message("user")
    first, rest = said.parts[:1], said.parts[1:]
    if first and isinstance(first[0], Text):
        opening = replace(first[0], text=f"{words}\n\n{first[0].text}")
    else:
        opening, rest = Text(words), said.parts
    extra = {**said.extra, SOURCE: request.source} if request.source else said.extra
    return replace(said, parts=(opening, *rest), extra=extra)


def render_block(section: Section) -> str:
    """A section of the current zone as it stands before what was said; of others' words, without what nobody sees."""
    is_own = section.source is None or section.source.trust == "user"
    return render_section(replace(section, text=neutralise(section.text if is_own else strip_hidden(section.text))))


def memories_last(sections: Sequence[Section]) -> list[Section]:
    """Sections as they stand in a message: memories after everything else, otherwise in the order they have."""
    return sorted(sections, key=lambda section: section.kind == "memory")


def iso_time(now: int) -> str:
    """A time in milliseconds since 1970 as `2026-02-06T09:30:00Z`."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now // 1000))


def _lines(request: Request, now: int) -> Iterator[str]:
    yield f"Current time: {iso_time(now)}"
    yield f"Timezone: {_in_one_line(request.timezone) or 'UTC'}"
    if request.platform:
        yield f"Platform: {_in_one_line(request.platform)}"
        if request.platform_actions:
            yield f"Available actions: {', '.join(map(_in_one_line, request.platform_actions))}"
    for name, value in request.hook_data.items():
        yield neutralise(f"{_not_ours(_in_one_line(name))}: {_in_one_line(value)}")


def _not_ours(name: str) -> str:
    """The name of what a program adds, in quotes where its line could be taken for one of ours or for a heading."""
    plain = bare(name[:_LONGEST])
    if not plain.isascii():
        from unicodedata import normalize  # noqa: PLC0415 - a name is seldom other than plain

        plain = normalize("NFKC", plain)
    first, _, _ = plain.partition(":")
    is_plain = plain[:1].isalnum() and " ".join(first.casefold().split()) not in _OWN
    return name if is_plain else f'"{name}"'


def _in_one_line(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    return visible_line(strip_hidden(text))
