"""Finds and reads the README of a layer."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from nexus_core import FileError, LayerText, Skipped
from nexus_core.plugin import Admission, read_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from nexus_core import Layer

NAMES = ("README.md", "README.rst", "README.txt", "README")


def read_readme(layer: Layer) -> Iterator[LayerText | Skipped]:
    """The first README of a layer that has something to say, and why others were not taken."""
    if not _may_have_one(layer):
        return
    admission = Admission(layer)
    paths = _candidates(layer.project)
    if not paths:
        yield Skipped(layer.project / NAMES[0], "not there")
    for path in paths:
        item = _read(path, admission)
        yield item
        if isinstance(item, LayerText):
            return


def _may_have_one(layer: Layer) -> bool:
    # A directory above the work speaks only where somebody made a layer of it.
    is_layer = layer.scope == "local" or os.path.isdir(layer.directory)  # noqa: PTH112 - never fails
    return not layer.is_own and not layer.only_rules and is_layer


def _candidates(directory: Path) -> list[Path]:
    """The files that may be the README, the best first."""
    names = [name for name in NAMES if os.path.isfile(directory / name)]  # noqa: PTH113 - never fails
    if not names:
        try:
            names = sorted(name for name in os.listdir(directory) if name.lower() == "readme.md")  # noqa: PTH208 - names
        except OSError:
            names = []
    return [directory / name for name in names]


def _read(path: Path, admission: Admission) -> LayerText | Skipped:
    if reason := admission.objection(path):
        return Skipped(path, reason)
    try:
        text = read_text(admission.resolve(path))
    except FileError as error:
        # Documentation is a help, not a need: a picture called README must not stop the work.
        return Skipped(path, error.what)
    if text is None:
        return Skipped(path, "not there")
    if not text.strip():
        return Skipped(path, "blank")
    return LayerText(path, text, purpose="documentation")
