"""Sessions in the tagged format: what the renderer answers when a session asks."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC
from functools import partial
from typing import TYPE_CHECKING
from unicodedata import normalize

from nexus_core import Message, UsageError
from nexus_core.plugin import Arranged, File, Image, Renderer, Text, render_system, strip_hidden
from nexus_plugins.tagged._capabilities import capabilities_block
from nexus_plugins.tagged._clock import local_time, moment_at, zone_of
from nexus_plugins.tagged._friends import friends_block
from nexus_plugins.tagged._identity import ID, find_identity, own_identity
from nexus_plugins.tagged._memory import SPEAKERS, Remembered, memory_block
from nexus_plugins.tagged._moment import Surrounding, moment_block
from nexus_plugins.tagged._options import Options, from_note, read_options
from nexus_plugins.tagged._tags import FRIENDS_INFO, THIS_MOMENT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import tzinfo

    from nexus_core import Request, Section
    from nexus_core.plugin import Arrangement, Loaded, Past

NAME = "tagged"
NOTE = "_tagged"
"""Where a message says by which options it was made; a note that no API is told."""
ZONE = "timezone"
PLATFORM, ACTIONS = "Platform", "Available actions"
"""What the facts are called that nobody else may tell."""
SUMMARY, SOURCE = "_summary", "_source"
"""Where Nexus notes that a message stands for what was said before; and who or what said one."""
NOT_SAID = frozenset({SUMMARY, "_session_start"})
"""Notes on messages that Nexus wrote itself: a summary, which has a place of its own, and the start of a session."""


def make_renderer(options: Options = Options(), identity: Section | None = None) -> Renderer:  # noqa: B008 - frozen
    """The renderer with options and an identity; with none, as it is without settings."""
    return Renderer(
        name=NAME,
        system=system,
        current=partial(current, options),
        arrange=partial(arrange, options),
        sections=(identity or own_identity(),),
        configure=configure,
    )


def configure(loaded: Loaded) -> Renderer:
    """The renderer as the settings and the files of a place want it."""
    return make_renderer(read_options(loaded.settings), find_identity(loaded))


def system(sections: Sequence[Section]) -> str:
    """The identity; below it, under their headings, the texts of the layers and whatever else stays the same."""
    identity = next((section for section in sections if section.id == ID), None) or own_identity()
    others = [section for section in sections if section.id != ID and section.text.strip()]
    parts = [identity.text.strip("\n"), *([render_system(others).strip("\n")] if others else [])]
    return "\n\n".join(parts) + "\n"


def current(options: Options, request: Request, sections: Sequence[Section], now_ms: int) -> Message:
    """What was said, as two texts: what is known of the person, and the moment; pictures and files after them."""
    said = request.message or Message("user")
    text = moment_block(
        said.content,
        local_time(moment_at(now_ms), zone_of(request.timezone)),
        facts=_facts(request),
        surroundings=map(_surrounding, sorted(sections, key=lambda section: section.kind == "memory")),
    )
    others = (part for part in said.parts if not isinstance(part, Text))
    parts = (Text(friends_block(request.profile, options.words)), Text(text), *others)
    source = {SOURCE: request.source} if request.source else {}
    note = {NOTE: {**options._asdict(), ZONE: request.timezone}}
    return replace(said, parts=parts, extra={**said.extra, **source, **note})


def arrange(configured: Options, arrangement: Arrangement) -> Arranged:
    """The four blocks: as four messages, or as one.

    What the message of the turn was made by counts, not what is set now, so that a call can be made again as it was.
    """
    message = arrangement.current
    note = message.extra.get(NOTE) if message is not None else None
    options = from_note(note) or configured
    tools = capabilities_block(arrangement.tools, options.words)
    noted = note.get(ZONE) if isinstance(note, dict) else None
    zone = _known_zone(noted if isinstance(noted, str) else arrangement.request.timezone)
    memory = _memory(arrangement.history, options, zone)
    if message is None or not _is_ours(message):  # nothing was said yet, or it was put into words by another renderer
        before = [tools, memory, friends_block(arrangement.request.profile, options.words)]
        return Arranged(tuple(Message("user", text) for text in before), message)
    friends, moment, *others = message.parts
    if options.single_message:
        texts = [tools, memory, *(part.text for part in (friends, moment) if isinstance(part, Text))]
        return Arranged((), replace(message, parts=(Text("\n\n".join(texts)), *others)))
    history = (Message("user", tools), Message("user", memory), Message("user", (friends,)))
    return Arranged(history, replace(message, parts=(moment, *others)))


def _known_zone(name: str) -> tzinfo:
    # Where the turn was begun it was known; a machine that does not know it must be able to go on.
    try:
        return zone_of(name)
    except UsageError:
        return UTC


def _is_ours(message: Message) -> bool:
    texts = [part.text for part in message.parts[:2] if isinstance(part, Text)]
    tags = (FRIENDS_INFO, THIS_MOMENT)
    return NOTE in message.extra and len(texts) == len(tags) and all(map(str.startswith, texts, tags))


def _facts(request: Request) -> Iterator[tuple[str, object]]:
    if request.platform:
        yield PLATFORM, request.platform
        if request.platform_actions:
            yield ACTIONS, ", ".join(request.platform_actions)
    yield from ((_not_ours(name), value) for name, value in request.hook_data.items())


def _not_ours(name: str) -> str:
    """The name of what a program tells, in quotes where its line could be taken for one of ours."""
    plain = normalize("NFKC", strip_hidden(name)).casefold().partition(":")[0]
    return f'"{name}"' if " ".join(plain.split()) in (PLATFORM.casefold(), ACTIONS.casefold()) else name


def _surrounding(section: Section) -> Surrounding:
    # As elsewhere, what is nobody's word but a stranger's must not hold what a person would not see.
    is_own = section.source is None or section.source.trust == "user"
    return Surrounding(section.title, section.text if is_own else strip_hidden(section.text))


def _memory(history: Sequence[Past], options: Options, zone: tzinfo) -> str:
    summary = next((past.message.content for past in history[:1] if SUMMARY in past.message.extra), "")
    return memory_block(
        (_remembered(past, tool_calls=options.tool_calls) for past in reversed(history) if _is_remembered(past)),
        limit=options.limit,
        zone=zone,
        words=options.words,
        summary=summary.partition("\n")[2],  # its first line only says what it is
    )


def _is_remembered(past: Past) -> bool:
    return past.message.role in SPEAKERS and NOT_SAID.isdisjoint(past.message.extra)


def _remembered(past: Past, *, tool_calls: bool) -> Remembered:
    said = past.said
    return Remembered(
        moment_at(past.created) if past.created else None,
        SPEAKERS[said.role],
        said.content,
        used=tuple(call.name for call in said.tool_calls) if tool_calls else (),
        sent=tuple(_media(said)),
    )


def _media(message: Message) -> Iterator[str]:
    for part in message.parts:
        if isinstance(part, Image):
            yield "image"
        elif isinstance(part, File):
            yield part.name or "file"
