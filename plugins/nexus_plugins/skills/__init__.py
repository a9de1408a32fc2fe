"""Skills: guides in `skills/<name>/SKILL.md`. A prompt has their names and descriptions; the guides are read on demand.

They are found in `.nexus3`, `.claude`, `.agents` and `.codex`, in the user's home and in the project.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from nexus_core import hookimpl

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nexus_core import Finding, Request, Section, Tool
    from nexus_core.plugin import Command, Layer, Loaded, PluginSettings

DIRECTORY = "skills"
OWN_DIRECTORY = ".nexus3"
OTHER_TOOLS = (".claude", ".agents", ".codex")
"""Directories in which other agents look for skills; of two skills with one name, that of the first is used."""


@hookimpl
def nexus_commands() -> list[Command]:
    """`nexus skill list` and `nexus skill use`."""
    from nexus_core.plugin import Command  # noqa: PLC0415 - a prompt needs no command

    return [Command("skill", "List skills, and read their guides.", "nexus_plugins.skills._cli:app")]


@hookimpl
def nexus_settings() -> list[PluginSettings]:
    """Declare `plugins.skills.tool`, which only the user decides: a program has to run what is offered."""
    from nexus_core.plugin import PluginSettings  # noqa: PLC0415 - the manifest knows the answer

    return [PluginSettings("nexus_plugins.skills._settings:SkillsSettings", protected=("tool",))]


@hookimpl
def nexus_static_sections(request: Request, loaded: Loaded) -> list[Section]:
    """Return the section `## Nexus Environment`: names by category, descriptions, what is ready and what is missing.

    A session's prompt always has it. The form of `ContextLoader` has it only where there are skills.
    """
    if not request.skills and (request.skills is not None or not find_skill_directories(loaded.layers)):
        if not request.is_call:
            return []
        from nexus_plugins.skills._block import empty_section  # noqa: PLC0415 - only sessions need it

        return [empty_section()]
    from nexus_plugins.skills._block import environment_section  # noqa: PLC0415 - most directories have no guides
    from nexus_plugins.skills._capabilities import capabilities_of  # noqa: PLC0415 - as above
    from nexus_plugins.skills._guides import find_guides  # noqa: PLC0415 - as above
    from nexus_plugins.skills.call import is_skill_tool_offered  # noqa: PLC0415 - as above

    capabilities = capabilities_of(find_guides(loaded).guides, request.home, loaded.settings)
    if not capabilities and not request.skills and not request.is_call:
        return []
    return [
        environment_section(capabilities, request.skills, with_tool=is_skill_tool_offered(request, loaded.settings))
    ]


@hookimpl
def nexus_tools(request: Request, loaded: Loaded) -> list[Tool]:
    """Return the tool `read_skill`, if `plugins.skills.tool` is on and there are skills to read."""
    if not loaded.settings.get("plugins.skills.tool") or request.skills == ():
        return []
    from nexus_plugins.skills._capabilities import capabilities_of  # noqa: PLC0415 - off for most
    from nexus_plugins.skills._guides import find_guides  # noqa: PLC0415 - as above
    from nexus_plugins.skills.call import READ_SKILL  # noqa: PLC0415 - as above

    has_any = capabilities_of(find_guides(loaded).guides, request.home, loaded.settings)
    return [READ_SKILL] if has_any else []


@hookimpl
def nexus_diagnose(loaded: Loaded) -> list[Finding]:
    """Guides that cannot be offered, what is odd about others, and settings that name one that is not there."""
    if not loaded.settings.get(DIRECTORY) and not find_skill_directories(loaded.layers):
        return []
    from nexus_plugins.skills._diagnosis import diagnose  # noqa: PLC0415 - only `nexus doctor` asks

    return diagnose(loaded)


def find_skill_directories(layers: Sequence[Layer]) -> list[tuple[Layer, Path]]:
    """Return the directories that may hold skills and exist, with the layer each is read for, by precedence.

    Asked for every prompt: it only looks whether they are there.
    """
    places = ((layer, place) for layer in reversed(_with_own(layers)) for place in _places(layer, layers))
    return [(layer, Path(place)) for layer, place in places if os.path.isdir(place)]  # noqa: PTH112 - never fails


def _with_own(layers: Sequence[Layer]) -> list[Layer]:
    """Return the layers that may have skills, with one for a user who has no Nexus directory yet."""
    usable = [layer for layer in layers if not layer.only_rules and layer.scope != "defaults"]
    home = next((layer.root for layer in layers if layer.scope == "defaults"), None)
    if home is None or any(layer.name == "global" for layer in usable):
        return usable
    from nexus_core.plugin import Layer  # noqa: PLC0415 - most users have one

    return [Layer("global", home, "global"), *usable]


def _places(layer: Layer, layers: Sequence[Layer]) -> Iterator[str]:
    yield f"{layer.directory}/{DIRECTORY}"
    if layer.is_own and layer.name != "global":
        return
    nearest = _home_beside(layer.directory) if layer.is_own else str(layer.project)
    for place in (nearest, *_levels_above(layer, layers)):
        yield from (f"{place}/{tool}/{DIRECTORY}" for tool in OTHER_TOOLS)


def _home_beside(directory: Path) -> str:
    """Return the home directory that belongs to a user's own Nexus directory."""
    return str(directory.parent) if directory.name == OWN_DIRECTORY else os.path.expanduser("~")  # noqa: PTH111 - never fails


def _levels_above(layer: Layer, layers: Sequence[Layer]) -> Iterator[str]:
    """Yield the directories between a working directory and the top of its repository that are no layers."""
    if layer.scope != "local" or not layer.in_repository or layer.boundary is None:
        return
    others = {each.project for each in layers if not each.only_rules}
    for place in layer.project.parents:
        if not place.is_relative_to(layer.boundary):
            return
        if place not in others:
            yield str(place)
