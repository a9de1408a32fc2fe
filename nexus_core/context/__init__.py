"""The seeds' interface: their names for loaders, managers, counters and messages.

loader.py           everything for a directory
prompt_loader.py    a personal prompt, a project's and the environment as one prompt
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nexus_core.compaction.plan import CompactionResult, select_messages_for_compaction
    from nexus_core.compaction.prompts import build_summarize_prompt
    from nexus_core.config.merge import deep_merge
    from nexus_core.config.schema import Config, ContextConfig
    from nexus_core.context.loader import ContextLoader
    from nexus_core.context.prompt_loader import (
        FilePromptSource,
        LoadedPrompt,
        PromptLoader,
        PromptSource,
        get_system_info,
    )
    from nexus_core.history.manager import ContextManager
    from nexus_core.layers.context import ContextLayer, ContextSources, LoadedContext, LoadedSource
    from nexus_core.thread.projection import create_summary_message
    from nexus_core.tokens.counters import get_token_counter
    from nexus_core.tokens.estimator import SimpleTokenCounter, TextCounter
    from nexus_core.types.assembled import AgentResult, AssembledContext
    from nexus_core.types.budget import TokenBudget, TokenCounter
    from nexus_core.types.mcp import MCPServerConfig, MCPServerWithOrigin
    from nexus_core.types.messages import (
        Conversation,
        File,
        Image,
        Message,
        Opaque,
        Reasoning,
        Text,
        ToolCall,
        ToolResult,
    )

    class TiktokenCounter(TextCounter):
        """Declaration for type checkers. The class itself belongs to a plugin, and the core imports no plugin."""

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


# Imported on access: pydantic for the settings, all of Nexus for loading, neither for counting.
_HOMES = {
    "AgentResult": "types.assembled",
    "AssembledContext": "types.assembled",
    "CompactionResult": "compaction.plan",
    "Config": "config.schema",
    "ContextConfig": "config.schema",
    "ContextLayer": "layers.context",
    "ContextLoader": "context.loader",
    "ContextManager": "history.manager",
    "ContextSources": "layers.context",
    "Conversation": "types.messages",
    "File": "types.messages",
    "FilePromptSource": "context.prompt_loader",
    "Image": "types.messages",
    "LoadedContext": "layers.context",
    "LoadedPrompt": "context.prompt_loader",
    "LoadedSource": "layers.context",
    "MCPServerConfig": "types.mcp",
    "MCPServerWithOrigin": "types.mcp",
    "Message": "types.messages",
    "Opaque": "types.messages",
    "PromptLoader": "context.prompt_loader",
    "PromptSource": "context.prompt_loader",
    "Reasoning": "types.messages",
    "SimpleTokenCounter": "tokens.estimator",
    "Text": "types.messages",
    "TokenBudget": "types.budget",
    "TokenCounter": "types.budget",
    "ToolCall": "types.messages",
    "ToolResult": "types.messages",
    "build_summarize_prompt": "compaction.prompts",
    "create_summary_message": "thread.projection",
    "deep_merge": "config.merge",
    "get_system_info": "context.prompt_loader",
    "get_token_counter": "tokens.counters",
    "select_messages_for_compaction": "compaction.plan",
}


# Hidden from type checkers, which would otherwise accept any misspelt name.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name == "TiktokenCounter":
            from nexus_core.host.manager import load_plugin

            value = getattr(load_plugin("tiktoken_counter"), name)
        elif name in _HOMES:
            value = getattr(import_module(f"nexus_core.{_HOMES[name]}"), name)
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
