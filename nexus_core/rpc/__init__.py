"""Agent pool, and a JSON dispatcher for it.

pool.py             AgentPool: creates, finds and destroys agents that share plugins, ledger and connections
pooled_agent.py     one agent of a pool: its turns, the messages that wait for it, and a view of its context
manager_tools.py    the tools with which a manager creates, messages and reads workers, and a worker reports
dispatcher.py       Dispatcher: the methods of a pool with JSON in and out, for servers of any transport
session_logger.py   SessionLogger: a Markdown transcript and the raw model calls of an agent

Nothing here listens on a port. Names in `__all__` are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.lazy_names import make_lazy

if TYPE_CHECKING:
    from nexus_core.errors import AgentCycleError, AgentDestroyedError, AgentExistsError
    from nexus_core.rpc.dispatcher import Dispatcher, InvalidParamsError, UnknownMethodError, event_to_json
    from nexus_core.rpc.pool import AgentConfig, AgentPool, SharedComponents
    from nexus_core.rpc.pooled_agent import AgentContext, AgentTurn, PooledAgent
    from nexus_core.rpc.session_logger import SessionLogger

_HOMES = {
    "AgentConfig": "nexus_core.rpc.pool",
    "AgentContext": "nexus_core.rpc.pooled_agent",
    "AgentCycleError": "nexus_core.errors",
    "AgentDestroyedError": "nexus_core.errors",
    "AgentExistsError": "nexus_core.errors",
    "AgentPool": "nexus_core.rpc.pool",
    "AgentTurn": "nexus_core.rpc.pooled_agent",
    "Dispatcher": "nexus_core.rpc.dispatcher",
    "InvalidParamsError": "nexus_core.rpc.dispatcher",
    "PooledAgent": "nexus_core.rpc.pooled_agent",
    "SessionLogger": "nexus_core.rpc.session_logger",
    "SharedComponents": "nexus_core.rpc.pool",
    "UnknownMethodError": "nexus_core.rpc.dispatcher",
    "event_to_json": "nexus_core.rpc.dispatcher",
}
"""The module of each name."""

__all__ = [
    "AgentConfig",
    "AgentContext",
    "AgentCycleError",
    "AgentDestroyedError",
    "AgentExistsError",
    "AgentPool",
    "AgentTurn",
    "Dispatcher",
    "InvalidParamsError",
    "PooledAgent",
    "SessionLogger",
    "SharedComponents",
    "UnknownMethodError",
    "event_to_json",
]

# Hidden from type checkers, which would otherwise accept any misspelt name.
if not TYPE_CHECKING:
    __getattr__, __dir__ = make_lazy(globals(), _HOMES)
