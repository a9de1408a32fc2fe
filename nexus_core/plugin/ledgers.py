"""Helpers for plugins that store or read conversations.

Each name is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.lazy_names import make_lazy

if TYPE_CHECKING:
    from nexus_core.errors import ConflictError, LedgerError, LedgerUnreachableError, SessionExistsError
    from nexus_core.ledger.ledger import StoreLedger
    from nexus_core.ledger.search import excerpt, redacted_text, search_session
    from nexus_core.ledger.store import (
        AliasRow,
        BranchRow,
        DeletionRow,
        ErasedRow,
        HistoryRow,
        ParentRef,
        Salvaged,
        SessionRow,
        StepRow,
        clean_text,
    )
    from nexus_core.ledger.url import without_secret
    from nexus_core.memory.search import SearchResult, StepHit, StepQuery
    from nexus_core.memory.step_index import (
        BranchPart,
        IdSpan,
        IndexedStep,
        IndexedText,
        OwnedSteps,
        find_branch_owners,
        find_owned_steps,
        find_step_directories,
        get_step_directory,
        read_forgotten_steps,
        read_indexed_text,
    )
    from nexus_core.session.replay import restore_tool_offers as tools_offered
    from nexus_core.thread.lookup import find_step
    from nexus_core.thread.state import CallResult, RecordedCall
    from nexus_core.types.ledger import NewStep, SessionRecord
    from nexus_core.types.payloads import (
        CompactionPayload,
        ExternalTurnPayload,
        ForgetPayload,
        InputPayload,
        InterruptedPayload,
        PinPayload,
        RenderedPayload,
        ReplyPayload,
        ResultPayload,
        RevertPayload,
        SessionPayload,
        StepPayload,
        ToolCallKey,
        TranscriptPayload,
    )

_HOMES = {
    "AliasRow": "nexus_core.ledger.store:AliasRow",
    "BranchPart": "nexus_core.memory.step_index:BranchPart",
    "IdSpan": "nexus_core.memory.step_index:IdSpan",
    "SearchResult": "nexus_core.memory.search:SearchResult",
    "StepHit": "nexus_core.memory.search:StepHit",
    "StepQuery": "nexus_core.memory.search:StepQuery",
    "IndexedStep": "nexus_core.memory.step_index:IndexedStep",
    "IndexedText": "nexus_core.memory.step_index:IndexedText",
    "OwnedSteps": "nexus_core.memory.step_index:OwnedSteps",
    "find_branch_owners": "nexus_core.memory.step_index:find_branch_owners",
    "find_owned_steps": "nexus_core.memory.step_index:find_owned_steps",
    "find_step_directories": "nexus_core.memory.step_index:find_step_directories",
    "get_step_directory": "nexus_core.memory.step_index:get_step_directory",
    "read_forgotten_steps": "nexus_core.memory.step_index:read_forgotten_steps",
    "read_indexed_text": "nexus_core.memory.step_index:read_indexed_text",
    "BranchRow": "nexus_core.ledger.store:BranchRow",
    "ToolCallKey": "nexus_core.types.payloads:ToolCallKey",
    "CallResult": "nexus_core.thread.state:CallResult",
    "CompactionPayload": "nexus_core.types.payloads:CompactionPayload",
    "ConflictError": "nexus_core.errors:ConflictError",
    "DeletionRow": "nexus_core.ledger.store:DeletionRow",
    "ErasedRow": "nexus_core.ledger.store:ErasedRow",
    "ForgetPayload": "nexus_core.types.payloads:ForgetPayload",
    "HistoryRow": "nexus_core.ledger.store:HistoryRow",
    "InputPayload": "nexus_core.types.payloads:InputPayload",
    "InterruptedPayload": "nexus_core.types.payloads:InterruptedPayload",
    "LedgerError": "nexus_core.errors:LedgerError",
    "LedgerUnreachableError": "nexus_core.errors:LedgerUnreachableError",
    "NewStep": "nexus_core.types.ledger:NewStep",
    "ParentRef": "nexus_core.ledger.store:ParentRef",
    "PinPayload": "nexus_core.types.payloads:PinPayload",
    "RecordedCall": "nexus_core.thread.state:RecordedCall",
    "RenderedPayload": "nexus_core.types.payloads:RenderedPayload",
    "ReplyPayload": "nexus_core.types.payloads:ReplyPayload",
    "ResultPayload": "nexus_core.types.payloads:ResultPayload",
    "RevertPayload": "nexus_core.types.payloads:RevertPayload",
    "Salvaged": "nexus_core.ledger.store:Salvaged",
    "SessionExistsError": "nexus_core.errors:SessionExistsError",
    "SessionPayload": "nexus_core.types.payloads:SessionPayload",
    "SessionRecord": "nexus_core.types.ledger:SessionRecord",
    "SessionRow": "nexus_core.ledger.store:SessionRow",
    "StepPayload": "nexus_core.types.payloads:StepPayload",
    "StepRow": "nexus_core.ledger.store:StepRow",
    "StoreLedger": "nexus_core.ledger.ledger:StoreLedger",
    "TranscriptPayload": "nexus_core.types.payloads:TranscriptPayload",
    "ExternalTurnPayload": "nexus_core.types.payloads:ExternalTurnPayload",
    "clean_text": "nexus_core.ledger.store:clean_text",
    "excerpt": "nexus_core.ledger.search:excerpt",
    "find_step": "nexus_core.thread.lookup:find_step",
    "redacted_text": "nexus_core.ledger.search:redacted_text",
    "search_session": "nexus_core.ledger.search:search_session",
    "tools_offered": "nexus_core.session.replay:restore_tool_offers",
    "without_secret": "nexus_core.ledger.url:without_secret",
}
"""The definition of each name, as `module:attribute`."""

__all__ = [
    "AliasRow",
    "BranchPart",
    "BranchRow",
    "CallResult",
    "CompactionPayload",
    "ConflictError",
    "DeletionRow",
    "ErasedRow",
    "ExternalTurnPayload",
    "ForgetPayload",
    "HistoryRow",
    "IdSpan",
    "IndexedStep",
    "IndexedText",
    "InputPayload",
    "InterruptedPayload",
    "LedgerError",
    "LedgerUnreachableError",
    "NewStep",
    "OwnedSteps",
    "ParentRef",
    "PinPayload",
    "RecordedCall",
    "RenderedPayload",
    "ReplyPayload",
    "ResultPayload",
    "RevertPayload",
    "Salvaged",
    "SearchResult",
    "SessionExistsError",
    "SessionPayload",
    "SessionRecord",
    "SessionRow",
    "StepHit",
    "StepPayload",
    "StepQuery",
    "StepRow",
    "StoreLedger",
    "ToolCallKey",
    "TranscriptPayload",
    "clean_text",
    "excerpt",
    "find_branch_owners",
    "find_owned_steps",
    "find_step",
    "find_step_directories",
    "get_step_directory",
    "read_forgotten_steps",
    "read_indexed_text",
    "redacted_text",
    "search_session",
    "tools_offered",
    "without_secret",
]

# Hidden from type checkers, which would otherwise accept any misspelt name.
if not TYPE_CHECKING:
    __getattr__, __dir__ = make_lazy(globals(), _HOMES)
