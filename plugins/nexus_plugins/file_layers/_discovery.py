"""Where layers are looked for."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Literal

from nexus_core.plugin import Layer, Skipped, file_in, is_foreign, levels_above, owners_beside, repository_of

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
    yield from _base_layers(request)
    search = _Search(request)
    for distance in range(search.farthest, 0, -1):
        yield from search.ancestor(distance)
    yield from search.local()


def is_replaced(layer: Layer, name: str) -> bool:
    """Whether a file of the defaults is not read, because the user has one of that name."""
    return layer.scope == "defaults" and layer.root is not None and _is_file(layer.root / name)


def _base_layers(request: Request) -> Iterator[Layer]:
    # Which file stands in is decided when it is read; the defaults' root tells where the user's own would be.
    if request.defaults is not None and not all(_is_file(request.home / name) for name in (TEXT, SETTINGS)):
        yield Layer("defaults", request.defaults, "defaults", root=request.home)
    if os.path.isdir(request.home):  # noqa: PTH112 - never fails
        yield Layer("global", request.home, "global")


class _Search:
    """Looks for layers in the working directory and above it; by distance, 0 being the working directory itself."""

    def __init__(self, request: Request) -> None:
        self._home = _look(request.home)
        self._depth = request.ancestor_depth
        self._levels = levels_above(request.cwd)
        self._is_linked = any(level.is_link for level in self._levels)
        self._repository = repository_of(self._levels)
        # How far up the repository begins; -1 without one.
        self._height = -1 if self._repository is None else len(request.cwd.parts) - len(self._repository.parts)

    @property
    def farthest(self) -> int:
        """How far up there may be layers or rules."""
        # Levels are counted, not hits; the root of the file system is never a layer.
        return min(max(self._depth, self._height), len(self._levels) - 2)

    def ancestor(self, distance: int) -> Iterator[Layer | Skipped]:
        """The layer at a level above the working directory; where there is none, why not, and its rules if any."""
        place = self._levels[distance].path
        name, directory = f"ancestor:{place.name}", file_in(place, DIRECTORY)
        found = _look(directory)
        reason = self._objection(distance, directory, found)
        if not reason:
            yield self._layer(name, directory, distance)
            return
        if distance <= self._depth or _is_directory(found):
            yield Skipped(directory, reason, layer=name)
        if distance <= self._height:
            if any(_is_file(place / rules) for rules in RULES):
                yield self._layer(name, directory, distance, only_rules=True)
            else:
                yield from (Skipped(place / rules, "not there", layer=name) for rules in RULES)

    def local(self) -> Iterator[Layer | Skipped]:
        """The layer of the working directory; only its rules where it is the user's own."""
        directory = file_in(self._levels[0].path, DIRECTORY)
        is_own = self._is_own(0, _look(directory))
        if is_own:
            yield Skipped(directory, OWN, layer="local")
        yield self._layer("local", directory, 0, only_rules=is_own)

    def _objection(self, distance: int, directory: Path, found: os.stat_result | None) -> str:
        """Why a level above the working directory is no layer, in a few words; "" when it is one."""
        if self._is_own(distance, found):
            return OWN
        if not _is_directory(found) and not _is_file(self._levels[distance].path / TEXT):
            return "not there"
        if distance > self._depth:
            return f"farther up than context.ancestor_depth ({self._depth})"
        # Anybody may make directories in a place like /tmp, above the work of others.
        if is_foreign(owners_beside(self._levels[0].owner), directory):
            return "belongs to somebody else"
        return ""

    def _is_own(self, distance: int, found: os.stat_result | None) -> bool:
        if self._home is None:
            return False
        if found is not None and os.path.samestat(found, self._home):
            return True
        return self._levels[distance].identity == (self._home.st_dev, self._home.st_ino)

    def _layer(self, name: str, directory: Path, distance: int, *, only_rules: bool = False) -> Layer:
        """The layer with what its files must not lie outside of: its repository, or else its directory."""
        place = self._levels[distance].path
        scope: Literal["ancestor", "local"] = "ancestor" if distance else "local"
        if self._is_linked:
            # Whoever made the request left links in it; then everybody looks for themselves.
            return Layer(name, directory, scope, distance, place, only_rules)
        repository = self._repository if distance <= self._height else repository_of(self._levels[distance:])
        return Layer(name, directory, scope, distance, place, only_rules, repository or place, repository is not None)


def _look(path: Path) -> os.stat_result | None:
    """What there is, wherever links lead to; a place that cannot be looked at is no layer."""
    try:
        return os.stat(path)  # noqa: PTH116 - faster
    except OSError:
        return None


def _is_directory(found: os.stat_result | None) -> bool:
    return found is not None and stat.S_ISDIR(found.st_mode)


def _is_file(path: Path) -> bool:
    return os.path.isfile(path)  # noqa: PTH113 - never fails, unlike the method of Path
