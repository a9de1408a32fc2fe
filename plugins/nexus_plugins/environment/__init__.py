"""Adds the section `## Environment`: directory, system, machine, mode; in each turn, if switched on, the git branch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core import Section, hookimpl
from nexus_core.plugin import Command, PluginSettings
from nexus_plugins.environment._facts import told_facts

if TYPE_CHECKING:
    from nexus_core import Request
    from nexus_core.plugin import Loaded

ORDER = 600


@hookimpl
def nexus_commands() -> list[Command]:
    """`nexus environment` prints the facts of the section."""
    return [Command("environment", "What the model is told about this machine.", "nexus_plugins.environment._cli:app")]


@hookimpl
def nexus_settings() -> list[PluginSettings]:
    """`plugins.environment` says whether terminal, host and branch are named."""
    return [PluginSettings("nexus_plugins.environment._settings:EnvironmentSettings", off_only=("terminal", "host"))]


@hookimpl
def nexus_static_sections(request: Request, loaded: Loaded) -> list[Section]:
    """The section `## Environment`, one line for each fact."""
    lines = [f"{name}: {value}" for name, value in told_facts(request, loaded.settings).items()]
    return [Section("environment", title="Environment", text="\n".join(lines), order=ORDER)]


@hookimpl
def nexus_current_sections(request: Request, loaded: Loaded) -> list[Section]:
    """The section `Git`, if `plugins.environment.git` is on and the directory is in a repository."""
    if not loaded.settings.get("plugins.environment.git", default=False):
        return []
    from nexus_plugins.environment._git import checked_out  # noqa: PLC0415 - most do not want it

    text = checked_out(request.cwd)
    return [Section("git", title="Git", text=text, kind="event")] if text else []
