"""The section `## Environment`: facts about machine, system and git branch.

_git.py         the checked-out branch, read from git's files
_settings.py    settings under `plugins.environment`
_cli.py         the hidden command `environment`
"""

from __future__ import annotations

import os
import platform
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from nexus_core import NexusError, Section, hookimpl
from nexus_core.plugin import Command, PluginSettings, read_text
from nexus_core.plugin.text import visible_line

if TYPE_CHECKING:
    from nexus_core import Request
    from nexus_core.plugin import LoadedLayers, Settings

SECTION_ORDER = 600
_MODE_NAMES = {"repl": "Interactive REPL", "server": "HTTP JSON-RPC Server"}
_OPTIONAL_FACTS = {"Terminal": "plugins.environment.terminal", "Host": "plugins.environment.host"}
OS_RELEASE = Path("/etc/os-release")


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


def list_facts(request: Request, settings: Settings) -> dict[str, str]:
    """Return the facts that the settings allow in the prompt, by their names there, in order."""
    excluded = {name for name, setting in _OPTIONAL_FACTS.items() if not settings.get(setting, default=True)}
    return {name: value for name, value in _collect_facts(request).items() if name not in excluded}


def _collect_facts(request: Request) -> dict[str, str]:
    facts = {
        "Working directory": visible_line(str(request.cwd)),
        "Operating system": get_operating_system(),
    }
    if request.is_call:  # without the terminal, so that the prompt stays the same
        host, architecture = get_machine()
        facts |= {"Architecture": visible_line(architecture), "Host": visible_line(host)}
    elif request.mode == "repl":
        facts["Terminal"] = visible_line(get_terminal())
    if request.mode:
        facts["Mode"] = _MODE_NAMES[request.mode]
    return facts


def get_operating_system() -> str:
    """Return the name of the system with its distribution or version, also for WSL2 on Windows."""
    system: str = sys.platform  # a variable, because type checkers treat the attribute as a constant
    if system.startswith("linux"):
        if "microsoft" in os.uname().release.lower():
            return "Linux (WSL2 on Windows)"
        distribution = get_linux_distribution()
        return f"Linux ({distribution})" if distribution else "Linux"
    if system == "darwin":
        return f"macOS {platform.mac_ver()[0]}".strip()
    return "Windows" if system == "win32" else system


def get_machine() -> tuple[str, str]:
    """Return the host name of this machine and the architecture of its processor."""
    if hasattr(os, "uname"):
        facts = os.uname()
        return facts.nodename, facts.machine
    return platform.node(), platform.machine()


@cache
def get_linux_distribution(release: Path = OS_RELEASE) -> str:
    """Return name and version of the distribution, or "" if unknown."""
    try:
        lines = (read_text(release) or "").splitlines()
    except NexusError:  # an unreadable file must not break the prompt
        return ""
    facts = dict(line.split("=", 1) for line in lines if "=" in line)
    words = [facts.get(key, "").strip("\"'") for key in ("NAME", "VERSION_ID")]
    return visible_line(" ".join(word for word in words if word))


def get_terminal() -> str:
    """Return the terminal as `program (TERM)`, or the one of the two that is known."""
    program, term = os.environ.get("TERM_PROGRAM", ""), os.environ.get("TERM", "")
    return f"{program} ({term})" if program and term else program or term or "unknown"
