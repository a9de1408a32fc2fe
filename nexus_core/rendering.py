"""The labelled renderer, and lookup of renderers and agent roles by name.

The system prompt has every section under its heading, with its source file. A user message starts with time, platform,
hook data and the sections of its turn.
"""

from __future__ import annotations

import json
import time
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from nexus_core.text.safety import neutralize, strip_all_hidden, strip_hidden, visible_line
from nexus_core.types.prompt import AgentRole, Renderer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from nexus_core.host.manager import Host
    from nexus_core.types.messages import Message
    from nexus_core.types.prompt import Section
    from nexus_core.types.request import Request

PROMPT_TITLE = "# System Configuration"


def sort_sections(sections: Iterable[Section]) -> list[Section]:
    """Return the sections that are not blank, in the order of the prompt."""
    return sorted((section for section in sections if section.text.strip()), key=_get_sort_key)


def render_labelled(sections: Iterable[Section], *, home: Path | None = None) -> str:
    """Render sections as one Markdown text, sorted.

    Args:
        sections: The sections, in any order.
        home: Directory that is shortened to `~` in source paths; None for full paths.
    """
    return (
        "\n\n".join([PROMPT_TITLE, *(render_section(section, home=home) for section in sort_sections(sections))]) + "\n"
    )


def render_system(sections: Sequence[Section]) -> str:
    """Render the static zone.

    Sections with an order below 0 come before the title, with top-level headings.
    """
    before = [section for section in sections if section.order < 0]
    after = [section for section in sections if section.order >= 0]
    return "\n\n".join([*map(_render_preamble, before), PROMPT_TITLE, *map(render_section, after)]) + "\n"


def _render_preamble(section: Section) -> str:
    body = section.text.strip("\n")
    return f"# {visible_line(section.title)}\n\n{body}"


def _get_sort_key(section: Section) -> tuple[int, str, str]:
    return section.order, section.id, section.source.plugin if section.source else ""


def render_section(section: Section, *, home: Path | None = None) -> str:
    """Render a section: heading, source if it is a file, text."""
    source = section.source
    return _render_text(
        section.title, section.text, _shorten_path(source.uri, home) if source and source.is_file else ""
    )


def _render_text(title: str, text: str, file: str) -> str:
    # Titles and paths contain directory names: a line break in one must not start a heading, nor may it be an element.
    heading, body = f"## {neutralize(visible_line(title))}", text.strip("\n")
    return f"{heading}\nSource: {neutralize(visible_line(file))}\n\n{body}" if file else f"{heading}\n{body}"


def _shorten_path(path: str, home: Path | None) -> str:
    return f"~{path.removeprefix(str(home))}" if home is not None and path.startswith(f"{home}/") else path


SOURCE_KEY = "_source"
"""Metadata key with the source of a message. It is not sent to any API."""

_RESERVED_NAMES = frozenset({"current time", "timezone", "platform", "available actions"})
"""Names of Nexus's own lines, which hook data cannot use unquoted."""
_MAX_NAME_CHARACTERS = 96
"""Maximum length that is compared with the reserved names. Longer than each of them with additional spaces."""


def render_user_message(request: Request, sections: Sequence[Section], now: int) -> Message:
    """Return the user message with the turn's context in front of it.

    The user's text is not changed. Sections and hook data are untrusted: they are neutralized, so that they cannot
    imitate Nexus's own lines.

    Args:
        request: The request; `request.message` is the user message.
        sections: The sections of the current zone, in order. Memories are moved to the end.
        now: The time, in milliseconds since 1970.
    """
    from nexus_core.types.messages import Message, Text

    blocks = [
        "\n".join(_build_context_lines(request, now)),
        *(render_current_section(section) for section in sort_memories_last(sections)),
    ]
    context = "\n\n".join(blocks)
    message = request.message or Message("user")
    first, rest = message.parts[:1], message.parts[1:]
    if first and isinstance(first[0], Text):
        opening = replace(first[0], text=f"{context}\n\n{first[0].text}")
    else:
        opening, rest = Text(context), message.parts
    extra = {**message.extra, SOURCE_KEY: request.source} if request.source else message.extra
    return replace(message, parts=(opening, *rest), extra=extra)


