"""A plugin before it is loaded: who it claims to be and how to get at it."""

from __future__ import annotations

from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple

from nexus_core._version import __version__
from nexus_core.errors import UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from nexus_core.values.command import Command
    from nexus_core.values.declarations import PluginSettings
    from nexus_core.values.extra import Extra

OWN_DISTRIBUTION = "nexusctx"

Origin = Literal["bundled", "installed", "given"]
"""Ships with Nexus, was found among the installed distributions, or was passed to `Nexus(plugins=…)`."""


class Candidate(NamedTuple):
    """A plugin that may be loaded.

    Attributes:
        name: Its name in `nexus plugins list` and in every provenance.
        origin: How it came here; bundled plugins are held to a stricter standard.
        load: Imports and returns the plugin.
        distribution: The package it was installed with, "" if none.
        version: That package's version.
        hooks: The hooks it implements, when they are known without loading it.
        constants: What answers a hook without loading it, by hook.
        needs: The extra it cannot work without, when that is known without loading it.
    """

    name: str
    origin: Origin
    load: Callable[[], object]
    distribution: str = ""
    version: str = ""
    hooks: tuple[str, ...] | None = None
    constants: Mapping[str, Callable[[], object]] = MappingProxyType({})
    needs: Extra | None = None

    @property
    def is_bundled(self) -> bool:
        """Whether it ships with Nexus."""
        return self.origin == "bundled"

    @property
    def label(self) -> str:
        """Its name, with the distribution to blame."""
        return f"{self.name} ({self.distribution} {self.version})" if self.distribution else self.name


def bundled(
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
) -> Candidate:
    """A plugin that ships with Nexus: a row of the generated manifest, imported once one of its hooks is called.

    Args:
        name: Its name.
        module: Where it is.
        hooks: What it answers.
        commands: Its answer to `nexus_commands`.
        settings: The model of its answer to `nexus_settings`.
        active: Which of them take effect in a project only after approval.
        protected: Which of them no project decides.
        off_only: Which of them a project may only switch off.
        needs: The extra it cannot work without.
    """
    constants: dict[str, Callable[[], object]] = {}
    if commands:
        constants["nexus_commands"] = lambda: commands
    if settings:
        constants["nexus_settings"] = lambda: _declared(settings, active, protected, off_only)
    return Candidate(
        name=name,
        origin="bundled",
        distribution=OWN_DISTRIBUTION,
        version=__version__,
        load=lambda: import_module(module),
        hooks=hooks,
        constants=constants,
        needs=needs,
    )


def _declared(
    model: str, active: tuple[str, ...], protected: tuple[str, ...], off_only: tuple[str, ...]
) -> list[PluginSettings]:
    from nexus_core.values.declarations import PluginSettings  # noqa: PLC0415 - commands about plugins load nothing

    return [PluginSettings(model, active, protected, off_only)]


def given_candidates(plugins: Iterable[object]) -> list[Candidate]:
    """The objects passed to `Nexus(plugins=…)`, each with a name of its own."""
    candidates: list[Candidate] = []
    for plugin in plugins:
        name = given_name(plugin)
        same = sum(candidate.name.partition("#")[0] == name for candidate in candidates)
        candidates.append(
            Candidate(
                name=f"{name}#{same + 1}" if same else name,
                origin="given",
                load=lambda plugin=plugin: plugin,  # type: ignore[misc]
            )
        )
    return candidates


def given_name(plugin: object) -> str:
    """What to call a plugin that nobody installed: the last part of its module's name, or its class."""
    return str(getattr(plugin, "__name__", type(plugin).__name__)).rpartition(".")[2]


def resolve_plugin_name(name: str, known: Collection[str]) -> str:
    """Return the name of a plugin as it is known; a hyphen and an underscore are the same.

    Raises:
        UnknownNameError: There is none of that name.
    """
    if name in known:
        return name
    plain = name.replace("-", "_")
    found = next((each for each in known if each.replace("-", "_") == plain), None)
    if found is None:
        raise UnknownNameError("plugin", name, known)
    return found
