"""Finds and reads the README of a layer."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from nexus_core import FileError
from nexus_core.plugin import Admission, LayerText, Skipped, file_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from nexus_core.plugin import Layer

NAMES = ("README.md", "README.rst", "README.txt", "README")


def read_readme(layer: Layer) -> Iterator[LayerText | Skipped]:
    """The first README of a layer that has something to say, and why others were not taken."""
    if not _may_have_one(layer):
        return
    admission = Admission(layer)
    item: LayerText | Skipped | None = None
    for name in _candidates(str(layer.project)):
        item = _read(file_in(layer.project, name), admission)
        yield item
        if isinstance(item, LayerText):
            return
    if item is None:
        yield Skipped(file_in(layer.project, NAMES[0]), "not there")


def _may_have_one(layer: Layer) -> bool:
    # A directory above the work speaks only where somebody made a layer of it.
    is_layer = layer.scope == "local" or os.path.isdir(layer.directory)  # noqa: PTH112 - never fails
    return not layer.is_own and not layer.only_rules and is_layer


def _candidates(directory: str) -> Iterator[str]:
    """The names of files that may be the README, the best first."""
    best, *others = NAMES
    has_best = os.path.isfile(f"{directory}/{best}")  # noqa: PTH113 - never fails
    if has_best:
        yield best
    try:
        names = set(os.listdir(directory))  # noqa: PTH208 - names are enough
    except OSError:
        return
    found = [name for name in others if name in names and os.path.isfile(f"{directory}/{name}")]  # noqa: PTH113 - as above
    yield from found if found or has_best else sorted(name for name in names if name.lower() == best.lower())


def _read(path: Path, admission: Admission) -> LayerText | Skipped:
    try:
        text = admission.read_text(path)
    except FileError as error:
        # Documentation is a help, not a need: a picture called README must not stop the work.
        return Skipped(path, error.what)
    if isinstance(text, Skipped):
        return text
    if not text.strip():
        return Skipped(path, "blank")
    return LayerText(path, text, purpose="documentation")
