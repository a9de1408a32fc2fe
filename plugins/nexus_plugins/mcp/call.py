"""Runs the tools of servers for whoever drives the loop.

    from nexus_plugins.mcp.call import connect

    with connect(nexus) as servers:
        ...
        for call in step.tool_calls:
            session.record(servers.run(call) if call.name in servers else call.result(run(call)))

`connect_async` is the same, awaited. A server is started when one of its tools is first called, and ended
with the block. Whoever hands `servers` to the loop of a worker gives it nothing: what is run is what was offered.
"""

from __future__ import annotations

from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from nexus_core import MissingExtraError, NexusError, TurnError, UnknownNameError, UsageError
from nexus_core.plugin import Extra, tools_offered
from nexus_plugins.mcp._errors import NotOfferedError
from nexus_plugins.mcp._running.limits import Limits
from nexus_plugins.mcp._telling.offering import is_permitted, offered_tools

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping

    from anyio.from_thread import BlockingPortal

    from nexus_core import Nexus
    from nexus_core.plugin import CallResult, Ledger, MCPServerWithOrigin, RecordedCall
    from nexus_plugins.mcp._content import Outcome
    from nexus_plugins.mcp._running.links import Links

EXTRA = Extra("mcp", modules=("mcp",))


class ToolPlace(NamedTuple):
    """Where a tool runs, and what its server calls it."""

    server: MCPServerWithOrigin
    tool: str


class AsyncServers:
    """The tools of the servers here, by the names that the model knows; methods are awaited."""

    def __init__(self, links: Links, tools: Mapping[str, ToolPlace], ledger: Callable[[], Ledger]) -> None:
        self._links = links
        self._tools = tools
        self._ledger = ledger

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    async def call(self, name: str, arguments: Mapping[str, object]) -> Outcome:
        """What running a tool brings, for your own purposes; where its server fails, that is what it brings.

        Raises:
            UnknownNameError: No server here has such a tool.
        """
        from nexus_plugins.mcp._content import Outcome, outcome_of  # noqa: PLC0415 - the SDK takes its time

        if name not in self._tools:
            raise UnknownNameError("tool of a server", name, self._tools)
        place = self._tools[name]
        try:
            return outcome_of(await self._links.call(place.server, place.tool, dict(arguments)))
        except NexusError as error:
            return Outcome(error.what, is_error=True)

    async def run(self, call: RecordedCall) -> CallResult:
        """Run what the model asks for, if it was offered to it; the result is what `session.record` takes.

        Models make names up, hear them from others, and break off in the middle of arguments: then nothing is run, the
        result says so, and the model goes on.
        """
        from nexus_plugins.mcp._aside import run_aside  # noqa: PLC0415 - comes with the extra

        if call.is_broken:
            return call.result("it was not run: its arguments are no JSON object", is_error=True)
        try:
            await run_aside(partial(self._require_offered, call))
            outcome = await self.call(call.name, call.arguments)
        except (UnknownNameError, NotOfferedError) as error:
            return call.result(str(error), is_error=True)
        return call.result(outcome.content, is_error=outcome.is_error)

    def _require_offered(self, call: RecordedCall) -> None:
        """Raise unless the tool was among those that went to the model with the request that the call answers.

        A worker's session has no tools of servers, although the same servers may be at hand in its loop.
        """
        try:
            offered = {tool.name for tool in tools_offered(self._ledger(), call.key.step)}
        except (UsageError, TurnError):
            raise NotOfferedError(f"{call.name!r} is not run: it is not known what this model was offered") from None
        if call.name in offered:
            return
        if call.name in self._tools:
            raise NotOfferedError(f"{call.name!r} is not run: it was not offered to this model")
        raise UnknownNameError("tool of a server", call.name, offered & self._tools.keys())


class Servers:
    """The same for programs that do not await; the servers live in a thread of their own."""

    def __init__(self, portal: BlockingPortal, servers: AsyncServers) -> None:
        self._portal = portal
        self._servers = servers

    def __contains__(self, name: object) -> bool:
        return name in self._servers

    def __iter__(self) -> Iterator[str]:
        return iter(self._servers)

    def call(self, name: str, arguments: Mapping[str, object]) -> Outcome:
        """As `AsyncServers.call`; may be called from several threads at once."""
        return self._portal.call(self._servers.call, name, arguments)

    def run(self, call: RecordedCall) -> CallResult:
        """As `AsyncServers.run`."""
        return self._portal.call(self._servers.run, call)


@asynccontextmanager
async def connect_async(nexus: Nexus) -> AsyncIterator[AsyncServers]:
    """The servers of a Nexus for as long as the block lasts, with the tools that `permissions.tools` lets models use.

    Raises:
        MissingExtraError: The extra `mcp` is not installed.
    """
    links_of = import_links()
    request = nexus.request()
    loaded = nexus.load(request)
    places = {
        tool.name: ToolPlace(server, name)
        for tool, server, name in offered_tools(request, loaded)
        if is_permitted(tool.name, loaded.settings)
    }
    async with links_of(loaded, request, Limits.of(loaded)) as links:
        yield AsyncServers(links, places, lambda: nexus.ledger)


@contextmanager
def connect(nexus: Nexus) -> Iterator[Servers]:
    """As `connect_async`, for programs that do not await."""
    import_links()
    from anyio.from_thread import start_blocking_portal  # noqa: PLC0415 - comes with the extra

    with start_blocking_portal() as portal:
        connection = portal.wrap_async_context_manager(connect_async(nexus))
        servers = connection.__enter__()
        try:
            yield Servers(portal, servers)
        finally:
            # Without what went wrong in the block: Ctrl-C would break the loop before the servers are ended.
            connection.__exit__(None, None, None)


def import_links() -> type[Links]:
    """What starts servers; raises MissingExtraError while the extra is not installed."""
    try:
        from nexus_plugins.mcp._running.links import Links  # noqa: PLC0415 - comes with the extra
    except ModuleNotFoundError:
        raise MissingExtraError("mcp", EXTRA) from None
    return Links
