"""The tagged dialogue format: an identity and four tagged blocks in the place of a list of alternating messages.

The renderer `tagged` puts a session into it. The parts can be used without one: `ContextBuilder`, `PromptManager`,
`MemoryFormatter`, `FriendsInfoFormatter`, `MomentFormatter`; `parse` reads the blocks back.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from nexus_core import hookimpl

if TYPE_CHECKING:
    from nexus_core.plugin import PluginSettings, Renderer
    from nexus_plugins.tagged._builder import ContextBuilder
    from nexus_plugins.tagged._bus import REQUEST, RESPONSE, Bus, BusMessage, Run
    from nexus_plugins.tagged._friends import FriendsInfoFormatter
    from nexus_plugins.tagged._identity import CORE_IDENTITY
    from nexus_plugins.tagged._memory import MemoryFormatter
    from nexus_plugins.tagged._moment import MomentFormatter
    from nexus_plugins.tagged._parsing import Dialogue, parse
    from nexus_plugins.tagged._prompts import PromptManager

_HOMES = {
    "_builder": ("ContextBuilder",),
    "_bus": ("Bus", "BusMessage", "REQUEST", "RESPONSE", "Run"),
    "_friends": ("FriendsInfoFormatter",),
    "_identity": ("CORE_IDENTITY",),
    "_memory": ("MemoryFormatter",),
    "_moment": ("MomentFormatter",),
    "_parsing": ("Dialogue", "parse"),
    "_prompts": ("PromptManager",),
}

__all__ = [
    "CORE_IDENTITY",
    "REQUEST",
    "RESPONSE",
    "Bus",
    "BusMessage",
    "ContextBuilder",
    "Dialogue",
    "FriendsInfoFormatter",
    "MemoryFormatter",
    "MomentFormatter",
    "PromptManager",
    "Run",
    "parse",
]


@hookimpl
def nexus_settings() -> list[PluginSettings]:
    """`plugins.tagged`: language, how much is remembered, one message or five, the file of the identity."""
    from nexus_core.plugin import PluginSettings  # noqa: PLC0415 - the manifest knows the answer

    return [PluginSettings("nexus_plugins.tagged._settings:TaggedSettings")]


@hookimpl
def nexus_renderers() -> list[Renderer]:
    """The renderer `tagged`."""
    from nexus_plugins.tagged._renderer import make_renderer  # noqa: PLC0415 - most prompts are labelled

    return [make_renderer()]


# Hidden from type checkers, which would otherwise take any misspelt name for an object.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        for module, names in _HOMES.items():
            if name in names:
                return getattr(import_module(f"{__name__}.{module}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
