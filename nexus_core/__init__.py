"""Nexus assembles what a language model reads, and knows where each piece came from.

values/, errors     what everything speaks in
text/, files/       safe text and safe files, by which anything enters or leaves
config/             settings: parsed, merged with origins, checked; trust/ is what the user has approved
hookspecs/          the contract with plugins; host/ is the machine that holds both sides to it
layers/             places on disk become texts and settings; rendering/ turns sections into a prompt
dialects/           each API's messages, read into neutral ones and written back; tokens/ counts them
history/            conversations: grouped, repaired, made to fit, kept; compaction/: earlier turns become a summary
assembly/           what one call is put together from; session/: a tool loop that outlives its program
nexus               the facade over all of it; context has the names other programs know it by
adapters/           the interfaces of other frameworks: OpenAI Agents SDK, LangGraph
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
        ConflictError,
        ExistsError,
        FileError,
        LedgerError,
        MessageError,
        MissingExtraError,
        NexusError,
        OtherDirectoryWarning,
        PendingCalls,
        PluginError,
        SummaryError,
        TurnError,
        UnknownNameError,
        UnreachableError,
        UsageError,
    )
    from nexus_core.history.check import check
    from nexus_core.history.fit import fit
    from nexus_core.history.repair import repair
    from nexus_core.hookspecs import hookimpl
    from nexus_core.nexus import Nexus
    from nexus_core.session.async_session import AsyncSession
    from nexus_core.session.session import Session
    from nexus_core.values.agent_result import AgentResult
    from nexus_core.values.assembled import AssembledContext
    from nexus_core.values.budget import TokenBudget
    from nexus_core.values.cache import CacheReport
    from nexus_core.values.compaction import CompactionReport
    from nexus_core.values.conversation import Tool, Usage
    from nexus_core.values.finding import Finding
    from nexus_core.values.message import Message
    from nexus_core.values.placement import Placement
    from nexus_core.values.request import Request
    from nexus_core.values.section import Section
    from nexus_core.values.source import Source

_HOMES = {
    "AgentResult": "values.agent_result",
    "AssembledContext": "values.assembled",
    "AsyncSession": "session.async_session",
    "BudgetError": "errors",
    "CacheReport": "values.cache",
    "ClosedError": "errors",
    "CompactionReport": "values.compaction",
    "ConfigError": "errors",
    "ConflictError": "errors",
    "ExistsError": "errors",
    "FileError": "errors",
    "Finding": "values.finding",
    "LedgerError": "errors",
    "Message": "values.message",
    "MessageError": "errors",
    "MissingExtraError": "errors",
    "Nexus": "nexus",
    "NexusError": "errors",
    "OtherDirectoryWarning": "errors",
    "PendingCalls": "errors",
    "Placement": "values.placement",
    "PluginError": "errors",
    "Request": "values.request",
    "Section": "values.section",
    "Session": "session.session",
    "Source": "values.source",
    "SummaryError": "errors",
    "TokenBudget": "values.budget",
    "Tool": "values.conversation",
    "TurnError": "errors",
    "UnknownNameError": "errors",
    "UnreachableError": "errors",
    "Usage": "values.conversation",
    "UsageError": "errors",
    "__version__": "_version",
    "check": "history.check",
    "dialect": "dialects.finding",
    "fit": "history.fit",
    "hookimpl": "hookspecs",
    "repair": "history.repair",
}

__all__ = [
    "AgentResult",
    "AssembledContext",
    "AsyncSession",
    "BudgetError",
    "CacheReport",
    "ClosedError",
    "CompactionReport",
    "ConfigError",
    "ConflictError",
    "ExistsError",
    "FileError",
    "Finding",
    "LedgerError",
    "Message",
    "MessageError",
    "MissingExtraError",
    "Nexus",
    "NexusError",
    "OtherDirectoryWarning",
    "PendingCalls",
    "Placement",
    "PluginError",
    "Request",
    "Section",
    "Session",
    "Source",
    "SummaryError",
    "TokenBudget",
    "Tool",
    "TurnError",
    "UnknownNameError",
    "UnreachableError",
    "Usage",
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
