"""The renderer `tagged` for sessions, and its identity section."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from unicodedata import normalize

from nexus_core import ConfigError, Message, Section, Source, UsageError
from nexus_core.plugin import ArrangedMessages, File, Image, Renderer, SkippedFile, Text
from nexus_core.plugin.files import LayerReader, file_in
from nexus_core.plugin.text import neutralize, render_system, strip_hidden
from nexus_plugins.tagged._blocks import (
    FRIENDS_INFO_TAG,
    SPEAKERS_BY_ROLE,
    THIS_MOMENT_TAG,
    MemoryEntry,
    MomentSection,
    convert_milliseconds,
    format_capabilities,
    format_friends,
    format_local_time,
    format_memory,
    format_moment,
    parse_zone,
)
from nexus_plugins.tagged._options import (
    IDENTITY_FILE,
    IDENTITY_PATTERN,
    SETTINGS_PREFIX,
    TaggedOptions,
    parse_options_note,
    read_options,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import tzinfo

    from nexus_core import Request
    from nexus_core.plugin import ArrangeRequest, Layer, LoadedLayers, PastMessage

RENDERER_NAME = "tagged"
OPTIONS_NOTE = "_tagged"
"""Metadata of a message: the options that it was rendered with. No API gets it."""
ZONE_KEY = "timezone"
PLATFORM_FACT, ACTIONS_FACT = "Platform", "Available actions"
"""Names of facts that only Nexus may write; a program's facts of these names are quoted."""
SUMMARY_NOTE, SOURCE_NOTE = "_summary", "_source"
"""Metadata of a message: that it is a summary of older messages, and its sender."""
GENERATED_NOTES = frozenset({SUMMARY_NOTE, "_session_start"})
"""Metadata of messages that Nexus wrote itself: a summary, which is shown separately, and the session start."""


def make_renderer(options: TaggedOptions = TaggedOptions(), identity: Section | None = None) -> Renderer:  # noqa: B008 - frozen
    """Return the renderer with options and an identity, by default those without settings."""
    return Renderer(
        name=RENDERER_NAME,
        system=render_tagged_system,
        current=partial(render_current, options),
        arrange=partial(arrange_blocks, options),
        sections=(identity or build_own_identity(),),
        configure=configure_renderer,
    )


def configure_renderer(loaded: LoadedLayers) -> Renderer:
    """Return the renderer with the options and the identity of loaded layers."""
    return make_renderer(read_options(loaded.settings), find_identity(loaded))


def render_tagged_system(sections: Sequence[Section]) -> str:
    """Return the system prompt: the identity, then the static sections under their headings."""
    identity = (
        next((section for section in sections if section.id == IDENTITY_SECTION_ID), None) or build_own_identity()
    )
    others = [section for section in sections if section.id != IDENTITY_SECTION_ID and section.text.strip()]
    parts = [identity.text.strip("\n"), *([render_system(others).strip("\n")] if others else [])]
    return "\n\n".join(parts) + "\n"


def render_current(options: TaggedOptions, request: Request, sections: Sequence[Section], now_ms: int) -> Message:
    """Return the user message as two texts, the profile and the moment, followed by its images and files."""
    message = request.message or Message("user")
    text = format_moment(
        message.content,
        format_local_time(convert_milliseconds(now_ms), parse_zone(request.timezone)),
        facts=_list_facts(request),
        sections=map(_build_moment_section, sorted(sections, key=lambda section: section.kind == "memory")),
    )
    others = (part for part in message.parts if not isinstance(part, Text))
    parts = (Text(format_friends(request.profile, options.phrases)), Text(text), *others)
    source = {SOURCE_NOTE: request.source} if request.source else {}
    note = {OPTIONS_NOTE: {**options._asdict(), ZONE_KEY: request.timezone}}
    return replace(message, parts=parts, extra={**message.extra, **source, **note})


def arrange_blocks(configured: TaggedOptions, arrangement: ArrangeRequest) -> ArrangedMessages:
    """Return the four blocks as four messages or as one.

    The options that the turn's message was rendered with apply, not the current ones, so that a call can be replayed.
    """
    message = arrangement.current
    note = message.extra.get(OPTIONS_NOTE) if message is not None else None
    options = parse_options_note(note) or configured
    tools = format_capabilities(arrangement.tools, options.phrases)
    stored_zone = note.get(ZONE_KEY) if isinstance(note, dict) else None
    zone = _parse_zone_or_utc(stored_zone if isinstance(stored_zone, str) else arrangement.request.timezone)
    memory = _format_history(arrangement.history, options, zone)
    # Without a user message, or with one that another renderer wrote, it stays as it is.
    if message is None or not _is_tagged_message(message):
        before = [tools, memory, format_friends(arrangement.request.profile, options.phrases)]
        return ArrangedMessages(tuple(Message("user", text) for text in before), message)
    friends, moment, *others = message.parts
    if options.single_message:
        texts = [tools, memory, *(part.text for part in (friends, moment) if isinstance(part, Text))]
        return ArrangedMessages((), replace(message, parts=(Text("\n\n".join(texts)), *others)))
    history = (Message("user", tools), Message("user", memory), Message("user", (friends,)))
    return ArrangedMessages(history, replace(message, parts=(moment, *others)))


