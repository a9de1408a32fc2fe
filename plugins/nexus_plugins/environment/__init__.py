"""Tells the model where it works: directory, operating system, terminal, mode."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core import Command, Section, hookimpl
from nexus_plugins.environment._facts import environment_facts

if TYPE_CHECKING:
    from nexus_core import Request

ORDER = 600


@hookimpl
def nexus_commands() -> list[Command]:
    """`nexus environment` prints what the section says."""
    return [Command("environment", "What the model is told about this machine.", "nexus_plugins.environment._cli:app")]


@hookimpl
def nexus_static_sections(request: Request) -> list[Section]:
    """The section `## Environment`, one line for each fact."""
    lines = [f"{name}: {value}" for name, value in environment_facts(request).items()]
    return [Section("environment", title="Environment", text="\n".join(lines), order=ORDER)]
