"""Tells the model where it works: directory, operating system, terminal, mode."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core import Section, hookimpl
from nexus_core.plugin import Command, PluginSettings
from nexus_plugins.environment._facts import environment_facts

if TYPE_CHECKING:
    from nexus_core import Request
    from nexus_core.plugin import Loaded

ORDER = 600


@hookimpl
def nexus_commands() -> list[Command]:
    """`nexus environment` prints what the section says."""
    return [Command("environment", "What the model is told about this machine.", "nexus_plugins.environment._cli:app")]


@hookimpl
def nexus_settings() -> list[PluginSettings]:
    """`plugins.environment.terminal` says whether the terminal is named."""
    return [PluginSettings("nexus_plugins.environment._settings:EnvironmentSettings")]


@hookimpl
def nexus_static_sections(request: Request, loaded: Loaded) -> list[Section]:
    """The section `## Environment`, one line for each fact."""
    facts = environment_facts(request)
    if not loaded.settings.get("plugins.environment.terminal", default=True):
        facts.pop("Terminal", None)
    lines = [f"{name}: {value}" for name, value in facts.items()]
    return [Section("environment", title="Environment", text="\n".join(lines), order=ORDER)]
