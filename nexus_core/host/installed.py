"""Finds the plugins of installed distributions.

Importing `importlib_metadata` and reading every distribution costs more than printing a prompt. So the
directories of `sys.path` are first asked which distributions mention our group at all; only those are read.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from nexus_core.host.candidates import OWN_DISTRIBUTION, Candidate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from importlib_metadata import Distribution, EntryPoint

GROUP = "nexus.plugins"

_METADATA_SUFFIXES = (".dist-info", ".egg-info")
_OWN_METADATA = f"{OWN_DISTRIBUTION.replace('-', '_')}-"


def installed_candidates(*, outside: Path, search_path: Iterable[str] | None = None) -> list[Candidate]:
    """The plugins of every installed distribution but our own, sorted by distribution and name.

    Args:
        outside: The working directory; metadata lying directly in it is a project's, not an installation's.
        search_path: Where to look; `sys.path` by default.
    """
    entries = sys.path if search_path is None else search_path
    found = {
        (distribution.metadata["Name"], point.name): _candidate(distribution, point)
        # The first of two distributions with one name is the one Python imports.
        for distribution in reversed(list(_distributions(_installation_directories(entries, outside))))
        for point in distribution.entry_points.select(group=GROUP)
    }
    return [found[key] for key in sorted(found)]


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
    projects = {os.path.realpath(outside), os.path.realpath(os.curdir)}
    for entry in dict.fromkeys(entries):
        if entry and os.path.realpath(entry) not in projects:
            yield entry


def _distributions(directories: Iterable[str]) -> Iterator[Distribution]:
    for directory in directories:
        for metadata in _mentioning(directory):
            from importlib_metadata import Distribution  # noqa: PLC0415 - only when there is something to read

            yield Distribution.at(metadata)


def _mentioning(directory: str) -> Iterator[Path]:
    try:
        names = sorted(os.listdir(directory))  # noqa: PTH208 - a Path for each of some thousand names is slow
    except OSError:  # not there, not a directory, not ours to read
        return
    for name in names:
        if name.endswith(_METADATA_SUFFIXES) and not name.startswith(_OWN_METADATA):
            metadata = Path(directory, name)
            if _mentions_group(metadata / "entry_points.txt"):
                yield metadata


def _mentions_group(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return GROUP.encode() in file.read()
    except OSError:  # most distributions have no entry points
        return False
