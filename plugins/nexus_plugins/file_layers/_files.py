"""Texts and settings of a layer: config.json, NEXUS.md, persona, workspace rules."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from nexus_core.plugin import LayerConfig, LayerText, SkippedFile
from nexus_core.plugin.files import LayerReader, file_in, read_layer_json
from nexus_core.plugin.settings import setting_error
from nexus_core.plugin.text import strip_hidden, visible_line
from nexus_plugins.file_layers._discovery import RULES_FILES, SETTINGS_FILE, TEXT_FILE, is_default_replaced

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from nexus_core.plugin import Layer


def read_layer_settings(layer: Layer) -> LayerConfig | SkippedFile:
    """Read a layer's config.json, or return why it is skipped.

    Raises:
        ConfigError: The file is not JSON, or not a JSON object; the error has the position.
        FileError: The file is larger than 1 MiB, not regular, or cannot be read.
    """
    path = file_in(layer.directory, SETTINGS_FILE)
    if is_default_replaced(layer, SETTINGS_FILE):
        return SkippedFile(path, f"your own {SETTINGS_FILE} takes its place")
    document = read_layer_json(path, LayerReader(layer), empty={})
    if isinstance(document, SkippedFile):
        return document
    if not isinstance(document.value, dict):
        raise setting_error(
            path,
            document.lines,
            document.position(""),
            title=f"Invalid configuration in {path}",
            message="a configuration must be a JSON object",
            closing="Write { … } around the settings and try again.",
        )
    return LayerConfig(path, document.value, document.position)


PRECEDENCE_SUFFIX = " comes first"
"""End of the reason for a file that another one overrides; `nexus doctor` checks such files."""
README_FILE = "readme.md"
"""A file of this name is documentation, not instructions, even if the settings list it."""
_PROGRAM_DIRECTORIES = {"AGENTS.md": ".agents", "CLAUDE.md": ".claude"}
PERSONA_FILES = {"SOUL.md": "Agent Soul", "IDENTITY.md": "Agent Identity"}
"""Files of the agent's persona, and their headings."""
OWN_PERSONA_FILES = {"SOUL.md": "Agent Soul", "IDENTITY.md": "User Identity"}
"""Files of the persona in the user's own directory, where IDENTITY.md describes the user."""


def read_layer_texts(layer: Layer, names: object = None) -> Iterator[LayerText | SkippedFile]:
    """Yield the texts of a layer with expanded imports, and the skipped files with the reasons.

    Args:
        layer: The layer.
        names: `context.instruction_files`: files of which a project's layer contributes the first; None for its
            NEXUS.md and the first of its workspace rules; an empty list for none.

    Raises:
        FileError: A file is not regular, not UTF-8, larger than 1 MiB or cannot be read, or its imports form a circle
            or are too many.
    """
    reader = LayerReader(layer)
    listed = [name for name in names if _is_bare_name(name)] if isinstance(names, list) else []
    is_set = bool(listed) or names == []  # a list without a valid name is reported elsewhere, and ignored here
    if is_set and not layer.is_own:  # the list does not apply to the user's own instructions
        yield from _read_first(_find_listed_files(layer, listed, reader), layer, reader, rules=True)
        if not layer.only_rules:
            yield from _read_persona(layer, reader)
        return
    if not layer.only_rules:
        yield from _read_first(_list_own_files(layer), layer, reader)
        yield from _read_persona(layer, reader)
    # Rules are read from the repository down to the working directory. Without a repository it is unknown which of
    # the directories above belong to the project.
    if layer.scope == "local" or (layer.scope == "ancestor" and reader.repository):
        yield from _read_first([(layer.project, name) for name in RULES_FILES], layer, reader, rules=True)


def _find_listed_files(layer: Layer, names: list[str], reader: LayerReader) -> Iterator[tuple[Path, str]]:
    """Yield the candidates for listed files: the layer's directory, the directory of another tool, the project."""
    for name in names:
        if not layer.only_rules:
            yield layer.directory, name
        # Without a repository it is unknown which of the directories above belong to the project.
        if name == TEXT_FILE or layer.scope == "local" or reader.repository:
            if not layer.only_rules and name in _PROGRAM_DIRECTORIES:
                yield layer.project / _PROGRAM_DIRECTORIES[name], name
            if not layer.only_rules or name in RULES_FILES:
                yield layer.project, name


