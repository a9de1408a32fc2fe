"""The tagged dialogue format: four tagged blocks instead of a message list.

_blocks.py      the four blocks: capabilities, shared memory, friend, this moment
_renderer.py    the renderer `tagged` for sessions, and the identity
_builder.py     `ContextBuilder` for programs without sessions, and the services that it uses
_parser.py      parser of the blocks
_options.py     options and phrases of each language
_settings.py    settings under `plugins.tagged`

Without a session: `ContextBuilder`, `PromptManager`, `MemoryFormatter`, `FriendsInfoFormatter`, `MomentFormatter`.
`parse` reads the blocks back.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from nexus_core import hookimpl

if TYPE_CHECKING:
    from nexus_core.plugin import PluginSettings, Renderer
    from nexus_plugins.tagged._blocks import FriendsInfoFormatter, MemoryFormatter, MomentFormatter
    from nexus_plugins.tagged._builder import REQUEST, RESPONSE, Bus, BusMessage, ContextBuilder, PromptManager, Run
    from nexus_plugins.tagged._parser import Dialogue, parse
    from nexus_plugins.tagged._renderer import CORE_IDENTITY

_MODULES = {
    "CORE_IDENTITY": "_renderer",
    "REQUEST": "_builder",
    "RESPONSE": "_builder",
    "Bus": "_builder",
    "BusMessage": "_builder",
    "ContextBuilder": "_builder",
    "Dialogue": "_parser",
    "FriendsInfoFormatter": "_blocks",
    "MemoryFormatter": "_blocks",
    "MomentFormatter": "_blocks",
    "PromptManager": "_builder",
    "Run": "_builder",
    "parse": "_parser",
}
"""The private module of each public name, imported on first use."""

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
    """Declare `plugins.tagged`: language, number of remembered messages, form, file of the identity."""
    from nexus_core.plugin import PluginSettings

    return [PluginSettings("nexus_plugins.tagged._settings:TaggedSettings")]


@hookimpl
def nexus_renderers() -> list[Renderer]:
    """Return the renderer `tagged`."""
    from nexus_plugins.tagged._renderer import make_renderer

    return [make_renderer()]


# Hidden from type checkers, which would otherwise accept any misspelt name.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name in _MODULES:
            return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
