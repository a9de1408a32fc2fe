"""Tools of MCP servers, run from a program's own agent loop.

    from nexus_plugins.mcp.call import connect

    with connect(nexus) as servers:
        ...
        for call in step.tool_calls:
            session.record(servers.run(call) if call.name in servers else call.result(run(call)))

`connect_async` is the asynchronous form. A server is started when one of its tools is first called, and stopped
at the end of the block. Only tools that were offered to the model are run, so a worker (subagent) that gets `servers`
can run none of them.
"""

from __future__ import annotations

from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from nexus_core import MissingExtraError, NexusError, TurnError, UnknownNameError, UsageError
from nexus_core.plugin import Extra
from nexus_core.plugin.ledgers import tools_offered
from nexus_plugins.mcp._errors import ToolNotOfferedError
from nexus_plugins.mcp._tools import find_offered_tools, is_tool_permitted

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping

    from anyio.from_thread import BlockingPortal

    from nexus_core import Nexus
    from nexus_core.plugin import Ledger
    from nexus_core.plugin.ledgers import CallResult, RecordedCall
    from nexus_core.plugin.settings import MCPServerWithOrigin
    from nexus_plugins.mcp._connections import ServerPool, ToolOutcome

EXTRA = Extra("mcp", modules=("mcp",))


class ServerTool(NamedTuple):
    """The server of a tool, and the tool's name there."""

    server: MCPServerWithOrigin
    tool: str


class AsyncServers:
    """The tools of the servers in a working directory, by the names that the model uses."""

    def __init__(
        self, pool: ServerPool, find_tools: Callable[[], Mapping[str, ServerTool]], ledger: Callable[[], Ledger]
    ) -> None:
        self._pool = pool
        self._find_tools = find_tools
        self._tools = find_tools()
        self._ledger = ledger
        self._disconnected: set[str] = set()

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    async def call(self, name: str, arguments: Mapping[str, object]) -> ToolOutcome:
        """Run a tool without a model's call, and return its result. A server's failure is an error result.

        Args:
            name: The name that the model uses.
            arguments: The arguments, as JSON values.

        Raises:
            UnknownNameError: No server has a tool of that name.
        """
        from nexus_plugins.mcp._connections import ToolOutcome, convert_tool_result

        if name not in self._tools:
            raise UnknownNameError("tool of a server", name, self._tools)
        server, tool = self._tools[name]
        if server.config.name in self._disconnected:
            return ToolOutcome(f"server {server.config.name!r} is disconnected", is_error=True)
        try:
            return convert_tool_result(await self._pool.call(server, tool, dict(arguments)))
        except NexusError as error:
            return ToolOutcome(error.what, is_error=True)

    async def connect(self, name: str) -> tuple[str, ...]:
        """Start a server now, store its catalog, and return the names of its tools that models may call.

        Args:
            name: The server's name.

        Raises:
            UnknownNameError: There is no such server.
            ServerError: It is not approved, cannot be started, or does not respond.
        """
        from nexus_plugins.mcp._transport import run_in_daemon_thread

        await self._pool.fetch_catalog(self._pool.get_server(name))
        self._disconnected.discard(name)
        self._tools = await run_in_daemon_thread(self._find_tools)
        return tuple(tool for tool, found in self._tools.items() if found.server.config.name == name)

    async def disconnect(self, name: str) -> None:
        """Stop a server. Calls of its tools fail until it is connected again.

        Raises:
            UnknownNameError: There is no such server.
        """
        await self._pool.stop(self._pool.get_server(name))
        self._disconnected.add(name)

    async def run(self, call: RecordedCall) -> CallResult:
        """Run a model's tool call if the tool was offered to it, and return the result for `session.record`.

        Unknown tools, tools that were not offered, and incomplete arguments are not run. The model gets an error
        result and can continue.

        Args:
            call: A tool call of a recorded step.
        """
        from nexus_plugins.mcp._transport import run_in_daemon_thread

        if call.has_invalid_arguments:
            return call.result("it was not run: its arguments are no JSON object", is_error=True)
        try:
            await run_in_daemon_thread(partial(self._require_offered, call))
            outcome = await self.call(call.name, call.arguments)
        except (UnknownNameError, ToolNotOfferedError) as error:
            return call.result(str(error), is_error=True)
        return call.result(outcome.content, is_error=outcome.is_error)

    def _require_offered(self, call: RecordedCall) -> None:
        """Raise unless the request that the model replied to offered the tool.

        A worker's session has no tools of servers, even if its program passes the same servers to its loop.
        """
        try:
            offered = {tool.name for tool in tools_offered(self._ledger(), call.key.step)}
        except (UsageError, TurnError):
            raise ToolNotOfferedError(
                f"{call.name!r} is not run: it is not known what this model was offered"
            ) from None
        if call.name in offered:
            return
        if call.name in self._tools:
            raise ToolNotOfferedError(f"{call.name!r} is not run: it was not offered to this model")
        raise UnknownNameError("tool of a server", call.name, offered & self._tools.keys())


