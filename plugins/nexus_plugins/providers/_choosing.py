"""Whom the settings name."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from nexus_core.plugin import Summariser
from nexus_plugins.providers._asking import EndpointSummariser
from nexus_plugins.providers._command import CommandSummariser
from nexus_plugins.providers._settings import ProvidersSettings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nexus_core.plugin import LayerConfig, Loaded

COMMAND = "compaction.command"
POINTER = "/compaction/command"


def read_settings(loaded: Loaded) -> ProvidersSettings:
    """What stands under `plugins.providers`; only the user's own files have a say in it."""
    return ProvidersSettings.model_validate(loaded.settings.get("plugins.providers") or {})


def choose_summarisers(loaded: Loaded) -> Iterator[Summariser]:
    """A summariser for each endpoint, and `command` where the settings name one."""
    settings = read_settings(loaded)
    model = loaded.settings.get("compaction.model")
    for name, endpoint in settings.endpoints.items():
        asked = EndpointSummariser(name, endpoint, loaded.settings.model_id(model) if isinstance(model, str) else "")
        yield Summariser(name=name, summarise=asked, window=endpoint.window)
    command = find_command(loaded)
    if command is not None:
        asked_for = replace(command, variables=tuple(settings.command_variables))
        yield Summariser(name="command", summarise=asked_for)


def find_command(loaded: Loaded) -> CommandSummariser | None:
    """The program that the settings name: the user's own, or a project's that the user has approved.

    A project's is started in the project, because that is what was approved.
    """
    words = loaded.settings.get(COMMAND)
    config = _config_of(loaded)
    if not isinstance(words, list) or not words or config is None or config.layer is None:
        return None
    layer = config.layer
    approved = "" if layer.is_own else _approved_content(loaded, config)
    if approved is None:
        return None
    program, *arguments = map(str, words)
    if Path(program).name != program:  # a path, and not a name to look for
        base = layer.directory if layer.is_own else layer.project
        program = str(base / os.path.expanduser(program))  # noqa: PTH111 - does not fail without a home
    return CommandSummariser((program, *arguments), None if layer.is_own else layer.project, approved=approved)


def _config_of(loaded: Loaded) -> LayerConfig | None:
    """The file that names the program."""
    origins = loaded.settings.origins.get(POINTER, ())
    paths = {origin.path for origin in origins[:1]}
    return next((config for config in loaded.configs if config.path in paths), None)


def _approved_content(loaded: Loaded, config: LayerConfig) -> str | None:
    """Return the approved content of the program, with the digests of its code; None if it is not approved."""
    path = config.path.resolve()
    parts = (part for part in loaded.active if part.path == path and part.pointer == POINTER)
    return next((part.content for part in parts if part.decision == "allowed"), None)
