"""The host of functions that are used without a Nexus."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from nexus_core.config.early import read_early_settings
from nexus_core.errors import UnknownNameError
from nexus_core.files.places import existing_directory, home_directory
from nexus_core.host.bundled import BUNDLED
from nexus_core.host.host import Host
from nexus_core.host.installed import installed_candidates
from nexus_core.host.policy import disabled_by_user, read_policy

if TYPE_CHECKING:
    from pathlib import Path

    from nexus_core.host.policy import PluginPolicy


def default_host() -> Host:
    """The bundled plugins and those the user has installed, without those the user has disabled.

    Made once, and again only after the user decided otherwise about plugins; problems go to the `nexus_core` logger.

    Raises:
        ConfigError: The user's config.json cannot be used, or NEXUS_HOME lies inside the project.
    """
    cwd = existing_directory(".")
    home = home_directory(cwd)
    return _host(cwd, read_policy(disabled_by_user(home, read_early_settings(home, home).disabled_plugins)))


@lru_cache(maxsize=8)
def _host(cwd: Path, policy: PluginPolicy) -> Host:
    candidates = list(BUNDLED)
    if not policy.only_bundled:
        candidates += installed_candidates(outside=cwd)
    return Host(candidates, policy)


def load_plugin(name: str) -> object:
    """A plugin by its name, imported, whether it ships with Nexus or was installed."""
    candidates = {candidate.name: candidate for candidate in BUNDLED}
    if name not in candidates:
        installed = installed_candidates(outside=existing_directory("."))
        candidates |= {candidate.name: candidate for candidate in installed}
    if name not in candidates:
        raise UnknownNameError("plugin", name, candidates)
    return candidates[name].load()
