"""Guides to what an agent can do: `skills/<name>/SKILL.md` in the layers, told in a few lines and read on demand."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from nexus_core import hookimpl

if TYPE_CHECKING:
    from nexus_core import Finding, Request, Section
    from nexus_core.plugin import Command, Layer, Loaded

DIRECTORY = "skills"


@hookimpl
def nexus_commands() -> list[Command]:
    """`nexus skill list` and `nexus skill use`."""
    from nexus_core.plugin import Command  # noqa: PLC0415 - a prompt needs no command

    return [Command("skill", "List skills, and read their guides.", "nexus_plugins.skills._cli:app")]


@hookimpl
def nexus_static_sections(request: Request, loaded: Loaded) -> list[Section]:
    """The section `## Nexus Environment`: names by category, what is ready and what is missing."""
    if request.skills == () or (request.skills is None and not any(map(may_have_guides, loaded.layers))):
        return []
    from nexus_plugins.skills._block import environment_section  # noqa: PLC0415 - most directories have no guides
    from nexus_plugins.skills._capabilities import capabilities_of  # noqa: PLC0415 - as above
    from nexus_plugins.skills._guides import find_guides  # noqa: PLC0415 - as above

    capabilities = capabilities_of(find_guides(loaded).guides, request.home, loaded.settings)
    section = environment_section(capabilities, request.skills)
    return [] if section is None else [section]


@hookimpl
def nexus_diagnose(loaded: Loaded) -> list[Finding]:
    """Guides that cannot be offered, what is odd about others, and settings that name one that is not there."""
    if not loaded.settings.get(DIRECTORY) and not any(map(may_have_guides, loaded.layers)):
        return []
    from nexus_plugins.skills._diagnosis import diagnose  # noqa: PLC0415 - only `nexus doctor` asks

    return diagnose(loaded)


def may_have_guides(layer: Layer) -> bool:
    """Whether there is a place for guides; asked for every prompt, so it takes one look and imports nothing."""
    if layer.only_rules or layer.scope == "defaults":
        return False
    return os.path.isdir(f"{layer.directory}/{DIRECTORY}")  # noqa: PTH112 - never fails
