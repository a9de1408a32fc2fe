"""Whether anything has changed on disk since it was looked at, told from a few facts about each file."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from nexus_core.types.layers import Layer, LoadedLayers
    from nexus_core.types.mcp import ActiveSetting
    from nexus_core.types.request import AgentMode, Request

SETTLED_AFTER = 100_000_000
"""Nanoseconds. A file that was changed so shortly before it was looked at may be changed again without a trace, because
the clocks of file systems tick slowly."""

MOST_PLACES = 32
"""So many directories are remembered; an agent's workers may have one each."""

Facts = tuple[int, int, int, int, int] | None


class Look(NamedTuple):
    """What some paths were like.

    Attributes:
        facts: By path: device, number, size and the times of its last changes; None where there was nothing.
        is_settled: Whether a later change is certain to show.
    """

    facts: dict[str, Facts]
    is_settled: bool

    def is_fresh(self) -> bool:
        """Whether all of them are as they were."""
        return self.is_settled and all(_facts(path) == facts for path, facts in self.facts.items())


def look(paths: Iterable[str], since: int) -> Look:
    """Look at paths after what they hold was read.

    Args:
        paths: The paths.
        since: When the reading began, in nanoseconds since 1970; what was changed later has to be read again.
    """
    facts = {path: _facts(path) for path in paths}
    return Look(facts, all(found is None or max(found[3:]) < since - SETTLED_AFTER for found in facts.values()))


class FreshLoads:
    """What was loaded for a directory, loaded again only when something there has changed.

    Args:
        load: Loads for a directory, whatever is known; gives the circumstances too, which depend on what is there.
    """

    def __init__(self, load: Callable[[Path, AgentMode], tuple[Request, LoadedLayers]]) -> None:
        self._load = load
        self._known: dict[tuple[Path, AgentMode], tuple[Look, Request, LoadedLayers]] = {}

    def get(self, cwd: Path, mode: AgentMode) -> tuple[Request, LoadedLayers]:
        """The circumstances in a directory and what was loaded there; the same objects while nothing changes."""
        known = self._known.get((cwd, mode))
        if known is not None and known[0].is_fresh():
            return known[1:]
        since = time.time_ns()
        request, loaded = self._load(cwd, mode)
        seen = look(watched_paths(request, loaded), since)
        if known is not None and known[2] == loaded and _are_alike(known[0], seen, paths_beside(request, loaded)):
            loaded = known[2]  # looked at too early to be sure, or only touched
        if len(self._known) >= MOST_PLACES:
            self._known.clear()
        self._known[cwd, mode] = seen, request, loaded
        return request, loaded

    def last(self, cwd: Path, mode: AgentMode) -> tuple[Request, LoadedLayers] | None:
        """What was last loaded for a directory, whatever became of it since; None where nothing was."""
        known = self._known.get((cwd, mode))
        return None if known is None else known[1:]


def watched_paths(request: Request, loaded: LoadedLayers) -> set[str]:
    """Every path that a load depends on: what was read, what was looked for in vain, and where more could appear."""
    paths: set[Path] = {*_levels(request), request.home, request.cwd / ".nexus3"}
    paths |= {request.home / name for name in ("config.json", "trust.json")}
    paths |= paths_beside(request, loaded)
    for layer in loaded.layers:
        paths |= {layer.directory, layer.project}
    for text in (*loaded.texts, *loaded.repeated):
        paths |= {text.path, *text.imports}
    paths |= {config.path for config in loaded.configs} | {skipped.path for skipped in loaded.skipped}
    return {*map(str, paths), *(path for part in loaded.active for path in _scripts(part))}


def paths_beside(request: Request, loaded: LoadedLayers) -> set[Path]:
    """What sections may tell of although no load reads it: the guides of skills, and which of them were used."""
    return {request.home / "used-skills.json", *(path for layer in loaded.layers for path in _guides(layer))}


def _are_alike(before: Look, now: Look, paths: Iterable[Path]) -> bool:
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


def _facts(path: str) -> Facts:
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
