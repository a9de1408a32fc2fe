"""Whether anything has changed on disk since it was looked at, told from a few facts about each file."""

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
"""Nanoseconds. A file that was changed so shortly before it was looked at may be changed again without a trace, because
the clocks of file systems tick slowly."""

MAX_CACHED_DIRECTORIES = 32
"""So many directories are remembered; an agent's workers may have one each."""

FileFacts = tuple[int, int, int, int, int] | None


class FileSnapshot(NamedTuple):
    """What some paths were like.

    Attributes:
        facts: By path: device, number, size and the times of its last changes; None where there was nothing.
        is_settled: Whether a later change is certain to show.
    """

    facts: dict[str, FileFacts]
    is_settled: bool

    def is_fresh(self) -> bool:
        """Whether all of them are as they were."""
        return self.is_settled and all(_facts(path) == facts for path, facts in self.facts.items())


def take_file_snapshot(paths: Iterable[str], since: int) -> FileSnapshot:
    """Look at paths after what they hold was read.

    Args:
        paths: The paths.
        since: When the reading began, in nanoseconds since 1970; what was changed later has to be read again.
    """
    facts = {path: _facts(path) for path in paths}
    return FileSnapshot(
        facts, all(found is None or max(found[3:]) < since - MIN_FILE_AGE_NS for found in facts.values())
    )


class LayerCache:
    """What was loaded for a directory, loaded again only when something there has changed.

    Args:
        load: Loads for a directory, whatever is known; gives the circumstances too, which depend on what is there.
    """

    def __init__(self, load: Callable[[Path, AgentMode], tuple[Request, LoadedLayers]]) -> None:
        self._load = load
        self._known: dict[tuple[Path, AgentMode], tuple[FileSnapshot, Request, LoadedLayers]] = {}

    def get(self, cwd: Path, mode: AgentMode) -> tuple[Request, LoadedLayers]:
        """The circumstances in a directory and what was loaded there; the same objects while nothing changes."""
        known = self._known.get((cwd, mode))
        if known is not None and known[0].is_fresh():
            return known[1:]
        since = time.time_ns()
        request, loaded = self._load(cwd, mode)
        seen = take_file_snapshot(list_watched_paths(request, loaded), since)
        if known is not None and known[2] == loaded and _are_alike(known[0], seen, list_skill_paths(request, loaded)):
            loaded = known[2]  # looked at too early to be sure, or only touched
        if len(self._known) >= MAX_CACHED_DIRECTORIES:
            self._known.clear()
        self._known[cwd, mode] = seen, request, loaded
        return request, loaded

    def get_last(self, cwd: Path, mode: AgentMode) -> tuple[Request, LoadedLayers] | None:
        """What was last loaded for a directory, whatever became of it since; None where nothing was."""
        known = self._known.get((cwd, mode))
        return None if known is None else known[1:]


def list_watched_paths(request: Request, loaded: LoadedLayers) -> set[str]:
    """Every path that a load depends on: what was read, what was looked for in vain, and where more could appear."""
    paths: set[Path] = {*_levels(request), request.home, request.cwd / ".nexus3"}
    paths |= {request.home / name for name in ("config.json", "trust.json")}
    paths |= list_skill_paths(request, loaded)
    for layer in loaded.layers:
        paths |= {layer.directory, layer.project}
    for text in (*loaded.texts, *loaded.repeated):
        paths |= {text.path, *text.imports}
    paths |= {config.path for config in loaded.configs} | {skipped.path for skipped in loaded.skipped}
    return {*map(str, paths), *(path for part in loaded.active for path in _scripts(part))}


def list_skill_paths(request: Request, loaded: LoadedLayers) -> set[Path]:
    """What sections may tell of although no load reads it: the guides of skills, and which of them were used."""
    return {request.home / "used-skills.json", *(path for layer in loaded.layers for path in _guides(layer))}


def _are_alike(before: FileSnapshot, now: FileSnapshot, paths: Iterable[Path]) -> bool:
    return all(before.facts.get(str(path)) == now.facts.get(str(path)) for path in paths)


def _levels(request: Request) -> Iterator[Path]:
    """The working directory, those above it in which layers or rules may appear, and where a repository may begin."""
    levels = [request.cwd, *request.cwd.parents]
    marks = [level / ".git" for level in levels]
    height = next((distance for distance, mark in enumerate(marks) if os.path.lexists(mark)), 0)
    yield from levels[: max(request.ancestor_depth, height) + 1]
    yield from marks


