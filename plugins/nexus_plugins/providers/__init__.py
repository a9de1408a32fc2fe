"""Models behind HTTP endpoints, for agents and summaries, and summaries by a program.

_providers.py        providers of models for agents
_endpoint.py         endpoints of the settings, and HTTP requests to them, with retries and time-outs
_connection_pool.py  connections that all requests of the process share
_formats.py          request bodies, replies and stream events of the four APIs
_command.py          a summarizer that runs a program
_summarizers.py      the summarizers that the settings name, and findings about them
_secrets.py          API keys from environment variables, masked in every text
_settings.py         settings under `plugins.providers`

Keys come from environment variables that the settings name. Only the user's own settings say where anything goes.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from nexus_core import hookimpl
from nexus_core.plugin import PluginSettings

if TYPE_CHECKING:
    from nexus_core import Finding
    from nexus_core.plugin import LoadedLayers, Provider, Summarizer
    from nexus_plugins.providers._command import CommandError
    from nexus_plugins.providers._endpoint import EndpointError

_MODULES = {"CommandError": "_command", "EndpointError": "_endpoint"}
"""The private module of each public name, imported on first use."""

__all__ = ["CommandError", "EndpointError"]


@hookimpl
def nexus_settings() -> list[PluginSettings]:
    """Declare `plugins.providers`: endpoints by name, and environment variables of the command."""
    return [
        PluginSettings(
            "nexus_plugins.providers._settings:ProvidersSettings", protected=("endpoints", "command_variables")
        )
    ]


@hookimpl
def nexus_summarizers(loaded: LoadedLayers) -> list[Summarizer]:
    """Return a summarizer for each endpoint, and `command` if the settings name a program."""
    if not _has_summarizers(loaded):
        return []
    from nexus_plugins.providers._summarizers import build_summarizers

    return list(build_summarizers(loaded))


@hookimpl
def nexus_providers(loaded: LoadedLayers) -> list[Provider]:
    """Return `openai`, `responses`, `anthropic` and `gemini`, and a provider for each endpoint. Connects to none."""
    from nexus_plugins.providers._providers import build_providers

    return list(build_providers(loaded))


@hookimpl
def nexus_diagnose(loaded: LoadedLayers) -> list[Finding]:
    """Report keys that are not set, a missing program and a missing library. Sends no request."""
    if not _has_summarizers(loaded):
        return []
    from nexus_plugins.providers._summarizers import diagnose_providers

    return list(diagnose_providers(loaded))


def _has_summarizers(loaded: LoadedLayers) -> bool:
    """Return True if the settings define an endpoint or a command."""
    return any(loaded.settings.get(key) for key in ("plugins.providers.endpoints", "compaction.command"))


# Hidden from type checkers, which would otherwise accept any misspelt name.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name in _MODULES:
            return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
