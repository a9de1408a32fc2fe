"""Answers where a setting, a file or a sentence comes from, and why something is not there."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nexus_core.errors import NexusError
from nexus_core.files.reading import read_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from nexus_core.layers.context import LoadedContext


class Explanation(NamedTuple):
    """One answer: what was found, where, and a remark.

    Attributes:
        subject: The setting, file or section it is about.
        place: The file with its line, or "" when there is none.
        remark: What it means, in a few words.
    """

    subject: str
    place: str
    remark: str


def explain(context: LoadedContext, query: str) -> list[Explanation]:
    """Everything that is known about a setting's dotted name, a path, or a piece of text."""
    return [*_settings(context, query), *_files(context, query)] or [*_sentences(context, query)]


def _settings(context: LoadedContext, query: str) -> Iterator[Explanation]:
    origins = context.loaded.settings.origins.get("/" + query.replace(".", "/"), ())
    value = context.loaded.settings.get(query)
    for number, origin in enumerate(origins):
        if number:
            yield Explanation(query, str(origin), f"overridden ({origin.layer})")
        else:
            shown = "a group of settings" if isinstance(value, dict | list) else repr(value)
            yield Explanation(query, str(origin), f"{shown} ({origin.layer})")
    for finding in context.loaded.findings:
        if finding.message.startswith(f"{query} "):
            yield Explanation(query, finding.place, finding.message)


def _files(context: LoadedContext, query: str) -> Iterator[Explanation]:
    path = (context.cwd / query).resolve()
    for text in context.loaded.texts:
        if path == text.path.resolve():
            yield Explanation(
                str(text.path), str(text.path), f"in the prompt ({text.layer.name if text.layer else '-'})"
            )
        elif path in text.imports:
            yield Explanation(str(path), str(text.path), "imported here, and so in the prompt")
    for config in context.loaded.configs:
        if path == config.path.resolve():
            yield Explanation(str(path), str(path), f"settings ({config.layer.name if config.layer else '-'})")
    for skipped in context.loaded.skipped:
        if path == skipped.path.resolve():
            # With a line it is about a part of a file that is used.
            fate = "not in the prompt" if skipped.line is None else "not used"
            yield Explanation(str(skipped.path), skipped.place, f"{fate}: {skipped.reason}")


def _sentences(context: LoadedContext, query: str) -> Iterator[Explanation]:
    for section in context.sections:
        if query in section.text:
            uri = section.source.uri if section.source else ""
            is_file = section.source is not None and section.source.is_file
            place = _place(context.cwd / uri, query) if is_file else uri
            yield Explanation(section.title, place, "in the prompt")
    for skipped in context.loaded.skipped:
        place = _place(skipped.path, query) if skipped.line is None else ""
        if place:
            yield Explanation(str(skipped.path), place, f"not in the prompt: {skipped.reason}")


def _place(path: Path, query: str) -> str:
    """The file and line at which a piece of text begins, or "" when the file does not have it."""
    try:
        text = read_text(path) or ""
    except NexusError:
        return ""
    offset = text.find(query)
    return f"{path}:{text.count(chr(10), 0, offset) + 1}" if offset >= 0 else ""