def _guides(layer: Layer) -> Iterator[Path]:
    """Where the skills of a layer are kept; each has a directory of its own, with files that change inside it."""
    place = layer.directory / "skills"
    yield place
    try:
        names = os.listdir(place)  # noqa: PTH208 - names are enough
    except OSError:
        return
    yield from (each for name in sorted(names) for each in (place / name, place / name / "SKILL.md"))


def _facts(path: str) -> FileFacts:
    try:
        found = os.stat(path)  # noqa: PTH116 - many of them, in every turn
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _scripts(part: ActiveSetting) -> Iterator[str]:
    """The files whose bytes an approval covers."""
    try:
        files = json.loads(part.content).get("files", {})
    except (ValueError, AttributeError):
        return
    root = part.path.parent
    yield from (str(place / name) for name in files for place in (root, *root.parents))


LoadedDirectory = tuple["Request", "LoadedLayers"]
"""The circumstances in a directory, and what was loaded there."""

MAX_CACHED_CONTEXTS = 16
"""So many circumstances are remembered; most programs have one or two."""
SUBAGENT_ORDER = 99
"""A worker's own instructions stand before those it inherits."""


class StaticContextCache:
    """What stands around the conversations of a Nexus.

    Args:
        host: The plugins.
        loads: Loads what lies on disk, when it has changed.
    """

    def __init__(self, host: Host, loads: LayerCache) -> None:
        self._host = host
        self._layer_cache = loads
        self._known: list[tuple[tuple[LoadedLayers, ...], StaticContext]] = []

    def load(self, places: Sequence[Path], mode: AgentMode = DEFAULT_MODE) -> list[LoadedDirectory]:
        """What lies on disk, read again only where something has changed.

        Args:
            places: The directory a conversation works in; before it, for a worker, those of the agents that it inherits
                from.
            mode: How the agent is driven.
        """
        return [self._layer_cache.get(place, mode) for place in places]

    def get_last_load(self, places: Sequence[Path], mode: AgentMode = DEFAULT_MODE) -> list[LoadedDirectory] | None:
        """What was last seen on disk; None where nothing was. Arguments as above."""
        seen = [self._layer_cache.get_last(place, mode) for place in places]
        known = [each for each in seen if each is not None]
        return known if len(known) == len(seen) else None

    def get_static_context(self, found: Sequence[LoadedDirectory], fields: Mapping[str, Any]) -> StaticContext:
        """What stands around a conversation now.

        Args:
            found: What lies on disk.
            fields: The circumstances that the caller decides: role, renderer, task, tools…

        Raises:
            UnknownNameError: Nobody offers such a role or renderer.
        """
        request = _call_request(found, fields)
        loads = tuple(each for _, each in found)
        for known_loads, known in self._known:
            is_same = len(known_loads) == len(loads) and all(map(_is_same, known_loads, loads))
            if is_same and known.request == request and known.is_current:
                return known
        static = build_static_context(self._host, found, fields)
        self._known = [(loads, static), *self._known[: MAX_CACHED_CONTEXTS - 1]]
        return static


def build_static_context(host: Host, found: Sequence[LoadedDirectory], fields: Mapping[str, Any]) -> StaticContext:
    """Build the static zone: the one answer to what a session, `nexus show` and `Nexus.system_prompt` print.

    Args:
        host: The plugins.
        found: The loaded directory; before it, for a worker, those of the agents that it inherits from.
        fields: The fields of the request that the caller decides: role, renderer, mode, permissions, task, tools.

    Raises:
        UnknownNameError: No plugin offers the role or the renderer.
    """
    request, (_, loaded) = _call_request(found, fields), found[-1]
    if request.system_prompt:
        return StaticContext(request, loaded, (), host)
    contexts = {
        one.cwd: LoadedContext(
            cwd=one.cwd,
            loaded=each,
            layer_sections=build_layer_sections(each),
            other_sections=host.static_sections(request, each) if each is loaded else (),
            load_for=lambda cwd: contexts[cwd],  # type: ignore[index] # it is asked for what is there
        )
        for one, each in found
    }
    context = contexts[found[0][0].cwd]
    for one, _ in found[1:]:
        if one.cwd != context.cwd:
            context = context.for_subagent(one.cwd)
    own = [replace(section, order=SUBAGENT_ORDER) for section in context.subagent_sections]
    may = build_permissions_section(loaded.settings, request.permissions or ())
    return StaticContext(request, loaded, [*own, *context.layer_sections, may, *context.other_sections], host)


def _call_request(found: Sequence[LoadedDirectory], fields: Mapping[str, Any]) -> Request:
    return replace(found[-1][0], **fields, is_call=True).standing


def _is_same(one: LoadedLayers, other: LoadedLayers) -> bool:
    return one is other
