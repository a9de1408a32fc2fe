"""Agent pool, a JSON dispatcher for it, and JSON-RPC over HTTP: server and client.

pool.py             AgentPool: creates, finds and destroys agents that share plugins, ledger and connections
pooled_agent.py     one agent of a pool: its turns, the messages that wait for it, and a view of its context
manager_tools.py    the tools with which a manager creates, messages and reads workers, and a worker reports
dispatcher.py       Dispatcher: the methods of a pool with JSON in and out, for servers of any transport
session_logger.py   SessionLogger: a Markdown transcript and the raw model calls of an agent
protocol.py         JSON-RPC 2.0: requests, responses, error codes, and the errors that a client raises for them
server.py           RpcServer: the methods of a pool over HTTP on the loopback interface (extra `serve`)
server_file.py      the file with address and token of the running server, and the lock that keeps it the only one
client.py           Client and AsyncClient: the methods of a running server from Python

Only `RpcServer` listens on a port. Names in `__all__` are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexus_core.lazy_names import make_lazy

if TYPE_CHECKING:
    from nexus_core.errors import AgentCycleError, AgentDestroyedError, AgentExistsError
    from nexus_core.rpc.client import AsyncClient, Client
    from nexus_core.rpc.dispatcher import Dispatcher, InvalidParamsError, UnknownMethodError, event_to_json
    from nexus_core.rpc.pool import AgentConfig, AgentPool, SharedComponents
    from nexus_core.rpc.pooled_agent import AgentContextView, AgentTurn, PooledAgent
    from nexus_core.rpc.protocol import (
        RpcConnectionError,
        RpcError,
        RpcProviderError,
        RpcRequestError,
        RpcTokenError,
        RpcTurnError,
        RpcUnknownNameError,
    )
    from nexus_core.rpc.server import RpcServer
    from nexus_core.rpc.session_logger import SessionLogger

_HOMES = {
    "AgentConfig": "nexus_core.rpc.pool",
    "AgentContextView": "nexus_core.rpc.pooled_agent",
    "AgentCycleError": "nexus_core.errors",
    "AgentDestroyedError": "nexus_core.errors",
    "AgentExistsError": "nexus_core.errors",
    "AgentPool": "nexus_core.rpc.pool",
    "AgentTurn": "nexus_core.rpc.pooled_agent",
    "AsyncClient": "nexus_core.rpc.client",
    "Client": "nexus_core.rpc.client",
    "Dispatcher": "nexus_core.rpc.dispatcher",
    "InvalidParamsError": "nexus_core.rpc.dispatcher",
    "PooledAgent": "nexus_core.rpc.pooled_agent",
    "RpcConnectionError": "nexus_core.rpc.protocol",
    "RpcError": "nexus_core.rpc.protocol",
    "RpcProviderError": "nexus_core.rpc.protocol",
    "RpcRequestError": "nexus_core.rpc.protocol",
    "RpcServer": "nexus_core.rpc.server",
    "RpcTokenError": "nexus_core.rpc.protocol",
    "RpcTurnError": "nexus_core.rpc.protocol",
    "RpcUnknownNameError": "nexus_core.rpc.protocol",
    "SessionLogger": "nexus_core.rpc.session_logger",
    "SharedComponents": "nexus_core.rpc.pool",
    "UnknownMethodError": "nexus_core.rpc.dispatcher",
    "event_to_json": "nexus_core.rpc.dispatcher",
}
"""The module of each name."""

__all__ = [
    "AgentConfig",
    "AgentContextView",
    "AgentCycleError",
    "AgentDestroyedError",
    "AgentExistsError",
    "AgentPool",
    "AgentTurn",
    "AsyncClient",
    "Client",
    "Dispatcher",
    "InvalidParamsError",
    "PooledAgent",
    "RpcConnectionError",
    "RpcError",
    "RpcProviderError",
    "RpcRequestError",
    "RpcServer",
    "RpcTokenError",
    "RpcTurnError",
    "RpcUnknownNameError",
    "SessionLogger",
    "SharedComponents",
    "UnknownMethodError",
    "event_to_json",
]

# Hidden from type checkers, which would otherwise accept any misspelt name.
if not TYPE_CHECKING:
    __getattr__, __dir__ = make_lazy(globals(), _HOMES)
