"""Helpers for plugins that store or read conversations.

Each name is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.plugin._lazy import make_lazy

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
    )
    from nexus_core.ledger.url import without_secret
    from nexus_core.session.replay import restore_tool_offers as tools_offered
    from nexus_core.thread.lookup import find_step
    from nexus_core.thread.turns import CallResult, RecordedCall
    from nexus_core.types.ledger import NewStep, SessionRecord

_HOMES = {
    "AliasRow": "nexus_core.ledger.store:AliasRow",
    "BranchRow": "nexus_core.ledger.store:BranchRow",
    "CallResult": "nexus_core.thread.turns:CallResult",
    "ConflictError": "nexus_core.errors:ConflictError",
    "DeletionRow": "nexus_core.ledger.store:DeletionRow",
    "ErasedRow": "nexus_core.ledger.store:ErasedRow",
    "HistoryRow": "nexus_core.ledger.store:HistoryRow",
    "LedgerError": "nexus_core.errors:LedgerError",
    "LedgerUnreachableError": "nexus_core.errors:LedgerUnreachableError",
    "NewStep": "nexus_core.types.ledger:NewStep",
    "ParentRef": "nexus_core.ledger.store:ParentRef",
    "RecordedCall": "nexus_core.thread.turns:RecordedCall",
    "Salvaged": "nexus_core.ledger.store:Salvaged",
    "SessionExistsError": "nexus_core.errors:SessionExistsError",
    "SessionRecord": "nexus_core.types.ledger:SessionRecord",
    "SessionRow": "nexus_core.ledger.store:SessionRow",
    "StepRow": "nexus_core.ledger.store:StepRow",
    "StoreLedger": "nexus_core.ledger.ledger:StoreLedger",
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
    "BranchRow",
    "CallResult",
    "ConflictError",
    "DeletionRow",
    "ErasedRow",
    "HistoryRow",
    "LedgerError",
    "LedgerUnreachableError",
    "NewStep",
    "ParentRef",
    "RecordedCall",
    "Salvaged",
    "SessionExistsError",
    "SessionRecord",
    "SessionRow",
    "StepRow",
    "StoreLedger",
    "excerpt",
    "find_step",
    "redacted_text",
    "search_session",
    "tools_offered",
    "without_secret",
]

# Hidden from type checkers, which would otherwise accept any misspelt name.
if not TYPE_CHECKING:
    __getattr__, __dir__ = make_lazy(globals(), _HOMES)
