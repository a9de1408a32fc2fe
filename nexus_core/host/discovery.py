"""Plugin candidates before they are loaded, and the policy that admits them.

Importing `importlib_metadata` and reading every distribution costs more than printing a prompt. So the
directories of `sys.path` are first searched for distributions that mention our group at all; only those are read.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple

from nexus_core._version import __version__
from nexus_core.errors import ConfigError, FileError, UnknownNameError
from nexus_core.files.read import read_bytes
from nexus_core.types.settings import PluginSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from importlib_metadata import Distribution, EntryPoint

    from nexus_core.types.plugins import Command, Extra

OWN_DISTRIBUTION = "nexusctx"

PluginOrigin = Literal["bundled", "installed", "given"]
"""Ships with Nexus, was found among the installed distributions, or was passed to `Nexus(plugins=…)`."""


class PluginCandidate(NamedTuple):
    """A plugin that may be loaded.

    Attributes:
        name: Its name in `nexus plugin list` and in every provenance.
        origin: Where it comes from; a problem with a bundled plugin always stops the run.
        load: Imports and returns the plugin.
        distribution: The package it was installed with, "" if none.
        version: That package's version.
        hooks: The hooks it implements; None if it must be loaded to know them.
        constants: Functions that return a hook's result without loading the plugin, by hook.
        needs: The extra it requires, if that is known without loading it.
    """

    name: str
    origin: PluginOrigin
    load: Callable[[], object]
    distribution: str = ""
    version: str = ""
    hooks: tuple[str, ...] | None = None
    constants: Mapping[str, Callable[[], object]] = MappingProxyType({})
    needs: Extra | None = None

    @property
    def is_bundled(self) -> bool:
        """True if it ships with Nexus."""
        return self.origin == "bundled"

    @property
    def label(self) -> str:
        """Its name, with the distribution and version."""
        return f"{self.name} ({self.distribution} {self.version})" if self.distribution else self.name


def declare_bundled_plugin(
    name: str,
    module: str,
    *,
    hooks: tuple[str, ...],
    commands: tuple[Command, ...] = (),
    settings: str = "",
    active: tuple[str, ...] = (),
    protected: tuple[str, ...] = (),
    off_only: tuple[str, ...] = (),
    needs: Extra | None = None,
) -> PluginCandidate:
    """Return a plugin that ships with Nexus: a row of the manifest, imported when one of its hooks is called.

    Args:
        name: Its name.
        module: The module to import.
        hooks: The hooks it implements.
        commands: Its result for `nexus_commands`.
        settings: The model of its result for `nexus_settings`.
        active: Settings that take effect in a project only after approval.
        protected: Settings that only the user may set.
        off_only: Settings that a project may only switch off.
        needs: The extra it requires.
    """
    constants: dict[str, Callable[[], object]] = {}
    if commands:
        constants["nexus_commands"] = lambda: commands
    if settings:
        constants["nexus_settings"] = lambda: _build_plugin_settings(settings, active, protected, off_only)
    return PluginCandidate(
        name=name,
        origin="bundled",
        distribution=OWN_DISTRIBUTION,
        version=__version__,
        load=lambda: import_module(module),
        hooks=hooks,
        constants=constants,
        needs=needs,
    )


def _build_plugin_settings(
    model: str, active: tuple[str, ...], protected: tuple[str, ...], off_only: tuple[str, ...]
) -> list[PluginSettings]:
    return [PluginSettings(model, active, protected, off_only)]


def build_given_candidates(plugins: Iterable[object]) -> list[PluginCandidate]:
    """Return candidates for the objects passed to `Nexus(plugins=…)`, each with a unique name."""
    candidates: list[PluginCandidate] = []
    for plugin in plugins:
        name = get_given_plugin_name(plugin)
        same = sum(candidate.name.partition("#")[0] == name for candidate in candidates)
        candidates.append(
            PluginCandidate(
                name=f"{name}#{same + 1}" if same else name,
                origin="given",
                load=lambda plugin=plugin: plugin,  # type: ignore[misc]
            )
        )
    return candidates


def get_given_plugin_name(plugin: object) -> str:
    """Return the name of a plugin passed as an object: the last part of its module's name, or its class."""
    return str(getattr(plugin, "__name__", type(plugin).__name__)).rpartition(".")[2]


def resolve_plugin_name(name: str, known: Collection[str]) -> str:
    """Return the known spelling of a plugin's name, treating hyphens and underscores alike.

    Raises:
        UnknownNameError: There is no plugin of that name.
    """
    if name in known:
        return name
    plain = name.replace("-", "_")
    found = next((each for each in known if each.replace("-", "_") == plain), None)
    if found is None:
        raise UnknownNameError("plugin", name, known)
    return found


ONLY_BUNDLED = "none"


class PluginPolicy(NamedTuple):
    """The user's decisions about plugins.

    Attributes:
        disabled: Names that are not loaded.
        only_bundled: True to ignore installed plugins.
        strict: True if the first problem with any plugin stops the run.
    """

    disabled: frozenset[str] = frozenset()
    only_bundled: bool = False
    strict: bool = False


def read_policy(disabled: Iterable[str] = (), *, strict: bool | None = None) -> PluginPolicy:
    """Return the policy of this process from the arguments, `NEXUS_PLUGINS=-name,…` or `none`, and `NEXUS_STRICT=1`.

    Raises:
        ConfigError: `NEXUS_PLUGINS` has an invalid entry.
    """
    words = _parse_plugins_variable(os.environ.get("NEXUS_PLUGINS", ""))
    if strict is None:
        strict = os.environ.get("NEXUS_STRICT", "") not in {"", "0"}
    return PluginPolicy(
        disabled=frozenset(disabled) | {word[1:] for word in words if word != ONLY_BUNDLED},
        only_bundled=ONLY_BUNDLED in words,
        strict=strict,
    )


