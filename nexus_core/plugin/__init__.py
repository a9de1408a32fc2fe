"""Values and helpers for plugin authors, besides the few names in `nexus_core`.

dialects.py   for plugins that provide a dialect: request bodies, replies, call ids, media
memory.py     for plugins that find memories: search in turns, ranking of other texts, rules of the user
ledgers.py    for plugins that store or read conversations: stores, rows, steps, search
files.py      for plugins that read or write files: layers, repositories, locks, owners
transcripts.py   for plugins that read the transcripts of other programs
text.py       for plugins that pass on text: hidden characters, markers, secrets, front matter
settings.py   for plugins with settings or MCP servers: models, JSON documents, approvals

Each name is imported when it is first used. Names of the last release still work, with a DeprecationWarning.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from nexus_core.lazy_names import make_lazy

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from nexus_core.config.load import read_json
    from nexus_core.files.read import read_text
    from nexus_core.nexus import Nexus
    from nexus_core.text.console import Console
    from nexus_core.text.secrets import redact
    from nexus_core.tokens.counters import open_counter
    from nexus_core.tokens.estimator import TextCounter, estimate
    from nexus_core.tokens.messages import count_messages
    from nexus_core.tokens.tokenizers import find_import_error
    from nexus_core.types.api import Dialect
    from nexus_core.types.budget import GroupSizes, Model, ModelCounter, ModelPrice, TokenCounter, TruncationStrategy
    from nexus_core.types.compaction import (
        CompactionBudget,
        CompactionPlan,
        Summarizer,
        SummaryRequest,
        ThreadGroup,
        ThreadMessage,
        ThreadOutline,
        ThreadTurn,
    )
    from nexus_core.types.layers import Layer, LayerConfig, LayerText, LoadedLayers, SkippedFile
    from nexus_core.types.ledger import Ledger, Step
    from nexus_core.types.memory import Embedder, Memory, MemoryQuery, MemorySource
    from nexus_core.types.messages import File, Image, Opaque, Reasoning, Text, ToolCall, ToolResult
    from nexus_core.types.messages import Part as Part
    from nexus_core.types.messages import ResultPart as ResultPart
    from nexus_core.types.messages import Role as Role
    from nexus_core.types.plugins import Command, Extra, HookCall, PluginInfo, Problem, Toolset
    from nexus_core.types.prompt import AgentRole, ArrangedMessages, ArrangeRequest, PastMessage, Renderer
    from nexus_core.types.providers import (
        CancelSignal,
        Provider,
        ProviderReply,
        ProviderToolCall,
        ProviderUsage,
        ReasoningDelta,
        TextDelta,
    )
    from nexus_core.types.providers import ProviderEvent as ProviderEvent
    from nexus_core.types.settings import InitFile, MergePolicy, PluginSettings, Settings
    from nexus_core.types.settings import InitScope as InitScope
    from nexus_core.types.transcripts import TranscriptLocation, TranscriptReader

_HOMES = {
    "AgentRole": "nexus_core.types.prompt:AgentRole",
    "ArrangeRequest": "nexus_core.types.prompt:ArrangeRequest",
    "ArrangedMessages": "nexus_core.types.prompt:ArrangedMessages",
    "CancelSignal": "nexus_core.types.providers:CancelSignal",
    "Command": "nexus_core.types.plugins:Command",
    "CompactionBudget": "nexus_core.types.compaction:CompactionBudget",
    "CompactionPlan": "nexus_core.types.compaction:CompactionPlan",
    "Console": "nexus_core.text.console:Console",
    "Dialect": "nexus_core.types.api:Dialect",
    "Embedder": "nexus_core.types.memory:Embedder",
    "Extra": "nexus_core.types.plugins:Extra",
    "File": "nexus_core.types.messages:File",
    "GroupSizes": "nexus_core.types.budget:GroupSizes",
    "HookCall": "nexus_core.types.plugins:HookCall",
    "Image": "nexus_core.types.messages:Image",
    "InitFile": "nexus_core.types.settings:InitFile",
    "InitScope": "nexus_core.types.settings:InitScope",
    "Layer": "nexus_core.types.layers:Layer",
    "LayerConfig": "nexus_core.types.layers:LayerConfig",
    "LayerText": "nexus_core.types.layers:LayerText",
    "Ledger": "nexus_core.types.ledger:Ledger",
    "LoadedLayers": "nexus_core.types.layers:LoadedLayers",
    "Memory": "nexus_core.types.memory:Memory",
    "MemoryQuery": "nexus_core.types.memory:MemoryQuery",
    "MemorySource": "nexus_core.types.memory:MemorySource",
    "MergePolicy": "nexus_core.types.settings:MergePolicy",
    "Model": "nexus_core.types.budget:Model",
    "ModelCounter": "nexus_core.types.budget:ModelCounter",
    "ModelPrice": "nexus_core.types.budget:ModelPrice",
    "Opaque": "nexus_core.types.messages:Opaque",
    "Part": "nexus_core.types.messages:Part",
    "PastMessage": "nexus_core.types.prompt:PastMessage",
    "PluginInfo": "nexus_core.types.plugins:PluginInfo",
    "PluginSettings": "nexus_core.types.settings:PluginSettings",
    "Problem": "nexus_core.types.plugins:Problem",
    "Provider": "nexus_core.types.providers:Provider",
    "ProviderEvent": "nexus_core.types.providers:ProviderEvent",
    "ProviderReply": "nexus_core.types.providers:ProviderReply",
    "ProviderToolCall": "nexus_core.types.providers:ProviderToolCall",
    "ProviderUsage": "nexus_core.types.providers:ProviderUsage",
    "Reasoning": "nexus_core.types.messages:Reasoning",
    "ReasoningDelta": "nexus_core.types.providers:ReasoningDelta",
    "Renderer": "nexus_core.types.prompt:Renderer",
    "ResultPart": "nexus_core.types.messages:ResultPart",
    "Role": "nexus_core.types.messages:Role",
    "Settings": "nexus_core.types.settings:Settings",
    "SkippedFile": "nexus_core.types.layers:SkippedFile",
    "Step": "nexus_core.types.ledger:Step",
    "Summarizer": "nexus_core.types.compaction:Summarizer",
    "SummaryRequest": "nexus_core.types.compaction:SummaryRequest",
    "Text": "nexus_core.types.messages:Text",
    "TextCounter": "nexus_core.tokens.estimator:TextCounter",
    "TextDelta": "nexus_core.types.providers:TextDelta",
    "ThreadGroup": "nexus_core.types.compaction:ThreadGroup",
    "ThreadMessage": "nexus_core.types.compaction:ThreadMessage",
    "ThreadOutline": "nexus_core.types.compaction:ThreadOutline",
    "ThreadTurn": "nexus_core.types.compaction:ThreadTurn",
    "TokenCounter": "nexus_core.types.budget:TokenCounter",
    "ToolCall": "nexus_core.types.messages:ToolCall",
    "ToolResult": "nexus_core.types.messages:ToolResult",
    "Toolset": "nexus_core.types.plugins:Toolset",
    "TranscriptLocation": "nexus_core.types.transcripts:TranscriptLocation",
    "TranscriptReader": "nexus_core.types.transcripts:TranscriptReader",
    "TruncationStrategy": "nexus_core.types.budget:TruncationStrategy",
    "count_messages": "nexus_core.tokens.messages:count_messages",
    "estimate": "nexus_core.tokens.estimator:estimate",
    "find_import_error": "nexus_core.tokens.tokenizers:find_import_error",
    "open_counter": "nexus_core.tokens.counters:open_counter",
    "read_json": "nexus_core.config.load:read_json",
    "read_text": "nexus_core.files.read:read_text",
    "redact": "nexus_core.text.secrets:redact",
}
"""The definition of each name, as `module:attribute`."""

__all__ = [
    "AgentRole",
    "ArrangeRequest",
    "ArrangedMessages",
    "CancelSignal",
    "Command",
    "CommandContext",
    "CompactionBudget",
    "CompactionPlan",
    "Console",
    "Dialect",
    "Embedder",
    "Extra",
    "File",
    "GroupSizes",
    "HookCall",
    "Image",
    "InitFile",
    "Layer",
    "LayerConfig",
    "LayerText",
    "Ledger",
    "LoadedLayers",
    "Memory",
    "MemoryQuery",
    "MemorySource",
    "MergePolicy",
    "Model",
    "ModelCounter",
    "ModelPrice",
    "Opaque",
    "PastMessage",
    "PluginInfo",
    "PluginSettings",
    "Problem",
    "Provider",
    "ProviderReply",
    "ProviderToolCall",
    "ProviderUsage",
    "Reasoning",
    "ReasoningDelta",
    "Renderer",
    "Settings",
    "SkippedFile",
    "Step",
    "Summarizer",
    "SummaryRequest",
    "Text",
    "TextCounter",
    "TextDelta",
    "ThreadGroup",
    "ThreadMessage",
    "ThreadOutline",
    "ThreadTurn",
    "TokenCounter",
    "ToolCall",
    "ToolResult",
    "Toolset",
    "TranscriptLocation",
    "TranscriptReader",
    "TruncationStrategy",
    "count_messages",
    "estimate",
    "find_import_error",
    "open_counter",
    "read_json",
    "read_text",
    "redact",
]

# Hidden from type checkers, which would otherwise accept any misspelt name.
if not TYPE_CHECKING:
    _get_attribute, __dir__ = make_lazy(globals(), _HOMES)

    def __getattr__(name: str) -> object:
        if name in _HOMES:
            return _get_attribute(name)
        from nexus_core.plugin._renamed import RENAMED

        home = RENAMED.get(name)
        if home is None:
            return _get_attribute(name)  # raises AttributeError
        from nexus_core.deprecation import warn_renamed

        module, _, new = home.partition(":")
        warn_renamed(f"nexus_core.plugin.{name}", f"`from {module} import {new}`")
        return getattr(import_module(module), new)


class CommandContext(Protocol):
    """Protocol: `ctx.obj` of a plugin's command.

    Attributes:
        console: Prints data to standard output and messages to standard error, with control characters escaped.
    """

    console: Console

    @property
    def cwd(self) -> Path:
        """The directory the command is about: `-C DIR`, else the current one."""

    def nexus(self) -> AbstractContextManager[Nexus]:
        """Open a Nexus for `cwd` that is closed at the end. Problems with plugins are printed."""
