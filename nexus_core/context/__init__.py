"""Names for programs that load and manage context by themselves: loaders, managers, counters and messages.

prompt_loader.py    a personal prompt, a project's and the environment as one prompt
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from nexus_core.context.prompt_loader import (
    FilePromptSource,
    LoadedPrompt,
    PromptLoader,
    PromptSource,
    get_system_info,
)

if TYPE_CHECKING:
    import os

    from nexus_core.compaction.prompts import build_summarize_prompt
    from nexus_core.compaction.selection import CompactionResult, select_messages_for_compaction
    from nexus_core.compaction.summary import create_summary_message
    from nexus_core.config.merging import deep_merge
    from nexus_core.config.schema import Config, ContextConfig
    from nexus_core.history.manager import ContextManager
    from nexus_core.layers.context import ContextSources, LoadedContext, LoadedSource
    from nexus_core.layers.context_layer import ContextLayer
    from nexus_core.tokens.counter import TextCounter
    from nexus_core.tokens.counters import get_token_counter
    from nexus_core.tokens.estimator import SimpleTokenCounter
    from nexus_core.values.agent_result import AgentResult
    from nexus_core.values.assembled import AssembledContext
    from nexus_core.values.budget import TokenBudget
    from nexus_core.values.conversation import Conversation
    from nexus_core.values.counting import TokenCounter
    from nexus_core.values.message import Message
    from nexus_core.values.parts import File, Image, Opaque, Reasoning, Text, ToolCall, ToolResult
    from nexus_core.values.servers import MCPServerConfig, MCPServerWithOrigin

    class TiktokenCounter(TextCounter):
        """Described to type checkers; the class itself is a plugin's, and the core imports no plugin."""

        encoding_name: str

        def __init__(self, encoding_name: str = ..., *, exact: bool = ...) -> None: ...


__all__ = [
    "AgentResult",
    "AssembledContext",
    "CompactionResult",
    "Config",
    "ContextConfig",
    "ContextLayer",
    "ContextLoader",
    "ContextManager",
    "ContextSources",
    "Conversation",
    "File",
    "FilePromptSource",
    "Image",
    "LoadedContext",
    "LoadedPrompt",
    "LoadedSource",
    "MCPServerConfig",
    "MCPServerWithOrigin",
    "Message",
    "Opaque",
    "PromptLoader",
    "PromptSource",
    "Reasoning",
    "SimpleTokenCounter",
    "Text",
    "TiktokenCounter",
    "TokenBudget",
    "TokenCounter",
    "ToolCall",
    "ToolResult",
    "build_summarize_prompt",
    "create_summary_message",
    "deep_merge",
    "get_system_info",
    "get_token_counter",
    "select_messages_for_compaction",
]


# Each is imported by those who ask for it: pydantic for the settings, all of Nexus for loading, neither for counting.
_HOMES = {
    "AgentResult": "values.agent_result",
    "AssembledContext": "values.assembled",
    "CompactionResult": "compaction.selection",
    "Config": "config.schema",
    "ContextConfig": "config.schema",
    "ContextLayer": "layers.context_layer",
    "ContextManager": "history.manager",
    "ContextSources": "layers.context",
    "Conversation": "values.conversation",
    "File": "values.parts",
    "Image": "values.parts",
    "LoadedContext": "layers.context",
    "LoadedSource": "layers.context",
    "MCPServerConfig": "values.servers",
    "MCPServerWithOrigin": "values.servers",
    "Message": "values.message",
    "Opaque": "values.parts",
    "Reasoning": "values.parts",
    "SimpleTokenCounter": "tokens.estimator",
    "Text": "values.parts",
    "TokenBudget": "values.budget",
    "TokenCounter": "values.counting",
    "ToolCall": "values.parts",
    "ToolResult": "values.parts",
    "build_summarize_prompt": "compaction.prompts",
    "create_summary_message": "compaction.summary",
    "deep_merge": "config.merging",
    "get_token_counter": "tokens.counters",
    "select_messages_for_compaction": "compaction.selection",
}


# Hidden from type checkers, which would otherwise take any misspelt name for an object.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name == "TiktokenCounter":
            from nexus_core.host.default import load_plugin  # noqa: PLC0415 - only those who ask for it

            value = getattr(load_plugin("tiktoken_counter"), name)
        elif name in _HOMES:
            value = getattr(import_module(f"nexus_core.{_HOMES[name]}"), name)
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})


class ContextLoader:
    """Loads everything for a directory: `ContextLoader(cwd).load()` or `ContextLoader().load(cwd)`."""

    def __init__(self, cwd: str | os.PathLike[str] | None = None) -> None:
        self._cwd = cwd

    def load(self, cwd: str | os.PathLike[str] | None = None) -> LoadedContext:
        """Find and merge all layers, fresh from disk, for an agent in a REPL."""
        from nexus_core.nexus import Nexus  # noqa: PLC0415 - as above

        place = cwd if cwd is not None else self._cwd if self._cwd is not None else "."
        return Nexus(place).context(mode="repl")