def get_user_disabled_plugins(home: Path, disabled: Sequence[str]) -> Sequence[str]:
    """Return the plugins that the settings in a home disable, or none if a repository may have put them there."""
    if not disabled:
        return disabled
    from nexus_core.trust.store import is_home_trusted

    return disabled if is_home_trusted(home) else ()


def _parse_plugins_variable(variable: str) -> list[str]:
    words = [word.strip() for word in variable.split(",") if word.strip()]
    for word in words:
        if word != ONLY_BUNDLED and not (word.startswith("-") and word[1:]):
            raise ConfigError(
                f"{word!r} is neither '-name' nor '{ONLY_BUNDLED}'",
                where="the environment variable NEXUS_PLUGINS",
                hint=f"write '-{word.lstrip('-+')}' to disable a plugin, or 'none' to load bundled plugins only",
            )
    return words


ENTRY_POINT_GROUP = "nexus.plugins"

_METADATA_SUFFIXES = (".dist-info", ".egg-info")
# pip renames a package to this while it uninstalls, and leaves it behind if interrupted.
_PIP_BACKUP_PREFIX = "~"


def find_installed_candidates(
    *, outside: Path | None, search_path: Iterable[str] | None = None
) -> list[PluginCandidate]:
    """Return the plugins of every installed distribution but our own, sorted by distribution and name.

    Args:
        outside: The working directory; metadata directly in it belongs to a project, not to an installation. None if
            it is the current directory of the process, which is left out in any case.
        search_path: Directories to search; None means `sys.path`.
    """
    entries = sys.path if search_path is None else search_path
    found = {
        (candidate.distribution, candidate.name): candidate
        for metadata in _find_plugin_metadata(_list_installation_directories(entries, outside))
        for candidate in _read_distribution(metadata)
    }
    return [found[key] for key in sorted(found)]


def has_third_party_plugins() -> bool:
    """Return True if a third-party distribution has a plugin. Cached by directory. Reads no setting, imports none."""
    try:
        return _has_installed_plugins(os.getcwd(), tuple(sys.path))  # noqa: PTH109 - a Path for every call is slow
    except OSError:  # the current directory may have been deleted
        return _has_installed_plugins("", tuple(sys.path))


@lru_cache(maxsize=8)
def _has_installed_plugins(cwd: str, search_path: tuple[str, ...]) -> bool:
    directories = _list_installation_directories(search_path, Path(cwd) if cwd else None)
    return any(True for _ in _find_plugin_metadata(directories))


def _read_distribution(metadata: Path) -> list[PluginCandidate]:
    from importlib_metadata import Distribution

    try:
        distribution = Distribution.at(metadata)
        return [
            _build_installed_candidate(distribution, point)
            for point in distribution.entry_points.select(group=ENTRY_POINT_GROUP)
        ]
    except Exception as error:  # noqa: BLE001 - half uninstalled, or written by hand: it may hold anything
        return [_build_unreadable_candidate(metadata, error)]


def _build_unreadable_candidate(metadata: Path, error: Exception) -> PluginCandidate:
    """Return a candidate for metadata that cannot be read. Loading it raises the error."""

    def load() -> object:
        raise error

    name, _, version = metadata.stem.partition("-")
    return PluginCandidate(name=name, origin="installed", distribution=name, version=version, load=load)


def _build_installed_candidate(distribution: Distribution, point: EntryPoint) -> PluginCandidate:
    return PluginCandidate(
        name=point.name,
        origin="installed",
        distribution=distribution.metadata["Name"],
        version=distribution.version,
        load=point.load,
    )


def _list_installation_directories(entries: Iterable[str], outside: Path | None) -> Iterator[str]:
    # A script or `python -m` puts the current directory first; code is never taken from a project folder.
    projects = set() if outside is None else {os.path.realpath(outside)}
    with suppress(OSError):  # the current directory may have been deleted
        projects.add(os.path.realpath(os.curdir))
    for entry in dict.fromkeys(entries):
        if entry and os.path.realpath(entry) not in projects:
            yield entry


def _find_plugin_metadata(directories: Iterable[str]) -> Iterator[Path]:
    seen: set[str] = {OWN_DISTRIBUTION.replace("-", "_")}
    for directory in directories:
        try:
            names = sorted(os.listdir(directory))  # noqa: PTH208 - a Path for each of some thousand names is slow
        except OSError:  # missing, not a directory, or not readable
            continue
        for name in names:
            if not name.endswith(_METADATA_SUFFIXES) or name.startswith(_PIP_BACKUP_PREFIX):
                continue
            # Python imports the first of two distributions with one name, even if only the other has plugins.
            # My.Dist, my-dist and my_dist are one name.
            project = name.rpartition(".")[0].partition("-")[0].lower().replace(".", "_")
            if project in seen:
                continue
            seen.add(project)
            metadata = Path(directory, name)
            if _mentions_group(metadata / "entry_points.txt"):
                yield metadata


def _mentions_group(path: Path) -> bool:
    try:
        return ENTRY_POINT_GROUP.encode() in (read_bytes(path) or b"")  # most distributions have no entry points
    except FileError:
        return False
