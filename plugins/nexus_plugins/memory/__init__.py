"""Memory sources: earlier turns, notes in files, and the user's rules.

call.py            runs the tool `recall` in a program's agent loop (public)
_episodes.py       turns of other sessions
_notes.py          notes in `memory/*.md` of the layers: read, write, remove
_preferences.py    rules in user messages of the ledger
_settings.py       settings under `plugins.memory`
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from nexus_core import hookimpl

if TYPE_CHECKING:
    from nexus_core import Finding, Request, Tool
    from nexus_core.plugin import Ledger, LoadedLayers, MemorySource, PluginSettings

NOTES_DIRECTORY = "memory"
"""The directory in `.nexus3` of the user and of a project."""


@hookimpl
def nexus_settings() -> list[PluginSettings]:
    """Declare `plugins.memory.tool`, which only the user may set.

    The program must run the tool.
    """
    from nexus_core.plugin import PluginSettings

    return [PluginSettings("nexus_plugins.memory._settings:MemorySettings", protected=("tool",))]


@hookimpl
def nexus_tools(loaded: LoadedLayers) -> list[Tool]:
    """Return the tool `recall`, if `plugins.memory.tool` is on."""
    if loaded.settings.get("plugins.memory.tool") is not True:
        return []
    from nexus_plugins.memory.call import RECALL

    return [RECALL]


@hookimpl
def nexus_memory_sources(request: Request, loaded: LoadedLayers, ledger: Ledger) -> list[MemorySource]:
    """Return the sources `episodes`, `notes` and `preferences`."""
    from nexus_core.plugin import MemorySource
    from nexus_core.plugin.memory import STEP_FACETS
    from nexus_plugins.memory._episodes import search_episodes
    from nexus_plugins.memory._notes import add_note, diagnose_notes, list_notes, remove_note, search_notes
    from nexus_plugins.memory._preferences import list_preferences, search_preferences

    return [
        MemorySource(name="episodes", search=partial(search_episodes, ledger), facets=STEP_FACETS),
        MemorySource(
            name="notes",
            search=partial(search_notes, request, loaded),
            list_all=partial(list_notes, request, loaded),
            add=partial(add_note, request),
            remove=partial(remove_note, request, loaded),
            diagnose=partial(diagnose_notes, request, loaded),
        ),
        MemorySource(
            name="preferences",
            search=partial(search_preferences, ledger),
            list_all=partial(list_preferences, ledger),
            facets=("rule",),
        ),
    ]


@hookimpl
def nexus_diagnose(request: Request, loaded: LoadedLayers) -> list[Finding]:
    """Report notes that cannot be used, and those that were forgotten."""
    directories = [request.home, *(layer.directory for layer in loaded.layers)]
    if not any(os.path.isdir(f"{each}/{NOTES_DIRECTORY}") for each in directories):  # noqa: PTH112 - never fails
        return []
    from nexus_plugins.memory._notes import diagnose_notes

    return diagnose_notes(request, loaded)
