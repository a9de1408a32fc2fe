"""Finds the plugins of installed distributions.

Importing `importlib_metadata` and reading every distribution costs more than printing a prompt. So the
directories of `sys.path` are first asked which distributions mention our group at all; only those are read.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from nexus_core.errors import FileError
from nexus_core.files.reading import read_bytes
from nexus_core.host.candidates import OWN_DISTRIBUTION, Candidate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from importlib_metadata import Distribution, EntryPoint

GROUP = "nexus.plugins"

_METADATA_SUFFIXES = (".dist-info", ".egg-info")
# What pip sets aside while it uninstalls and leaves behind when it is interrupted.
_SET_ASIDE = "~"


def installed_candidates(*, outside: Path, search_path: Iterable[str] | None = None) -> list[Candidate]:
    """The plugins of every installed distribution but our own, sorted by distribution and name.

    Args:
        outside: The working directory; metadata lying directly in it is a project's, not an installation's.
        search_path: Where to look; `sys.path` by default.
    """
    entries = sys.path if search_path is None else search_path
    found = {
        (candidate.distribution, candidate.name): candidate
        for metadata in _mentioning(_installation_directories(entries, outside))
        for candidate in _candidates(metadata)
    }
    return [found[key] for key in sorted(found)]


def has_third_party_plugins() -> bool:
    """True if a third-party distribution has a plugin; looks once per directory, reads no setting, imports none."""
    try:
        return _has_plugins(os.getcwd(), tuple(sys.path))  # noqa: PTH109 - a Path for every call is slow
    except OSError:  # the current directory may have been deleted
        return _has_plugins("", tuple(sys.path))


@lru_cache(maxsize=8)
def _has_plugins(cwd: str, search_path: tuple[str, ...]) -> bool:
    return any(True for _ in _mentioning(_installation_directories(search_path, Path(cwd))))


def _candidates(metadata: Path) -> list[Candidate]:
    from importlib_metadata import Distribution  # noqa: PLC0415 - only when there is something to read

    try:
        distribution = Distribution.at(metadata)
        return [_candidate(distribution, point) for point in distribution.entry_points.select(group=GROUP)]
    except Exception as error:  # noqa: BLE001 - half uninstalled, or written by hand: it may hold anything
        return [_unreadable(metadata, error)]


def _unreadable(metadata: Path, error: Exception) -> Candidate:
    """A plugin that cannot even be named by its own metadata; loading it says why."""

    def load() -> object:
        raise error

    name, _, version = metadata.stem.partition("-")
    return Candidate(name=name, origin="installed", distribution=name, version=version, load=load)


def _candidate(distribution: Distribution, point: EntryPoint) -> Candidate:
    return Candidate(
        name=point.name,
        origin="installed",
        distribution=distribution.metadata["Name"],
        version=distribution.version,
        load=point.load,
    )


def _installation_directories(entries: Iterable[str], outside: Path) -> Iterator[str]:
    # A script or `python -m` puts the current directory first; code is never taken from a project folder.
    projects = {os.path.realpath(outside)}
    with suppress(OSError):  # the current directory may have been deleted
        projects.add(os.path.realpath(os.curdir))
    for entry in dict.fromkeys(entries):
        if entry and os.path.realpath(entry) not in projects:
            yield entry


def _mentioning(directories: Iterable[str]) -> Iterator[Path]:
    seen: set[str] = {OWN_DISTRIBUTION.replace("-", "_")}
    for directory in directories:
        try:
            names = sorted(os.listdir(directory))  # noqa: PTH208 - a Path for each of some thousand names is slow
        except OSError:  # not there, not a directory, not ours to read
            continue
        for name in names:
            if not name.endswith(_METADATA_SUFFIXES) or name.startswith(_SET_ASIDE):
                continue
            # The first of two distributions with one name is the one Python imports, also when only the other has
            # plugins; My.Dist, my-dist and my_dist are one name.
            project = name.rpartition(".")[0].partition("-")[0].lower().replace(".", "_")
            if project in seen:
                continue
            seen.add(project)
            metadata = Path(directory, name)
            if _mentions_group(metadata / "entry_points.txt"):
                yield metadata


def _mentions_group(path: Path) -> bool:
    try:
        return GROUP.encode() in (read_bytes(path) or b"")  # most distributions have no entry points
    except FileError:
        return False
