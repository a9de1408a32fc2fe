"""Reads the texts of a layer: its NEXUS.md, and the workspace rules that other tools read."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from nexus_core import LayerText, Skipped
from nexus_core.plugin import Admission, read_text
from nexus_plugins.file_layers._discovery import RULES, TEXT, is_replaced

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from nexus_core import Layer


def read_texts(layer: Layer) -> Iterator[LayerText | Skipped]:
    """The texts of a layer with their imports in place, and the files that contribute nothing, each with the reason.

    Raises:
        FileError: A file is not regular, not UTF-8, larger than 1 MiB or cannot be read, or its imports form a circle
            or are too many.
    """
    admission = Admission(layer)
    if not layer.only_rules:
        yield from _first(_own_files(layer), layer, admission)
    # Rules are read from the repository down to the working directory. Without a repository nothing tells which
    # of the directories above belong to the work.
    if layer.scope == "local" or (layer.scope == "ancestor" and admission.repository):
        title = f"Workspace Rules ({layer.project.name or layer.project})"
        yield from _first([layer.project / name for name in RULES], layer, admission, title=title)


def _own_files(layer: Layer) -> list[Path]:
    files = [layer.directory / TEXT]
    # The root of the defaults is the user's own directory, a layer by itself.
    if layer.project != layer.directory and layer.scope != "defaults":
        files.append(layer.project / TEXT)
    return files


def _first(
    paths: Iterable[Path], layer: Layer, admission: Admission, *, title: str = ""
) -> Iterator[LayerText | Skipped]:
    """The first of some files that has something to say, and why the others do not."""
    chosen: Path | None = None
    for path in paths:
        if chosen:
            if os.path.isfile(path):  # noqa: PTH113 - never fails
                yield Skipped(path, f"{_short(chosen, path)} comes first")
            continue
        for item in _read(path, layer, admission, title):
            if isinstance(item, LayerText):
                chosen = path
            yield item


def _read(path: Path, layer: Layer, admission: Admission, title: str) -> list[LayerText | Skipped]:
    if is_replaced(layer, path.name):
        return [Skipped(path, f"your own {path.name} takes its place")]
    if reason := admission.objection(path):
        return [Skipped(path, reason)]
    text = read_text(admission.resolve(path))
    if text is None:
        return [Skipped(path, "not there")]
    imports: tuple[Path, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    if "@" in text:
        from nexus_plugins.file_layers._imports import expand_imports  # noqa: PLC0415 - most texts import nothing

        text, imports, skipped = expand_imports(path, text, layer, admission)
    if not text.strip():
        return [*skipped, Skipped(path, "blank")]
    return [LayerText(path, text, title=title, imports=imports), *skipped]


def _short(path: Path, beside: Path) -> str:
    return path.name if path.parent == beside.parent else f"{path.parent.name}/{path.name}"
