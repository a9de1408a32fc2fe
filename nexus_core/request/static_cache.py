"""Caches of loaded layers and static contexts, valid until a watched file changes.

Changes are detected by `stat`: device, inode, size and times of every file that a load depends on.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.layers.context import LoadedContext
from nexus_core.layers.load import build_layer_sections, build_permissions_section
from nexus_core.request.static_context import StaticContext
from nexus_core.types.request import DEFAULT_MODE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from nexus_core.host.manager import Host
    from nexus_core.types.layers import Layer, LoadedLayers
    from nexus_core.types.mcp import ActiveSetting
    from nexus_core.types.request import AgentMode, Request

MIN_FILE_AGE_NS = 100_000_000
"""A file changed more recently than this may change again without a new timestamp, because the clocks of file systems
tick slowly."""
MAX_CACHED_DIRECTORIES = 32
"""Each worker (subagent) may have a directory of its own."""
MAX_CACHED_CONTEXTS = 16
"""Most programs have one or two."""
SUBAGENT_ORDER = 99
"""Puts a worker's own instructions before those it inherits."""
LoadedDirectory = tuple["Request", "LoadedLayers"]
"""The request for a directory and its layers."""
FileFacts = tuple[int, int, int, int, int] | None


class StaticContextCache:
    """Cache of static contexts, by loaded layers and request.

    Args:
        host: The plugin manager.
        layer_cache: Cache of loaded layers.
    """

    def __init__(self, host: Host, layer_cache: LayerCache) -> None:
        self._host = host
        self._layer_cache = layer_cache
        self._known: list[tuple[tuple[LoadedLayers, ...], StaticContext]] = []

    def load(self, directories: Sequence[Path], mode: AgentMode = DEFAULT_MODE) -> list[LoadedDirectory]:
        """Return the loaded directories, loading again those that have changed.

        Args:
            directories: The working directory; for a worker, preceded by those of the agents that it inherits from.
            mode: The mode of the agent.
        """
        return [self._layer_cache.get(directory, mode) for directory in directories]

    def get_last_load(
        self, directories: Sequence[Path], mode: AgentMode = DEFAULT_MODE
    ) -> list[LoadedDirectory] | None:
        """Return the last loads, even if outdated; None if one is missing."""
        loads = [self._layer_cache.get_last(directory, mode) for directory in directories]
        found = [each for each in loads if each is not None]
        return found if len(found) == len(loads) else None

    def get_static_context(self, loaded: Sequence[LoadedDirectory], fields: Mapping[str, Any]) -> StaticContext:
        """Return the static context of a session, the same object while nothing changes.

        Args:
            loaded: The loaded directories.
            fields: The fields of the request that the caller decides: role, renderer, task, tools.

        Raises:
            UnknownNameError: No plugin offers the role or the renderer.
        """
        request = _build_request(loaded, fields)
        layers = tuple(each for _, each in loaded)
        for cached_layers, cached in self._known:
            is_same = len(cached_layers) == len(layers) and all(map(_is_identical, cached_layers, layers))
            if is_same and cached.request == request and cached.is_current:
                return cached
        static = build_static_context(self._host, loaded, fields)
        self._known = [(layers, static), *self._known[: MAX_CACHED_CONTEXTS - 1]]
        return static


def build_static_context(host: Host, loaded: Sequence[LoadedDirectory], fields: Mapping[str, Any]) -> StaticContext:
    """Build the static context of a session.

    `nexus show` and `Nexus.system_prompt` use it too, so that they print what a session sends.

    Args:
        host: The plugin manager.
        loaded: The loaded directory; for a worker, preceded by those of the agents that it inherits from.
        fields: The fields of the request that the caller decides: role, renderer, mode, permissions, task, tools.

    Raises:
        UnknownNameError: No plugin offers the role or the renderer.
    """
    request, (_, layers) = _build_request(loaded, fields), loaded[-1]
    if request.system_prompt:
        return StaticContext(request, layers, (), host)
    contexts = {
        one.cwd: LoadedContext(
            cwd=one.cwd,
            loaded=each,
            layer_sections=build_layer_sections(each),
            other_sections=host.static_sections(request, each) if each is layers else (),
            load_for=lambda cwd: contexts[cwd],  # type: ignore[index] # only for directories in it
        )
        for one, each in loaded
    }
    context = contexts[loaded[0][0].cwd]
    for one, _ in loaded[1:]:
        if one.cwd != context.cwd:
            context = context.for_subagent(one.cwd)
    worker_sections = [replace(section, order=SUBAGENT_ORDER) for section in context.subagent_sections]
    permissions = build_permissions_section(layers.settings, request.permissions or ())
    return StaticContext(
        request, layers, [*worker_sections, *context.layer_sections, permissions, *context.other_sections], host
    )


def _build_request(loaded: Sequence[LoadedDirectory], fields: Mapping[str, Any]) -> Request:
    return replace(loaded[-1][0], **fields, is_call=True).standing


def _is_identical(one: LoadedLayers, other: LoadedLayers) -> bool:
    return one is other


# ---- loaded layers --------------------------------------------------------------------------------------------------


