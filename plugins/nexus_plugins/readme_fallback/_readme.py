"""Search for the README of a layer."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from nexus_core import FileError
from nexus_core.plugin import LayerText, SkippedFile
from nexus_core.plugin.files import LayerReader, file_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from nexus_core.plugin import Layer

README_NAMES = ("README.md", "README.rst", "README.txt", "README")


def read_readme(layer: Layer) -> Iterator[LayerText | SkippedFile]:
    """Yield the first README of a layer that is not blank, and the skipped ones with the reasons."""
    if not _may_have_readme(layer):
        return
    reader = LayerReader(layer)
    item: LayerText | SkippedFile | None = None
    for name in _list_candidates(str(layer.project)):
        item = _read_candidate(file_in(layer.project, name), reader)
        yield item
        if isinstance(item, LayerText):
            return
    if item is None:
        yield SkippedFile(file_in(layer.project, README_NAMES[0]), "not there")


def _may_have_readme(layer: Layer) -> bool:
    # A directory above the working directory contributes its README only if it has a layer directory.
    is_layer = layer.scope == "local" or os.path.isdir(layer.directory)  # noqa: PTH112 - never fails
    return not layer.is_own and not layer.only_rules and is_layer


def _list_candidates(directory: str) -> Iterator[str]:
    """Yield the names of files that may be the README, the best first."""
    best, *others = README_NAMES
    has_best = os.path.isfile(f"{directory}/{best}")  # noqa: PTH113 - never fails
    if has_best:
        yield best
    try:
        names = set(os.listdir(directory))  # noqa: PTH208 - names are enough
    except OSError:
        return
    found = [name for name in others if name in names and os.path.isfile(f"{directory}/{name}")]  # noqa: PTH113 - never fails
    yield from found if found or has_best else sorted(name for name in names if name.lower() == best.lower())


def _read_candidate(path: Path, reader: LayerReader) -> LayerText | SkippedFile:
    try:
        text = reader.read_text(path)
    except FileError as error:
        # Documentation is optional: a binary file called README must not raise.
        return SkippedFile(path, error.what)
    if isinstance(text, SkippedFile):
        return text
    if not text.strip():
        return SkippedFile(path, "blank")
    return LayerText(path, text, purpose="documentation")