def _parse_zone_or_utc(name: str) -> tzinfo:
    # The zone was valid when the turn began; a machine without it must still be able to continue the turn.
    try:
        return parse_zone(name)
    except UsageError:
        return UTC


def _is_tagged_message(message: Message) -> bool:
    texts = [part.text for part in message.parts[:2] if isinstance(part, Text)]
    tags = (FRIENDS_INFO_TAG, THIS_MOMENT_TAG)
    return OPTIONS_NOTE in message.extra and len(texts) == len(tags) and all(map(str.startswith, texts, tags))


def _list_facts(request: Request) -> Iterator[tuple[str, object]]:
    if request.platform:
        yield PLATFORM_FACT, request.platform
        if request.platform_actions:
            yield ACTIONS_FACT, ", ".join(request.platform_actions)
    yield from ((_quote_reserved_name(name), value) for name, value in request.hook_data.items())


def _quote_reserved_name(name: str) -> str:
    """Return the name of a program's fact, quoted if its line could pass for one of Nexus."""
    plain = normalize("NFKC", strip_hidden(name)).casefold().partition(":")[0]
    return f'"{name}"' if " ".join(plain.split()) in (PLATFORM_FACT.casefold(), ACTIONS_FACT.casefold()) else name


def _build_moment_section(section: Section) -> MomentSection:
    # Untrusted text must not hold characters that a reader does not see.
    is_own = section.source is None or section.source.trust == "user"
    return MomentSection(section.title, section.text if is_own else strip_hidden(section.text))


def _format_history(history: Sequence[PastMessage], options: TaggedOptions, zone: tzinfo) -> str:
    summary = next((past.message.content for past in history[:1] if SUMMARY_NOTE in past.message.extra), "")
    return format_memory(
        (_build_entry(past, tool_calls=options.tool_calls) for past in reversed(history) if _is_remembered(past)),
        limit=options.limit,
        zone=zone,
        phrases=options.phrases,
        summary=summary.partition("\n")[2],  # without its first line, a heading
    )


def _is_remembered(past: PastMessage) -> bool:
    return past.message.role in SPEAKERS_BY_ROLE and GENERATED_NOTES.isdisjoint(past.message.extra)


def _build_entry(past: PastMessage, *, tool_calls: bool) -> MemoryEntry:
    message = past.said
    return MemoryEntry(
        convert_milliseconds(past.created) if past.created else None,
        SPEAKERS_BY_ROLE[message.role],
        message.content,
        used=tuple(call.name for call in message.tool_calls) if tool_calls else (),
        sent=tuple(_list_media(message)),
    )


def _list_media(message: Message) -> Iterator[str]:
    for part in message.parts:
        if isinstance(part, Image):
            yield "image"
        elif isinstance(part, File):
            yield part.name or "file"


CORE_IDENTITY = (Path(__file__).parent / "core_identity.md").read_text(encoding="utf-8")
"""The default identity."""

IDENTITY_SECTION_ID = "core-identity"
IDENTITY_ORDER = -1000
"""Before all other sections."""


def build_own_identity() -> Section:
    """Return the section with the identity that ships with the plugin."""
    return _build_section(CORE_IDENTITY, Source(uri="plugin:tagged", plugin="tagged"))


def find_identity(loaded: LoadedLayers) -> Section:
    """Return the identity of the most local layer that has one, or by default the plugin's own.

    Raises:
        ConfigError: The setting is not a file name, or names a file that no layer has.
        FileError: The file cannot be read.
    """
    setting = loaded.settings.get(f"{SETTINGS_PREFIX}.identity")
    name = IDENTITY_FILE if setting is None else str(setting)
    # Checked again here: the user's own directory is a layer too, and its other files must not become a prompt.
    if not re.fullmatch(IDENTITY_PATTERN, name):
        raise _build_error(loaded, f"{name!r} is not the name of a Markdown file")
    reason = "there is none"
    for layer in reversed(loaded.layers):
        if layer.only_rules:
            continue
        path = file_in(layer.directory, name)
        text = LayerReader(layer).read_text(path)
        if not isinstance(text, SkippedFile):
            return _build_section(_neutralize_text(text, layer), _build_source(path, layer))
        if text.reason != "not there":
            reason = f"{path}: {text.reason}"
    if setting is not None:
        raise _build_error(loaded, f"no layer has a file {name!r} that may be read ({reason})")
    return build_own_identity()


def _build_section(text: str, source: Source) -> Section:
    return Section(
        IDENTITY_SECTION_ID, title="Core Identity", text=text, kind="persona", order=IDENTITY_ORDER, source=source
    )


def _build_source(path: Path, layer: Layer) -> Source:
    return Source(uri=str(path), layer=layer.name, plugin="tagged", trust="user" if layer.is_own else "project")


def _neutralize_text(text: str, layer: Layer) -> str:
    # The user's own identity may name the tags; a project's is untrusted text.
    return text if layer.is_own else neutralize(strip_hidden(text))


def _build_error(loaded: LoadedLayers, what: str) -> ConfigError:
    origins = loaded.settings.origins.get("/plugins/tagged/identity")
    return ConfigError(
        what,
        where=str(origins[0]) if origins else f"{SETTINGS_PREFIX}.identity",
        hint=f"put the file beside the config.json, or remove {SETTINGS_PREFIX}.identity",
    )
