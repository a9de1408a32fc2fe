"""The section `## Environment`: facts about machine, system and git branch.

_facts.py       facts about the machine and the terminal
_git.py         the checked-out branch, read from git's files
_settings.py    settings under `plugins.environment`
_cli.py         the hidden command `environment`
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core import Section, hookimpl
from nexus_core.plugin import Command, PluginSettings
from nexus_plugins.environment._facts import list_facts

if TYPE_CHECKING:
    from nexus_core import Request
    from nexus_core.plugin import LoadedLayers

SECTION_ORDER = 600


@hookimpl
def nexus_commands() -> list[Command]:
    """Return the hidden command `environment`, which prints the facts of the section."""
    return [
        Command(
            "environment",
            "Print the facts about this machine that a model reads.",
            "nexus_plugins.environment._cli:app",
            hidden=True,  # `nexus show --section environment` prints the same
        )
    ]


@hookimpl
def nexus_settings() -> list[PluginSettings]:
    """Declare `plugins.environment`: whether the prompt names terminal, host and branch."""
    return [PluginSettings("nexus_plugins.environment._settings:EnvironmentSettings", off_only=("terminal", "host"))]


@hookimpl
def nexus_static_sections(request: Request, loaded: LoadedLayers) -> list[Section]:
    """Return the section `## Environment`, a line for each fact."""
    lines = [f"{name}: {value}" for name, value in list_facts(request, loaded.settings).items()]
    return [Section("environment", title="Environment", text="\n".join(lines), order=SECTION_ORDER)]


@hookimpl
def nexus_current_sections(request: Request, loaded: LoadedLayers) -> list[Section]:
    """Return the section `Git`, if `plugins.environment.git` is on and the directory is in a repository."""
    if not loaded.settings.get("plugins.environment.git", default=False):
        return []
    from nexus_plugins.environment._git import describe_checkout

    text = describe_checkout(request.cwd)
    return [Section("git", title="Git", text=text, kind="event")] if text else []
