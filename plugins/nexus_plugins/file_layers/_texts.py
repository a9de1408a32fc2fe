"""Reads the texts of a layer: its NEXUS.md, its persona, and the workspace rules that other tools read."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from nexus_core.plugin import Admission, LayerText, Skipped, file_in, visible_line
from nexus_plugins.file_layers._discovery import RULES, TEXT, is_replaced

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from nexus_core.plugin import Layer

COMES_FIRST = " comes first"
"""How the reason ends for which a file was passed over; `nexus doctor` looks at such files."""
README = "readme.md"
"""A file of this name describes the project, and is no order, whoever lists it among the instructions."""
_PROGRAM_DIRECTORIES = {"AGENTS.md": ".agents", "CLAUDE.md": ".claude"}
PERSONA = {"SOUL.md": "Agent Soul", "IDENTITY.md": "Agent Identity"}
"""Who the agent is, by file, and the heading of each."""
OWN_PERSONA = {"SOUL.md": "Agent Soul", "IDENTITY.md": "User Identity"}
"""The same in the user's own directory, where an identity is the user's."""


def read_texts(layer: Layer, names: object = None) -> Iterator[LayerText | Skipped]:
    """The texts of a layer with their imports in place, and the files that contribute nothing, each with the reason.

    Args:
        layer: The layer.
        names: `context.instruction_files`: files of which a layer of a project contributes the first; None for its
            NEXUS.md and the first of its workspace rules, and an empty list for none.

    Raises:
        FileError: A file is not regular, not UTF-8, larger than 1 MiB or cannot be read, or its imports form a circle
            or are too many.
    """
    admission = Admission(layer)
    listed = [name for name in names if _is_bare(name)] if isinstance(names, list) else []
    is_decided = bool(listed) or names == []  # a list without any valid name is reported, and decides nothing
    if is_decided and not layer.is_own:  # a project's list says nothing about the user's own instructions
        yield from _first(_listed_files(layer, listed, admission), layer, admission, rules=True)
        if not layer.only_rules:
            yield from _persona(layer, admission)
        return
    if not layer.only_rules:
        yield from _first(_own_files(layer), layer, admission)
        yield from _persona(layer, admission)
    # Rules are read from the repository down to the working directory. Without a repository nothing tells which
    # of the directories above belong to the work.
    if layer.scope == "local" or (layer.scope == "ancestor" and admission.repository):
        yield from _first([(layer.project, name) for name in RULES], layer, admission, rules=True)


def _listed_files(layer: Layer, names: list[str], admission: Admission) -> Iterator[tuple[Path, str]]:
    """Where files are looked for: in the layer's own directory, in that of the program that reads them, beside it."""
    for name in names:
        if not layer.only_rules:
            yield layer.directory, name
        # As for workspace rules: without a repository nothing tells which directories above belong to the work.
        if name == TEXT or layer.scope == "local" or admission.repository:
            if not layer.only_rules and name in _PROGRAM_DIRECTORIES:
                yield layer.project / _PROGRAM_DIRECTORIES[name], name
            if not layer.only_rules or name in RULES:
                yield layer.project, name


def _is_bare(name: object) -> bool:
    """True for a visible name that leads nowhere else; checking the settings reports what is wrong with others."""
    if not isinstance(name, str) or visible_line(name) != name:
        return False
    return name.lower().endswith(".md") and not {"/", "\\"} & set(name)


def _own_files(layer: Layer) -> list[tuple[Path, str]]:
    # The root of the defaults is the user's own directory, a layer by itself.
    directories = [layer.directory] if layer.scope == "defaults" else [layer.directory, layer.project]
    return [(directory, TEXT) for directory in dict.fromkeys(directories)]


def _first(
    files: Iterable[tuple[Path, str]], layer: Layer, admission: Admission, *, rules: bool = False
) -> Iterator[LayerText | Skipped]:
    """The first of some files, by directory and name, that has something to say, and why the others do not.

    Args:
        files: The files.
        layer: The layer.
        admission: What may be read.
        rules: Whether what is not called NEXUS.md has a heading of its own.
    """
    heading = f"Workspace Rules ({layer.project.name or layer.project})" if rules else ""
    chosen: Path | None = None
    for directory, name in files:
        if chosen:
            if os.path.isfile(f"{directory}/{name}"):  # noqa: PTH113 - never fails
                yield Skipped(directory / name, _short(chosen, directory) + COMES_FIRST)
            continue
        is_readme = name.lower() == README
        title = "" if name == TEXT or is_readme else heading
        for item in _read(file_in(directory, name), layer, admission, title):
            if isinstance(item, LayerText):
                chosen = item.path
            yield replace(item, purpose="documentation") if isinstance(item, LayerText) and is_readme else item


def _read(path: Path, layer: Layer, admission: Admission, title: str) -> list[LayerText | Skipped]:
    if is_replaced(layer, path.name):
        return [Skipped(path, f"your own {path.name} takes its place")]
    text = admission.read_text(path)
    if isinstance(text, Skipped):
        return [text]
    if "@" in text:
        from nexus_plugins.file_layers._imports import expand_imports  # noqa: PLC0415 - most texts import nothing

        expanded = expand_imports(path, text, layer, admission)
        found = LayerText(path, expanded.text, title=title, imports=expanded.imports, pieces=expanded.pieces)
        return [found if found.text.strip() else Skipped(path, "blank"), *expanded.skipped]
    return [LayerText(path, text, title=title) if text.strip() else Skipped(path, "blank")]


def _persona(layer: Layer, admission: Admission) -> Iterator[LayerText | Skipped]:
    if layer.is_own and layer.name != "global":  # the defaults, and what others put beside the user's own, are nobody
        return
    for name, title in (OWN_PERSONA if layer.is_own else PERSONA).items():
        for item in _read(file_in(layer.directory, name), layer, admission, title):
            yield _as_persona(item) if isinstance(item, LayerText) else item


def _as_persona(text: LayerText) -> LayerText:
    from nexus_plugins.file_layers._persona import persona_id  # noqa: PLC0415 - most layers have no persona

    name = persona_id(text.text) if text.title in PERSONA.values() else ""
    return replace(text, kind="persona", data={"persona": {"id": name}} if name else {})


def _short(path: Path, directory: Path) -> str:
    return path.name if path.parent == directory else f"{path.parent.name}/{path.name}"
