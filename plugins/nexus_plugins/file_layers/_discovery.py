"""Where layers are looked for."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from nexus_core import Layer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from nexus_core import Request

DIRECTORY = ".nexus3"
TEXT = "NEXUS.md"


def find_layers(request: Request) -> list[Layer]:
    """Every layer that exists for a request; the user's own directory counts once, as `global`."""
    layers = [*_base_layers(request), *_ancestor_layers(request)]
    local = request.cwd / DIRECTORY
    if _contributes(local, request):
        layers.append(Layer("local", local, "local"))
    return layers


def _base_layers(request: Request) -> Iterator[Layer]:
    # The defaults stand in for a missing file of the user's own; they are never mixed with it.
    if request.defaults is not None and not (request.home / TEXT).is_file():
        yield Layer("defaults", request.defaults, "defaults")
    if request.home.is_dir():
        yield Layer("global", request.home, "global")


def _ancestor_layers(request: Request) -> Iterator[Layer]:
    # Levels are counted, not hits; the root of the file system is never a layer.
    for distance, parent in enumerate(islice(request.cwd.parents, request.ancestor_depth), start=1):
        if parent == parent.parent:
            return
        directory = parent / DIRECTORY
        if _contributes(directory, request):
            yield Layer(f"ancestor:{parent.name}", directory, "ancestor", distance=distance)


def _contributes(directory: Path, request: Request) -> bool:
    return directory.is_dir() and not (request.home.is_dir() and directory.samefile(request.home))
