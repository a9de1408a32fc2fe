"""Skills: guides in `skills/<name>/SKILL.md`, listed in the prompt.

call.py          runs the tool `read_skill` in a program's agent loop (public)
_guides.py       skill guides: discovery, front matter, requirements, past use
_section.py      the prompt section `Nexus Environment`
_memories.py     the memory source `skills`
_diagnosis.py    findings of `nexus doctor`
_settings.py     settings under `plugins.skills`
_cli.py          the commands `nexus skill …`

They are found in `.nexus3`, `.claude`, `.agents` and `.codex`, in the user's home and in the project.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from nexus_core import hookimpl

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager

    from nexus_core import Finding, Nexus, Request, Section, Tool
    from nexus_core.plugin import Command, Layer, LoadedLayers, MemorySource, PluginSettings, Toolset
    from nexus_plugins.skills.call import SkillGuideTool

SKILLS_DIRECTORY = "skills"
OWN_DIRECTORY = ".nexus3"
OTHER_TOOL_DIRECTORIES = (".claude", ".agents", ".codex")
"""Directories in which other agents look for skills; of two skills with one name, that of the first is used."""


@hookimpl
def nexus_commands() -> list[Command]:
    """Return the command group `nexus skill`."""
    from nexus_core.plugin import Command

    return [Command("skill", "List skills and print their guides.", "nexus_plugins.skills._cli:app")]


@hookimpl
def nexus_settings() -> list[PluginSettings]:
    """Declare `plugins.skills.tool`. Only the user may set it, because a program must run the tool."""
    from nexus_core.plugin import PluginSettings

    return [PluginSettings("nexus_plugins.skills._settings:SkillsSettings", protected=("tool",))]


@hookimpl
def nexus_static_sections(request: Request, loaded: LoadedLayers) -> list[Section]:
    """Return the section `## Nexus Environment`: skills by category, descriptions and missing requirements.

    A session's prompt always has it. The prompt of `ContextLoader` has it only if there are skills.
    """
    if not request.skills and (request.skills is not None or not find_skill_directories(loaded.layers)):
        if not request.is_call:
            return []
        from nexus_plugins.skills._section import build_empty_section

        return [build_empty_section()]
    from nexus_plugins.skills._guides import find_skills
    from nexus_plugins.skills._section import build_environment_section
    from nexus_plugins.skills.call import is_skill_tool_offered

    capabilities = find_skills(loaded, request.home)
    if not capabilities and not request.skills and not request.is_call:
        return []
    return [
        build_environment_section(
            capabilities, request.skills, with_tool=is_skill_tool_offered(request, loaded.settings)
        )
    ]


@hookimpl
def nexus_toolsets() -> list[Toolset]:
    """Return what runs the tool `read_skill`."""
    from nexus_core.plugin import Toolset

    return [Toolset("skills", open=_open_guides)]


def _open_guides(nexus: Nexus) -> AbstractContextManager[SkillGuideTool]:
    from contextlib import nullcontext

    from nexus_plugins.skills.call import SkillGuideTool

    return nullcontext(SkillGuideTool(nexus))


@hookimpl
def nexus_tools(request: Request, loaded: LoadedLayers) -> list[Tool]:
    """Return the tool `read_skill`, if `plugins.skills.tool` is on and there are skills to read."""
    if not loaded.settings.get("plugins.skills.tool") or request.skills == ():
        return []
    from nexus_plugins.skills._guides import find_skills
    from nexus_plugins.skills.call import READ_SKILL

    return [READ_SKILL] if find_skills(loaded, request.home) else []


@hookimpl
def nexus_memory_sources(request: Request, loaded: LoadedLayers) -> list[MemorySource]:
    """Return the source `skills`: guides whose description matches a message."""
    if request.skills == () or not find_skill_directories(loaded.layers):
        return []
    from nexus_core.plugin import MemorySource
    from nexus_plugins.skills._memories import list_skill_memories, search_skill_memories

    search, list_all = (partial(each, request, loaded) for each in (search_skill_memories, list_skill_memories))
    return [MemorySource(name="skills", search=search, list_all=list_all)]


@hookimpl
def nexus_diagnose(loaded: LoadedLayers) -> list[Finding]:
    """Report unusable and odd guides, and settings that name unknown skills."""
    if not loaded.settings.get(SKILLS_DIRECTORY) and not find_skill_directories(loaded.layers):
        return []
    from nexus_plugins.skills._diagnosis import diagnose_skills

    return diagnose_skills(loaded)


def find_skill_directories(layers: Sequence[Layer]) -> list[tuple[Layer, Path]]:
    """Return the existing directories that may hold skills, each with its layer, by precedence.

    Called for every prompt, so it only checks that they exist.
    """
    candidates = (
        (layer, directory)
        for layer in reversed(_add_user_layer(layers))
        for directory in _list_search_directories(layer, layers)
    )
    return [(layer, Path(each)) for layer, each in candidates if os.path.isdir(each)]  # noqa: PTH112 - never fails


def _add_user_layer(layers: Sequence[Layer]) -> list[Layer]:
    """Return the layers that may have skills, with one for a user who has no Nexus directory yet."""
    usable = [layer for layer in layers if not layer.only_rules and layer.scope != "defaults"]
    home = next((layer.root for layer in layers if layer.scope == "defaults"), None)
    if home is None or any(layer.name == "global" for layer in usable):
        return usable
    from nexus_core.plugin import Layer

    return [Layer("global", home, "global"), *usable]


def _list_search_directories(layer: Layer, layers: Sequence[Layer]) -> Iterator[str]:
    yield f"{layer.directory}/{SKILLS_DIRECTORY}"
    if layer.is_own and layer.name != "global":
        return
    nearest = _find_home(layer.directory) if layer.is_own else str(layer.project)
    for directory in (nearest, *_list_parent_directories(layer, layers)):
        yield from (f"{directory}/{tool}/{SKILLS_DIRECTORY}" for tool in OTHER_TOOL_DIRECTORIES)


def _find_home(directory: Path) -> str:
    """Return the home directory that belongs to a user's own Nexus directory."""
    return str(directory.parent) if directory.name == OWN_DIRECTORY else os.path.expanduser("~")  # noqa: PTH111 - never fails


def _list_parent_directories(layer: Layer, layers: Sequence[Layer]) -> Iterator[str]:
    """Yield the directories above a working directory, up to its repository, that are not layers."""
    if layer.scope != "local" or not layer.in_repository or layer.boundary is None:
        return
    others = {each.project for each in layers if not each.only_rules}
    for directory in layer.project.parents:
        if not directory.is_relative_to(layer.boundary):
            return
        if directory not in others:
            yield str(directory)
