"""Context assembly for LLM agents: prompts, history, tools, and the source of every line.

cli/           the `nexus` command
testing/       fixtures and checks for plugin authors
plugin/        values and helpers that plugin authors import
context/       ContextManager, ContextLoader and the other names of the NEXUS3 interface
adapters/      LangGraph, pydantic-ai and OpenAI Agents SDK
rpc/           many agents in one process, and JSON requests to them
nexus          the facade `Nexus`
agents/        agents that call models and run tools
transfer/      import of transcripts, export and import of sessions
session/       durable conversations with tool calls
compaction/    summaries of earlier turns
request/       one model call from prefix, history and user message
thread/        the steps of a session, and the messages they become
history/       lists of messages: fit, check, repair
memory/        ranked search of past messages, and memories for a new one
ledger/        append-only store of sessions and their steps
layers/        instruction and settings files of a directory
transcripts/   readers for the conversations of other programs
dialects/      message formats of APIs
rendering      sections as prompt text
tokens/        token counters and estimates
host/          plugin manager
hookspecs      hook specifications, the contract with plugins
trust/         approvals of what a project would start or connect to
config/        settings files: parse, merge, validate, edit
text/          safe text: hidden characters, secrets, console
files/         safe reading and atomic writing
errors         exceptions
types/         frozen value types
deprecation    former names that still work
lazy_names     names of a package that are imported when they are first used
runner         one generator for blocking and async callers

A module imports only from those below it. Names in `__all__` are imported when they are first used.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nexus_core._version import __version__
    from nexus_core.agents.agent import Agent, AsyncAgent
    from nexus_core.dialects.registry import get_dialect
    from nexus_core.errors import (
        BudgetError,
        ConfigError,
        ConflictError,
        FileError,
        LedgerError,
        LedgerUnreachableError,
        MessageError,
        MissingExtraError,
        NexusClosedError,
        NexusError,
        OtherDirectoryWarning,
        PendingToolCallsError,
        PluginError,
        ProviderError,
        SessionExistsError,
        SummaryError,
        TurnError,
        UnknownNameError,
        UsageError,
    )
    from nexus_core.history.fit import fit_messages
    from nexus_core.history.fit import fit_messages as fit
    from nexus_core.history.repair import check_messages, repair_messages
    from nexus_core.history.repair import check_messages as check
    from nexus_core.history.repair import repair_messages as repair
    from nexus_core.hookspecs import hookimpl
    from nexus_core.nexus import Nexus
    from nexus_core.session.async_session import AsyncSession
    from nexus_core.session.session import Session
    from nexus_core.types.assembled import AgentResult, AssembledContext, CacheReport
    from nexus_core.types.budget import TokenBudget
    from nexus_core.types.compaction import CompactionReport
    from nexus_core.types.messages import Message, Tool, Usage
    from nexus_core.types.plugins import Finding
    from nexus_core.types.prompt import Placement, Section, Source
    from nexus_core.types.request import Request

_HOMES = {
    "Agent": "agents.agent",
    "AgentResult": "types.assembled",
    "AssembledContext": "types.assembled",
    "AsyncAgent": "agents.agent",
    "AsyncSession": "session.async_session",
    "BudgetError": "errors",
    "CacheReport": "types.assembled",
    "NexusClosedError": "errors",
    "CompactionReport": "types.compaction",
    "ConfigError": "errors",
    "ConflictError": "errors",
    "SessionExistsError": "errors",
    "FileError": "errors",
    "Finding": "types.plugins",
    "LedgerError": "errors",
    "Message": "types.messages",
    "MessageError": "errors",
    "MissingExtraError": "errors",
    "Nexus": "nexus",
    "NexusError": "errors",
    "OtherDirectoryWarning": "errors",
    "PendingToolCallsError": "errors",
    "Placement": "types.prompt",
    "PluginError": "errors",
    "ProviderError": "errors",
    "Request": "types.request",
    "Section": "types.prompt",
    "Session": "session.session",
    "Source": "types.prompt",
    "SummaryError": "errors",
    "TokenBudget": "types.budget",
    "Tool": "types.messages",
    "TurnError": "errors",
    "UnknownNameError": "errors",
    "LedgerUnreachableError": "errors",
    "Usage": "types.messages",
    "UsageError": "errors",
    "__version__": "_version",
    "check": "history.repair",
    "check_messages": "history.repair",
    "fit": "history.fit",
    "fit_messages": "history.fit",
    "get_dialect": "dialects.registry",
    "hookimpl": "hookspecs",
    "repair": "history.repair",
    "repair_messages": "history.repair",
}

__all__ = [
    "Agent",
    "AgentResult",
    "AssembledContext",
    "AsyncAgent",
    "AsyncSession",
    "BudgetError",
    "CacheReport",
    "CompactionReport",
    "ConfigError",
    "ConflictError",
    "FileError",
    "Finding",
    "LedgerError",
    "LedgerUnreachableError",
    "Message",
    "MessageError",
    "MissingExtraError",
    "Nexus",
    "NexusClosedError",
    "NexusError",
    "OtherDirectoryWarning",
    "PendingToolCallsError",
    "Placement",
    "PluginError",
    "ProviderError",
    "Request",
    "Section",
    "Session",
    "SessionExistsError",
    "Source",
    "SummaryError",
    "TokenBudget",
    "Tool",
    "TurnError",
    "UnknownNameError",
    "Usage",
    "UsageError",
    "__version__",
    "check",
    "check_messages",
    "fit",
    "fit_messages",
    "get_dialect",
    "hookimpl",
    "repair",
    "repair_messages",
]


_SHORT_NAMES = {"check": "check_messages", "fit": "fit_messages", "repair": "repair_messages"}
"""Short names that stay, and what they stand for."""
_RENAMED = {
    "ClosedError": "NexusClosedError",
    "ExistsError": "SessionExistsError",
    "PendingCalls": "PendingToolCallsError",
    "UnreachableError": "LedgerUnreachableError",
    "dialect": "get_dialect",
}
"""Former names, which work for one more release."""

# Hidden from type checkers, which would otherwise take any misspelt name for an object.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            from nexus_core.deprecation import find_renamed

            return find_renamed(__name__, name, _RENAMED)
        from importlib import import_module

        value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), _SHORT_NAMES.get(name, name))
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