class LayerCache:
    """Cache of loaded layers by directory and mode.

    Args:
        load: Loads a directory and returns the request for it, which depends on the files, and the layers.
    """

    def __init__(self, load: Callable[[Path, AgentMode], tuple[Request, LoadedLayers]]) -> None:
        self._load = load
        self._known: dict[tuple[Path, AgentMode], tuple[FileSnapshot, Request, LoadedLayers]] = {}

    def get(self, cwd: Path, mode: AgentMode) -> tuple[Request, LoadedLayers]:
        """Return request and layers of a directory, the same while unchanged."""
        cached = self._known.get((cwd, mode))
        if cached is not None and cached[0].is_fresh():
            return cached[1:]
        since = time.time_ns()
        request, loaded = self._load(cwd, mode)
        snapshot = take_file_snapshot(list_watched_paths(request, loaded), since)
        if (
            cached is not None
            and cached[2] == loaded
            and _are_unchanged(cached[0], snapshot, list_skill_paths(request, loaded))
        ):
            loaded = cached[2]  # the snapshot was not settled, or a file was only touched
        if len(self._known) >= MAX_CACHED_DIRECTORIES:
            self._known.clear()
        self._known[cwd, mode] = snapshot, request, loaded
        return request, loaded

    def get_last(self, cwd: Path, mode: AgentMode) -> tuple[Request, LoadedLayers] | None:
        """Return the last load of a directory, even if outdated; None without one."""
        cached = self._known.get((cwd, mode))
        return None if cached is None else cached[1:]


def list_watched_paths(request: Request, loaded: LoadedLayers) -> set[str]:
    """Return every path that a load depends on.

    These are read files, missing files, and directories where files may appear.
    """
    paths: set[Path] = {*_find_levels(request), request.home, request.cwd / ".nexus3"}
    paths |= {request.home / name for name in ("config.json", "trust.json")}
    paths |= list_skill_paths(request, loaded)
    for layer in loaded.layers:
        paths |= {layer.directory, layer.project}
    for text in (*loaded.texts, *loaded.repeated):
        paths |= {text.path, *text.imports}
    paths |= {config.path for config in loaded.configs} | {skipped.path for skipped in loaded.skipped}
    return {*map(str, paths), *(path for part in loaded.active for path in _find_approved_files(part))}


def list_skill_paths(request: Request, loaded: LoadedLayers) -> set[Path]:
    """Return the paths of skills and of the list of used ones.

    Plugins read them for their sections, although no load does.
    """
    return {request.home / "used-skills.json", *(path for layer in loaded.layers for path in _find_skills(layer))}


def _find_levels(request: Request) -> Iterator[Path]:
    """Yield the working directory, and where layers or a `.git` may appear."""
    levels = [request.cwd, *request.cwd.parents]
    marks = [level / ".git" for level in levels]
    height = next((distance for distance, mark in enumerate(marks) if os.path.lexists(mark)), 0)
    yield from levels[: max(request.ancestor_depth, height) + 1]
    yield from marks


def _find_skills(layer: Layer) -> Iterator[Path]:
    """Yield the skill directory of a layer, and directory and guide of each skill."""
    directory = layer.directory / "skills"
    yield directory
    try:
        names = os.listdir(directory)  # noqa: PTH208 - names are enough
    except OSError:
        return
    yield from (each for name in sorted(names) for each in (directory / name, directory / name / "SKILL.md"))


def _find_approved_files(part: ActiveSetting) -> Iterator[str]:
    """Yield the files that an approval covers.

    They may be relative to the directory of the settings or to any parent.
    """
    try:
        files = json.loads(part.content).get("files", {})
    except (ValueError, AttributeError):
        return
    root = part.path.parent
    yield from (str(directory / name) for name in files for directory in (root, *root.parents))


# ---- changes on disk ------------------------------------------------------------------------------------------------


class FileSnapshot(NamedTuple):
    """The `stat` of some paths.

    Attributes:
        facts: By path: device, inode, size and times of the last changes; None for a missing file.
        is_settled: True if every later change is certain to change the facts.
    """

    facts: dict[str, FileFacts]
    is_settled: bool

    def is_fresh(self) -> bool:
        """True if no path has changed since."""
        return self.is_settled and all(_stat(path) == facts for path, facts in self.facts.items())


def take_file_snapshot(paths: Iterable[str], since: int) -> FileSnapshot:
    """Return the snapshot of paths whose content was just read.

    Args:
        paths: The paths.
        since: When reading began, in nanoseconds since 1970; a file changed later must be read again.
    """
    facts = {path: _stat(path) for path in paths}
    return FileSnapshot(
        facts, all(found is None or max(found[3:]) < since - MIN_FILE_AGE_NS for found in facts.values())
    )


def _stat(path: str) -> FileFacts:
    try:
        stat = os.stat(path)  # noqa: PTH116 - faster, for many files in every turn
    except (OSError, ValueError):
        return None
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns


def _are_unchanged(before: FileSnapshot, now: FileSnapshot, paths: Iterable[Path]) -> bool:
    return all(before.facts.get(str(path)) == now.facts.get(str(path)) for path in paths)
