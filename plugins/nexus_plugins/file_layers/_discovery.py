"""Search for layers in the user's home, in the working directory and above it."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Literal

from nexus_core.plugin import Layer, SkippedFile
from nexus_core.plugin.files import file_in, find_repository, has_untrusted_owner, parent_levels, trusted_owners

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from nexus_core import Request

LAYER_DIRECTORY = ".nexus3"
TEXT_FILE = "NEXUS.md"
SETTINGS_FILE = "config.json"
RULES_FILES = ("AGENTS.md", "CLAUDE.md", "GEMINI.md")
"""The workspace rules of other tools; a directory contributes the first that it has."""

OWN_DIRECTORY_REASON = "your own directory, read as global"


def find_layers(request: Request) -> Iterator[Layer | SkippedFile]:
    """Yield every layer for a request, farthest first, and the directories where one was not found."""
    yield from _find_base_layers(request)
    search = _LayerSearch(request)
    for distance in range(search.farthest, 0, -1):
        yield from search.find_ancestor(distance)
    yield from search.find_local()


def is_default_replaced(layer: Layer, name: str) -> bool:
    """Return True if a file of the defaults is not read because the user has one of that name."""
    return layer.scope == "defaults" and layer.root is not None and _is_file(layer.root / name)


def _find_base_layers(request: Request) -> Iterator[Layer]:
    # Each default file is checked when it is read; the root is the directory of the user's own files.
    if request.defaults is not None and not all(_is_file(request.home / name) for name in (TEXT_FILE, SETTINGS_FILE)):
        yield Layer("defaults", request.defaults, "defaults", root=request.home)
    if os.path.isdir(request.home):  # noqa: PTH112 - never fails
        yield Layer("global", request.home, "global")


class _LayerSearch:
    """Searches for layers by distance from the working directory, which has distance 0."""

    def __init__(self, request: Request) -> None:
        self._home = _stat_path(request.home)
        self._depth = request.ancestor_depth
        self._levels = parent_levels(request.cwd)
        self._is_linked = any(level.is_link for level in self._levels)
        self._repository = find_repository(self._levels)
        # Distance of the repository's root; -1 without a repository.
        self._height = -1 if self._repository is None else len(request.cwd.parts) - len(self._repository.parts)

    @property
    def farthest(self) -> int:
        """Greatest distance at which there may be layers or rules."""
        # Directories are counted, not layers; the root of the file system is never a layer.
        return min(max(self._depth, self._height), len(self._levels) - 2)

    def find_ancestor(self, distance: int) -> Iterator[Layer | SkippedFile]:
        """Yield the layer at a distance above the working directory, or the reason for none and its rules."""
        project = self._levels[distance].path
        name, directory = f"ancestor:{project.name}", file_in(project, LAYER_DIRECTORY)
        found = _stat_path(directory)
        reason = self._explain_missing(distance, directory, found)
        if not reason:
            yield self._build_layer(name, directory, distance)
            return
        if distance <= self._depth or _is_directory(found):
            yield SkippedFile(directory, reason, layer=name)
        if distance <= self._height:
            if any(_is_file(project / rules) for rules in RULES_FILES):
                yield self._build_layer(name, directory, distance, only_rules=True)
            else:
                yield from (SkippedFile(project / rules, "not there", layer=name) for rules in RULES_FILES)

    def find_local(self) -> Iterator[Layer | SkippedFile]:
        """Yield the layer of the working directory, only with its rules if that is the user's own directory."""
        directory = file_in(self._levels[0].path, LAYER_DIRECTORY)
        is_own = self._is_own(0, _stat_path(directory))
        if is_own:
            yield SkippedFile(directory, OWN_DIRECTORY_REASON, layer="local")
        yield self._build_layer("local", directory, 0, only_rules=is_own)

    def _explain_missing(self, distance: int, directory: Path, found: os.stat_result | None) -> str:
        """Return why a directory above the working directory is not a layer, or "" if it is one."""
        if self._is_own(distance, found):
            return OWN_DIRECTORY_REASON
        if not _is_directory(found) and not _is_file(self._levels[distance].path / TEXT_FILE):
            return "not there"
        if distance > self._depth:
            return f"farther up than context.ancestor_depth ({self._depth})"
        # Any user can create directories in /tmp, above the projects of others.
        if has_untrusted_owner(trusted_owners(self._levels[0].owner), directory):
            return "belongs to another user"
        return ""

    def _is_own(self, distance: int, found: os.stat_result | None) -> bool:
        if self._home is None:
            return False
        if found is not None and os.path.samestat(found, self._home):
            return True
        return self._levels[distance].identity == (self._home.st_dev, self._home.st_ino)

    def _build_layer(self, name: str, directory: Path, distance: int, *, only_rules: bool = False) -> Layer:
        """Return a layer with the boundary of its files: its repository, or else its project directory."""
        project = self._levels[distance].path
        scope: Literal["ancestor", "local"] = "ancestor" if distance else "local"
        if self._is_linked:
            # The request's path has symbolic links, so each reader finds the boundary from the real path.
            return Layer(name, directory, scope, distance, project, only_rules)
        repository = self._repository if distance <= self._height else find_repository(self._levels[distance:])
        boundary = repository or project
        return Layer(name, directory, scope, distance, project, only_rules, boundary, repository is not None)


def _stat_path(path: Path) -> os.stat_result | None:
    """Return the status of a path, following links, or None if it is missing or not accessible."""
    try:
        return os.stat(path)  # noqa: PTH116 - faster
    except OSError:
        return None


def _is_directory(found: os.stat_result | None) -> bool:
    return found is not None and stat.S_ISDIR(found.st_mode)


def _is_file(path: Path) -> bool:
    return os.path.isfile(path)  # noqa: PTH113 - never fails, unlike the method of Path
