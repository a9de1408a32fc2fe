"""Where layers are looked for."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from nexus_core import Layer, Skipped
from nexus_core.plugin import accepted_owners, is_foreign, repository_root

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from nexus_core import Request

DIRECTORY = ".nexus3"
TEXT = "NEXUS.md"
SETTINGS = "config.json"
RULES = ("AGENTS.md", "CLAUDE.md", "GEMINI.md")
"""The workspace rules of other tools; a directory contributes the first that it has."""

OWN = "your own directory, read as global"


def find_layers(request: Request) -> Iterator[Layer | Skipped]:
    """Every layer for a request, farthest first, and the places where one could have been."""
    repository = repository_root(request.cwd)
    yield from _base_layers(request)
    yield from _ancestors(request, repository)
    yield from _local(request, repository)


def is_replaced(layer: Layer, name: str) -> bool:
    """Whether a file of the defaults is not read, because the user has one of that name."""
    return layer.scope == "defaults" and layer.root is not None and _is_file(layer.root / name)


def _base_layers(request: Request) -> Iterator[Layer]:
    # Which file stands in is decided when it is read; the defaults' root tells where the user's own would be.
    if request.defaults is not None and not all(_is_file(request.home / name) for name in (TEXT, SETTINGS)):
        yield Layer("defaults", request.defaults, "defaults", root=request.home)
    if _is_directory(request.home):
        yield Layer("global", request.home, "global")


def _ancestors(request: Request, repository: Path | None) -> Iterator[Layer | Skipped]:
    for distance, place in reversed(list(_levels(request, repository))):
        layer = _bounded(
            Layer(f"ancestor:{place.name}", place / DIRECTORY, "ancestor", distance=distance, root=place), repository
        )
        reason = _objection(layer, request)
        if not reason:
            yield layer
            continue
        if distance <= request.ancestor_depth or _is_directory(layer.directory):
            yield Skipped(layer.directory, reason, layer=layer.name)
        if _is_within(place, repository) and any(_is_file(place / name) for name in RULES):
            yield replace(layer, only_rules=True)


def _levels(request: Request, repository: Path | None) -> Iterator[tuple[int, Path]]:
    """The directories above the working directory that may be layers or have rules, nearest first."""
    # Levels are counted, not hits; the root of the file system is never a layer.
    for distance, place in enumerate(request.cwd.parents, start=1):
        if place == place.parent or not (distance <= request.ancestor_depth or _is_within(place, repository)):
            return
        yield distance, place


def _objection(layer: Layer, request: Request) -> str:
    """Why a level above the working directory is no layer, in a few words; "" when it is one."""
    if _is_users_own(layer, request):
        return OWN
    if not _is_directory(layer.directory) and not _is_file(layer.project / TEXT):
        return "not there"
    if layer.distance > request.ancestor_depth:
        return f"farther up than context.ancestor_depth ({request.ancestor_depth})"
    # Anybody may make directories in a place like /tmp, above the work of others.
    if is_foreign(accepted_owners(request.cwd), layer.directory):
        return "belongs to somebody else"
    return ""


def _local(request: Request, repository: Path | None) -> Iterator[Layer | Skipped]:
    layer = _bounded(Layer("local", request.cwd / DIRECTORY, "local", root=request.cwd), repository)
    if _is_users_own(layer, request):
        yield Skipped(layer.directory, OWN, layer=layer.name)
        layer = replace(layer, only_rules=True)
    yield layer


def _bounded(layer: Layer, repository: Path | None) -> Layer:
    """The layer with what its files must not lie outside of: its repository, or else its directory."""
    place = layer.project
    if os.path.realpath(place) != str(place):
        return layer  # whoever made the request left links in it; then everybody looks for themselves
    mine = repository if _is_within(place, repository) else repository_root(place)
    return replace(layer, boundary=mine or place, in_repository=mine is not None)


def _is_users_own(layer: Layer, request: Request) -> bool:
    return any(_is_same(place, request.home) for place in (layer.directory, layer.project))


def _is_within(place: Path, repository: Path | None) -> bool:
    return repository is not None and place.is_relative_to(repository)


# Unlike the methods of Path, these never fail: a place that cannot be looked at is no layer.
def _is_file(path: Path) -> bool:
    return os.path.isfile(path)  # noqa: PTH113 - as above


def _is_directory(path: Path) -> bool:
    return os.path.isdir(path)  # noqa: PTH112 - as above


def _is_same(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except OSError:
        return False
