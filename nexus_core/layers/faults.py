"""What is wrong with settings, as findings: faults, and names of things that are not there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.config.pointers import pointer_of, pointer_to
from nexus_core.config.servers.normalising import normalise_servers
from nexus_core.config.validation import DISABLED, find_faults, import_models, list_faults
from nexus_core.errors import did_you_mean
from nexus_core.layers.guarding import guard_configs, list_plugin_guarded_settings
from nexus_core.layers.names import find_unknown_names
from nexus_core.values.finding import Finding
from nexus_core.values.layer import Layer, LayerConfig

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from nexus_core.errors import ConfigError
    from nexus_core.host.host import Host
    from nexus_core.values.loaded import Loaded
    from nexus_core.values.settings import Settings

INVALID, UNKNOWN = "invalid-setting", "unknown-name"
"""The codes: a setting that nobody can use, and one that names something that is not there."""

MAX_FAULTS = 100
"""How many faults become findings; the rest is counted."""

_PROVIDER, _SUMMARISERS = "provider.provider", "compaction.summarisers"
_ALWAYS_THERE = ("given", "extractive")
"""Summarisers that no plugin has to offer."""


def find_invalid_settings(settings: Settings, host: Host) -> list[Finding]:
    """Every fault for which settings are refused, file by file from the top."""
    faults = list_faults(settings, import_models(host.setting_models()), find_unknown_names(settings, host))
    found = [locate_finding(Finding(INVALID, each.message), settings, each.pointer) for each in faults[:MAX_FAULTS]]
    return [*found, Finding(INVALID, f"and {len(faults) - MAX_FAULTS:,} more")] if faults[MAX_FAULTS:] else found


def find_errors(settings: Settings, host: Host) -> Iterator[ConfigError]:
    """The same, as the errors that would be raised for them."""
    return find_faults(settings, import_models(host.setting_models()), find_unknown_names(settings, host))


def find_missing_names(loaded: Loaded, host: Host) -> Iterator[Finding]:
    """Names of plugins, summarisers and a provider that are not there: settings are used all the same.

    One that may be right on another machine is a note; one that is nearly the name of something is not.
    """
    settings = loaded.settings
    plugins = settings.get("plugins")
    for name in plugins if isinstance(plugins, dict) else ():
        if name != DISABLED:
            yield from _find_plugin(name, settings, host)
    provider = settings.get(_PROVIDER)
    if isinstance(provider, str):
        yield from _find_provider(provider, settings, host)
    summarisers = settings.get(_SUMMARISERS)
    if isinstance(summarisers, list):
        yield from _find_summarisers(summarisers, loaded, host)


def find_ignored_settings(path: Path, settings: dict[str, object], loaded: Loaded, host: Host) -> list[Finding]:
    """What a project's config.json would set in vain, because it is for the user to decide.

    Args:
        path: The file.
        settings: What it would hold.
        loaded: What was loaded beside it.
        host: The plugins, some of whose settings are the user's own.
    """
    layer = Layer("local", path.parent, "local", root=path.parent.parent)
    own = [config for config in loaded.configs if config.layer is not None and config.layer.is_own]
    project = normalise_servers([LayerConfig(path, settings, layer=layer)], [])
    return guard_configs([*own, *project], lambda _: "allowed", *list_plugin_guarded_settings(host)).findings


def locate_finding(finding: Finding, settings: Settings, pointer: str) -> Finding:
    """A finding about a setting, with the place where that was made."""
    from dataclasses import replace  # noqa: PLC0415 - most settings are right

    origins = settings.origins.get(pointer)
    if not origins:
        return finding
    return replace(finding, path=origins[0].path, line=origins[0].line, column=origins[0].column)


def _find_plugin(name: str, settings: Settings, host: Host) -> Iterator[Finding]:
    installed = {plugin.name: plugin for plugin in host.plugins}
    if name not in installed:
        nearest = did_you_mean(name, installed)
        told = f"plugins.{name}: no such plugin is installed{f'; {nearest}' if nearest else ''}"
    elif installed[name].status == "active" and name not in host.setting_models():
        nearest, told = "", f"plugins.{name}: the plugin declares no settings, so nobody checks these"
    else:
        return
    finding = Finding(UNKNOWN, told, is_note=not nearest)
    yield locate_finding(finding, settings, pointer_to("/plugins", name))


def _find_provider(name: str, settings: Settings, host: Host) -> Iterator[Finding]:
    from nexus_core.dialects.finding import NAMES, default_dialects  # noqa: PLC0415 - most settings name none

    known = NAMES if name in NAMES else default_dialects(host).names
    # There are many servers that speak like one of these.
    if name not in known and (nearest := did_you_mean(name, known)):
        finding = Finding(UNKNOWN, f"{_PROVIDER}: no API is called {name!r}; {nearest}")
        yield locate_finding(finding, settings, pointer_of(_PROVIDER))


def _find_summarisers(names: list[object], loaded: Loaded, host: Host) -> Iterator[Finding]:
    known = {*_ALWAYS_THERE, *host.summarisers(loaded)}
    for name in names:
        if isinstance(name, str) and name not in known:
            hint = did_you_mean(name, known) or f"known here: {', '.join(sorted(known))}"
            finding = Finding(UNKNOWN, f"{_SUMMARISERS}: no summariser is called {name!r}; {hint}")
            yield locate_finding(finding, loaded.settings, pointer_of(_SUMMARISERS))
