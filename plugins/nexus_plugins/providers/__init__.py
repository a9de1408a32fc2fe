"""Asks models behind an HTTP API, or a program, for summaries: OpenAI's chat completions, Anthropic's messages.

Keys come from environment variables that the settings name. Only the user's own settings say where anything goes.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from nexus_core import hookimpl
from nexus_core.plugin import PluginSettings

if TYPE_CHECKING:
    from nexus_core import Finding
    from nexus_core.plugin import Loaded, Summariser
    from nexus_plugins.providers._errors import CommandError, EndpointError

__all__ = ["CommandError", "EndpointError"]


@hookimpl
def nexus_settings() -> list[PluginSettings]:
    """`plugins.providers`: endpoints by name, and what a command may know of the environment."""
    return [
        PluginSettings(
            "nexus_plugins.providers._settings:ProvidersSettings", protected=("endpoints", "command_variables")
        )
    ]


@hookimpl
def nexus_summarisers(loaded: Loaded) -> list[Summariser]:
    """Each endpoint under its name, and `command` where the settings name a program."""
    if not _are_named(loaded):
        return []
    from nexus_plugins.providers._choosing import choose_summarisers  # noqa: PLC0415 - it imports pydantic

    return list(choose_summarisers(loaded))


@hookimpl
def nexus_diagnose(loaded: Loaded) -> list[Finding]:
    """Keys that are not set, a program that is not there, a library that is missing; nobody is asked anything."""
    if not _are_named(loaded):
        return []
    from nexus_plugins.providers._diagnosis import diagnose  # noqa: PLC0415 - as above

    return list(diagnose(loaded))


def _are_named(loaded: Loaded) -> bool:
    """Whether the settings name anybody; most do not."""
    return any(loaded.settings.get(key) for key in ("plugins.providers.endpoints", "compaction.command"))


# Hidden from type checkers, which would otherwise take any misspelt name for an object.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name in __all__:
            return getattr(import_module(f"{__name__}._errors"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
