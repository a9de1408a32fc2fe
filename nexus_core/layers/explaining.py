"""Answers where a setting, a file or a sentence comes from, and why something is not there."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from nexus_core.config.dotted import follow_keys
from nexus_core.config.keys import keys_of
from nexus_core.config.pointers import join_pointer
from nexus_core.config.servers import SETTING as SERVERS
from nexus_core.config.withholding import withhold_secrets
from nexus_core.errors import NexusError
from nexus_core.files.admission import Admission, real_path
from nexus_core.files.reading import read_text
from nexus_core.values.layer import Layer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from nexus_core.values.loaded import Loaded
    from nexus_core.values.section import Section
    from nexus_core.values.settings import Settings


class ReadContext(Protocol):
    """A directory and the sections of its prompt: that of a session, of `ContextLoader` or of another agent."""

    @property
    def cwd(self) -> Path:
        """The directory."""

    @property
    def loaded(self) -> Loaded:
        """Layers, texts, settings and servers."""

    @property
    def sections(self) -> tuple[Section, ...]:
        """The sections of the prompt, in their order."""


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


def explain(context: ReadContext, query: str) -> list[Explanation]:
    """Everything that is known about a setting's dotted name, a path, or a piece of text."""
    named = [*_settings(context, query), *_servers(context, query), *_files(context, query)]
    return named or [*_sentences(context, query)]


def _settings(context: ReadContext, query: str) -> Iterator[Explanation]:
    settings, keys = context.loaded.settings, keys_of(query)
    pointer, value = join_pointer(keys), follow_keys(withhold_secrets(settings.value), keys)
    is_group = isinstance(value, dict | list)
    speakers = _speakers(settings, pointer) if is_group else set()
    for number, origin in enumerate(settings.origins.get(pointer, ())):
        if number:
            fate = "some of it" if origin.path in speakers else "overridden"
            yield Explanation(query, str(origin), f"{fate} ({origin.layer})")
        else:
            shown = repr(value) if _is_short(value) else "a group of settings"
            yield Explanation(query, str(origin), f"{shown} ({origin.layer})")
    for finding in context.loaded.findings:
        if finding.message.startswith(f"{query} "):
            yield Explanation(query, finding.place, finding.message)


def _servers(context: ReadContext, query: str) -> Iterator[Explanation]:
    for server in context.loaded.servers:
        name = f"{SERVERS}.{server.config.name}"
        if query in {server.config.name, name}:
            yield Explanation(name, f"{server.source_path}:{server.line}", f"{server.status} ({server.origin})")
            if server.shadows is not None:
                yield Explanation(name, str(server.shadows), f"overridden ({server.shadows.layer})")


def _is_short(value: object) -> bool:
    """Whether a value is a word or a number, or a list of some."""
    items = value if isinstance(value, list) else [value]
    return not any(isinstance(item, dict | list) for item in items)


def _speakers(settings: Settings, pointer: str) -> set[Path]:
    """The files that have the last word on something in a group."""
    inside = f"{pointer}/"
    return {origins[0].path for each, origins in settings.origins.items() if each.startswith(inside)}


def _files(context: ReadContext, query: str) -> Iterator[Explanation]:
    # NEXUS.md may stand in the directory or in its `.nexus3`.
    places = [context.cwd, *(layer.directory for layer in context.loaded.layers if layer.scope == "local")]
    for path in dict.fromkeys(real_path(place / query) for place in places):
        yield from _file(context, path)


def _file(context: ReadContext, path: Path) -> Iterator[Explanation]:
    for text in context.loaded.texts:
        if path == real_path(text.path):
            yield Explanation(
                str(text.path), str(text.path), f"in the prompt ({text.layer.name if text.layer else '-'})"
            )
        elif path in text.imports:
            yield Explanation(str(path), str(text.path), "imported here, and so in the prompt")
    for config in context.loaded.configs:
        if path == real_path(config.path):
            yield Explanation(str(path), str(path), f"settings ({config.layer.name if config.layer else '-'})")
    for skipped in context.loaded.skipped:
        if path == real_path(skipped.path):
            # With a line it is about a part of a file that is used.
            fate = "not in the prompt" if skipped.line is None else "not used"
            yield Explanation(str(skipped.path), skipped.place, f"{fate}: {skipped.reason}")


def _sentences(context: ReadContext, query: str) -> Iterator[Explanation]:
    imported = {text.path: [piece.path for piece in text.pieces] for text in context.loaded.texts}
    for section in context.sections:
        if query in section.text:
            uri = section.source.uri if section.source else ""
            file = context.cwd / uri
            is_file = section.source is not None and section.source.is_file
            # A text with imports is made of several files.
            files = dict.fromkeys((file, *imported.get(file, ()))) if is_file else ()
            place = next(filter(None, (_place(path, query) for path in files)), "" if is_file else uri)
            yield Explanation(section.title, place, "in the prompt")
    project = Layer("local", context.cwd, "local", root=context.cwd)
    layers = {layer.name: layer for layer in context.loaded.layers}
    for skipped in context.loaded.skipped:
        # What must not be read for the prompt is not read for this either.
        admission = Admission(layers.get(skipped.layer, project))
        place = _place(skipped.path, query, admission.read_text) if skipped.line is None else ""
        if place:
            yield Explanation(str(skipped.path), place, f"not in the prompt: {skipped.reason}")


def _place(path: Path, query: str, read: Callable[[Path], object] = read_text) -> str:
    """The file and line at which a piece of text begins, or "" when the file does not have it."""
    try:
        text = read(path)
    except NexusError:
        return ""
    if not isinstance(text, str) or query not in text:
        return ""
    return f"{path}:{text.count(chr(10), 0, text.find(query)) + 1}"