def render_current_section(section: Section) -> str:
    """Render a section of the current zone, neutralized.

    Untrusted text loses its hidden characters.
    """
    source = section.source
    file = source.uri if source and source.is_file else ""
    return _render_neutralized(section.title, section.text, file, source is None or source.trust == "user")


@lru_cache(maxsize=64)  # a memory is rendered to be counted, chosen, sent, recorded and found again in the message
def _render_neutralized(title: str, text: str, file: str, is_trusted: bool) -> str:
    return _render_text(title, neutralize(text if is_trusted else strip_hidden(text)), file)


def sort_memories_last(sections: Sequence[Section]) -> list[Section]:
    """Return the sections with memories moved to the end, otherwise in the same order."""
    return sorted(sections, key=lambda section: section.kind == "memory")


def format_iso_time(now: int) -> str:
    """Format a time in milliseconds since 1970 as `2026-02-06T09:30:00Z`."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now // 1000))


def _build_context_lines(request: Request, now: int) -> Iterator[str]:
    yield f"Current time: {format_iso_time(now)}"
    yield f"Timezone: {_to_one_line(request.timezone) or 'UTC'}"
    if request.platform:
        yield f"Platform: {_to_one_line(request.platform)}"
        if request.platform_actions:
            yield f"Available actions: {', '.join(map(_to_one_line, request.platform_actions))}"
    for name, value in request.hook_data.items():
        yield neutralize(f"{_quote_reserved_name(_to_one_line(name))}: {_to_one_line(value)}")


def _quote_reserved_name(name: str) -> str:
    """Return the name of a hook data line.

    It is quoted if it could pass for a reserved name or a heading.
    """
    plain = strip_all_hidden(name[:_MAX_NAME_CHARACTERS])
    if not plain.isascii():
        from unicodedata import normalize

        plain = normalize("NFKC", plain)
    first, _, _ = plain.partition(":")
    is_plain = plain[:1].isalnum() and " ".join(first.casefold().split()) not in _RESERVED_NAMES
    return name if is_plain else f'"{name}"'


def _to_one_line(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    return visible_line(strip_hidden(text))


LABELLED_RENDERER = Renderer(name="labelled", system=render_system, current=render_user_message)
"""Default renderer: sections under headings. Earlier messages are never rendered again, so that each call has the
previous one as its prefix."""

UNIFIED_ROLE = AgentRole(name="unified")
"""Default role: an agent that does all work itself and talks only to its user."""


def find_agent_role(host: Host, name: str) -> AgentRole:
    """Return the agent role called `name`.

    A plugin's `unified` replaces the default role.

    Raises:
        UnknownNameError: No role has that name.
    """
    if name == UNIFIED_ROLE.name and not host.has_third_party("nexus_roles"):
        return UNIFIED_ROLE  # saves the import of the bundled plugins
    return host.roles([UNIFIED_ROLE]).get(name)


def find_renderer(host: Host, name: str) -> Renderer:
    """Return the renderer called `name`.

    A plugin's `labelled` replaces the default renderer.

    Raises:
        UnknownNameError: No renderer has that name.
    """
    if name == LABELLED_RENDERER.name and not host.has_third_party("nexus_renderers"):
        return LABELLED_RENDERER
    return host.renderers([LABELLED_RENDERER]).get(name)


def find_epoch_renderer(host: Host, name: str, plugin: str) -> Renderer:
    """Return the renderer that an epoch was created with.

    A plugin that has replaced it since is ignored.

    Args:
        host: The plugin host.
        name: The renderer's name.
        plugin: The plugin that replaced the bundled renderer when the epoch was created; "" if none did.

    Raises:
        UnknownNameError: No renderer has that name.
    """
    registry = host.renderers([LABELLED_RENDERER])
    return registry.get(name) if plugin else registry.get_bundled(name)


def get_replacing_plugin(host: Host, renderer: Renderer) -> str:
    """Return the plugin whose renderer replaces a bundled one, "" if it replaces none."""
    return renderer.plugin if host.is_replaced("renderer", renderer.name) else ""
