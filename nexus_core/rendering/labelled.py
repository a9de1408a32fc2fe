"""The labelled prompt: every section under its heading, with the file it came from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.text.visible import visible_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from nexus_core.values.section import Section

TITLE = "# System Configuration"


def in_order(sections: Iterable[Section]) -> list[Section]:
    """The sections that have something to say, in the order in which the model reads them."""
    return sorted((section for section in sections if section.text.strip()), key=_place)


def render_labelled(sections: Iterable[Section], *, home: Path | None = None) -> str:
    """Sections in their order as one Markdown text; the paths of files below `home` begin with `~`."""
    return "\n\n".join([TITLE, *(render_section(section, home=home) for section in in_order(sections))]) + "\n"


def render_system(sections: Sequence[Section]) -> str:
    """The static zone of a call; sections with an order below 0 stand before the title, under headings of their own."""
    before = [section for section in sections if section.order < 0]
    after = [section for section in sections if section.order >= 0]
    return "\n\n".join([*map(_render_frame, before), TITLE, *map(render_section, after)]) + "\n"


def _render_frame(section: Section) -> str:
    body = section.text.strip("\n")
    return f"# {visible_line(section.title)}\n\n{body}"


def _place(section: Section) -> tuple[int, str, str]:
    return section.order, section.id, section.source.plugin if section.source else ""


def render_section(section: Section, *, home: Path | None = None) -> str:
    """One section: its heading, its source if that is a file, its text."""
    # Directories may be called anything; a line break in a name must not start a heading of its own.
    heading, body = f"## {visible_line(section.title)}", section.text.strip("\n")
    if section.source and section.source.is_file:
        return f"{heading}\nSource: {visible_line(_shortened(section.source.uri, home))}\n\n{body}"
    return f"{heading}\n{body}"


def _shortened(path: str, home: Path | None) -> str:
    return f"~{path.removeprefix(str(home))}" if home is not None and path.startswith(f"{home}/") else path
