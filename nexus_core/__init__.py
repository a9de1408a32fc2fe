"""Nexus assembles what a language model reads, and knows where each piece came from.

values/, errors     what everything speaks in
text/, files/       safe text and safe files, by which anything enters or leaves
config/             settings: parsed, merged with origins, checked; trust/ is what the user has approved
hookspecs           the contract with plugins; host/ is the machine that holds both sides to it
layers/             places on disk become texts and settings; rendering/ turns sections into a prompt
dialects/           each API's messages, read into neutral ones and written back; tokens/ counts them
history/            conversations: grouped, repaired, made to fit, kept
session/            a tool loop that outlives its program
nexus               the facade over all of it; context has the names other programs know it by
plugin, testing/    what authors of plugins import, and what they test with
cli/                the `nexus` command

Everything named in __all__ is imported when it is first used, so that `import nexus_core` costs next to nothing.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nexus_core._version import __version__
    from nexus_core.dialects.finding import dialect
    from nexus_core.errors import (
        BudgetError,
        ClosedError,
        ConfigError,
        FileError,
        MessageError,
        MissingExtraError,
        NexusError,
        PluginError,
        UnknownNameError,
        UsageError,
    )
    from nexus_core.history.check import check
    from nexus_core.history.fit import fit
    from nexus_core.history.repair import repair
    from nexus_core.hookspecs import hookimpl
    from nexus_core.nexus import Nexus
    from nexus_core.values.budget import Truncation
    from nexus_core.values.command import Command
    from nexus_core.values.counting import Model
    from nexus_core.values.declarations import InitFile, MergePolicy, PluginSettings
    from nexus_core.values.events import HookCall, Problem
    from nexus_core.values.extra import Extra
    from nexus_core.values.finding import Finding
    from nexus_core.values.layer import Layer, LayerConfig, LayerText, Skipped
    from nexus_core.values.loaded import Loaded
    from nexus_core.values.message import Message
    from nexus_core.values.piece import Piece
    from nexus_core.values.plugin import PluginInfo
    from nexus_core.values.request import Request
    from nexus_core.values.section import Section
    from nexus_core.values.servers import MCPServerConfig, MCPServerWithOrigin
    from nexus_core.values.source import Source

_HOMES = {
    "BudgetError": "errors",
    "ClosedError": "errors",
    "Command": "values.command",
    "ConfigError": "errors",
    "Extra": "values.extra",
    "FileError": "errors",
    "Finding": "values.finding",
    "HookCall": "values.events",
    "InitFile": "values.declarations",
    "Layer": "values.layer",
    "LayerConfig": "values.layer",
    "LayerText": "values.layer",
    "Loaded": "values.loaded",
    "MCPServerConfig": "values.servers",
    "MCPServerWithOrigin": "values.servers",
    "MergePolicy": "values.declarations",
    "Message": "values.message",
    "MessageError": "errors",
    "MissingExtraError": "errors",
    "Model": "values.counting",
    "Nexus": "nexus",
    "NexusError": "errors",
    "Piece": "values.piece",
    "PluginError": "errors",
    "PluginInfo": "values.plugin",
    "PluginSettings": "values.declarations",
    "Problem": "values.events",
    "Request": "values.request",
    "Section": "values.section",
    "Skipped": "values.layer",
    "Source": "values.source",
    "Truncation": "values.budget",
    "UnknownNameError": "errors",
    "UsageError": "errors",
    "__version__": "_version",
    "check": "history.check",
    "dialect": "dialects.finding",
    "fit": "history.fit",
    "hookimpl": "hookspecs",
    "repair": "history.repair",
}

__all__ = [
    "BudgetError",
    "ClosedError",
    "Command",
    "ConfigError",
    "Extra",
    "FileError",
    "Finding",
    "HookCall",
    "InitFile",
    "Layer",
    "LayerConfig",
    "LayerText",
    "Loaded",
    "MCPServerConfig",
    "MCPServerWithOrigin",
    "MergePolicy",
    "Message",
    "MessageError",
    "MissingExtraError",
    "Model",
    "Nexus",
    "NexusError",
    "Piece",
    "PluginError",
    "PluginInfo",
    "PluginSettings",
    "Problem",
    "Request",
    "Section",
    "Skipped",
    "Source",
    "Truncation",
    "UnknownNameError",
    "UsageError",
    "__version__",
    "check",
    "dialect",
    "fit",
    "hookimpl",
    "repair",
]


# Hidden from type checkers, which would otherwise take any misspelt name for an object.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module  # noqa: PLC0415 - costs nothing until something is used

        value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