class Servers:
    """Blocking form of `AsyncServers`. The servers run in an event loop in another thread."""

    def __init__(self, portal: BlockingPortal, servers: AsyncServers) -> None:
        self._portal = portal
        self._servers = servers

    def __contains__(self, name: object) -> bool:
        return name in self._servers

    def __iter__(self) -> Iterator[str]:
        return iter(self._servers)

    def call(self, name: str, arguments: Mapping[str, object]) -> ToolOutcome:
        """Run a tool like `AsyncServers.call`. Safe to call from several threads."""
        return self._portal.call(self._servers.call, name, arguments)

    def connect(self, name: str) -> tuple[str, ...]:
        """Start a server like `AsyncServers.connect`."""
        return self._portal.call(self._servers.connect, name)

    def disconnect(self, name: str) -> None:
        """Stop a server like `AsyncServers.disconnect`."""
        self._portal.call(self._servers.disconnect, name)

    def run(self, call: RecordedCall) -> CallResult:
        """Run a model's tool call like `AsyncServers.run`. Safe to call from several threads."""
        return self._portal.call(self._servers.run, call)


@asynccontextmanager
async def connect_async(nexus: Nexus) -> AsyncIterator[AsyncServers]:
    """Open the servers of a Nexus for the duration of the block.

    Only tools that `permissions.tools` lets models use are included. Leaving the block stops the servers.

    Args:
        nexus: The Nexus whose working directory and settings apply.

    Raises:
        MissingExtraError: The extra `mcp` is not installed.
    """
    pool_type = import_server_pool()
    request = nexus.request()
    loaded = nexus.load(request)

    def find_tools() -> dict[str, ServerTool]:
        return {
            tool.name: ServerTool(server, name)
            for tool, server, name in find_offered_tools(request, loaded)
            if is_tool_permitted(tool.name, loaded.settings)
        }

    async with pool_type(loaded, request) as pool:
        yield AsyncServers(pool, find_tools, lambda: nexus.ledger)


@contextmanager
def connect(nexus: Nexus) -> Iterator[Servers]:
    """Open the servers of a Nexus for the duration of the block, for programs without an event loop.

    Args:
        nexus: The Nexus whose working directory and settings apply.

    Raises:
        MissingExtraError: The extra `mcp` is not installed.
    """
    import_server_pool()
    from anyio.from_thread import start_blocking_portal

    with start_blocking_portal() as portal:
        connection = portal.wrap_async_context_manager(connect_async(nexus))
        servers = connection.__enter__()
        try:
            yield Servers(portal, servers)
        finally:
            # The block's exception is not passed on: Ctrl-C would break the loop before the servers are stopped.
            connection.__exit__(None, None, None)


def import_server_pool() -> type[ServerPool]:
    """Import and return `ServerPool`. Raises MissingExtraError if the extra is not installed."""
    try:
        from nexus_plugins.mcp._connections import ServerPool
    except ModuleNotFoundError:
        raise MissingExtraError("mcp", EXTRA) from None
    return ServerPool