def _is_bare_name(name: object) -> bool:
    """Return True for a visible file name without directories. Validation of the settings reports others."""
    if not isinstance(name, str) or visible_line(name) != name:
        return False
    return name.lower().endswith(".md") and not {"/", "\\"} & set(name)


def _list_own_files(layer: Layer) -> list[tuple[Path, str]]:
    # The root of the defaults is the user's own directory, which is a separate layer.
    directories = [layer.directory] if layer.scope == "defaults" else [layer.directory, layer.project]
    return [(directory, TEXT_FILE) for directory in dict.fromkeys(directories)]


def _read_first(
    files: Iterable[tuple[Path, str]], layer: Layer, reader: LayerReader, *, rules: bool = False
) -> Iterator[LayerText | SkippedFile]:
    """Yield the first file that is not blank, and the skipped ones with the reasons.

    Args:
        files: Directory and name of each file.
        layer: The layer.
        reader: Reads the files that the layer may read.
        rules: True to give files other than NEXUS.md the heading of workspace rules.
    """
    heading = f"Workspace Rules ({layer.project.name or layer.project})" if rules else ""
    chosen: Path | None = None
    for directory, name in files:
        if chosen:
            if os.path.isfile(f"{directory}/{name}"):  # noqa: PTH113 - never fails
                yield SkippedFile(directory / name, _shorten_path(chosen, directory) + PRECEDENCE_SUFFIX)
            continue
        is_readme = name.lower() == README_FILE
        title = "" if name == TEXT_FILE or is_readme else heading
        for item in _read_text_file(file_in(directory, name), layer, reader, title):
            if isinstance(item, LayerText):
                chosen = item.path
            yield replace(item, purpose="documentation") if isinstance(item, LayerText) and is_readme else item


def _read_text_file(path: Path, layer: Layer, reader: LayerReader, title: str) -> list[LayerText | SkippedFile]:
    if is_default_replaced(layer, path.name):
        return [SkippedFile(path, f"your own {path.name} takes its place")]
    text = reader.read_text(path)
    if isinstance(text, SkippedFile):
        return [text]
    if "@" in text:
        from nexus_plugins.file_layers._imports import expand_imports

        expanded = expand_imports(path, text, layer, reader)
        found = LayerText(path, expanded.text, title=title, imports=expanded.imports, pieces=expanded.pieces)
        return [found if found.text.strip() else SkippedFile(path, "blank"), *expanded.skipped]
    return [LayerText(path, text, title=title) if text.strip() else SkippedFile(path, "blank")]


def _read_persona(layer: Layer, reader: LayerReader) -> Iterator[LayerText | SkippedFile]:
    if layer.is_own and layer.name != "global":  # not the defaults, nor a plugin's layer of the user
        return
    for name, title in (OWN_PERSONA_FILES if layer.is_own else PERSONA_FILES).items():
        for item in _read_text_file(file_in(layer.directory, name), layer, reader, title):
            yield _mark_persona(item) if isinstance(item, LayerText) else item


def _mark_persona(text: LayerText) -> LayerText:
    name = find_persona_name(text.text) if text.title in PERSONA_FILES.values() else ""
    return replace(text, kind="persona", data={"persona": {"id": name}} if name else {})


def _shorten_path(path: Path, directory: Path) -> str:
    return path.name if path.parent == directory else f"{path.parent.name}/{path.name}"


MAX_PERSONA_CHARACTERS = 64
MAX_PERSONA_LINES = 40  # lines in which the name is searched
_DECORATION = " \t*_`#>-"


def find_persona_name(text: str) -> str:
    """Return the name in a line such as `- **Name:** Atlas`, or "" if there is none."""
    for line in text.split("\n", MAX_PERSONA_LINES)[:MAX_PERSONA_LINES]:
        key, _, value = line.partition(":")
        name = value.strip(_DECORATION)
        if key.strip(_DECORATION).lower() == "name" and name:
            return visible_line(strip_hidden(name))[:MAX_PERSONA_CHARACTERS]
    return ""
