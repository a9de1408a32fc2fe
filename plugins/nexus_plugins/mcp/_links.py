"""Servers that are started when they are needed, each in a task of its own, and ended together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import anyio
import mcp_types
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError

from nexus_core import __version__
from nexus_plugins.mcp._errors import ServerError
from nexus_plugins.mcp._http import http_transport
from nexus_plugins.mcp._launch import prepare
from nexus_plugins.mcp._limits import Limits
from nexus_plugins.mcp._records import Definition, keep_listing
from nexus_plugins.mcp._stdio import Complaints, stdio_transport

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager
    from types import TracebackType

    from mcp.client._transport import TransportStreams
    from mcp.client.session import IncomingMessage

    from nexus_core import Request
    from nexus_core.plugin import Loaded, MCPServerWithOrigin
    from nexus_plugins.mcp._launch import Launch
    from nexus_plugins.mcp._records import Record

MOST_PAGES = 100
"""In how many pieces a server may list its tools."""


class Link:
    """One server while it runs.

    Attributes:
        client: What speaks with it, once it has said who it is.
        failure: Why it does not run.
        record: What is known of its tools.
        is_stale: Whether it says that its tools have changed.
    """

    def __init__(self, server: MCPServerWithOrigin, launch: Launch) -> None:
        self.server = server
        self.launch = launch
        self.client: Client | None = None
        self.failure: ServerError | None = None
        self.record: Record | None = None
        self.is_stale = True
        self.complaints = Complaints()
        self.scope = anyio.CancelScope()
        self.ready = anyio.Event()
        self.stop = anyio.Event()
        self.ended = anyio.Event()

    async def serve(self, limits: Limits) -> None:
        """Run until `stop`; whatever goes wrong is this server's own affair."""
        with self.scope:
            try:
                client = Client(
                    _Transport(self.launch, self.complaints, limits),
                    cache=None,
                    message_handler=self._notice,
                    client_info=mcp_types.Implementation(name="nexus", version=__version__),
                )
                async with client as self.client:
                    self.ready.set()
                    await self.stop.wait()
            except Exception as error:  # noqa: BLE001 - a broken server may raise anything, groups of exceptions too
                self.failure = self.failure or self.fault(_first(error))
            finally:
                self.client = None
                self.ready.set()
                self.ended.set()

    async def _notice(self, message: IncomingMessage) -> None:
        if isinstance(message, mcp_types.ToolListChangedNotification):
            self.is_stale = True

    def fault(self, error: BaseException) -> ServerError:
        """What went wrong, with what the server itself complained about, and without its secrets."""
        if isinstance(error, ServerError):
            return error
        words = self.launch.mask(str(self.complaints))
        what = self.launch.mask(str(error)) or type(error).__name__
        return ServerError(self.server.config.name, f"failed: {what}", hint=f"it says: {words}" if words else None)


class _Transport:
    """The way to a server; made when the client enters it."""

    def __init__(self, launch: Launch, complaints: Complaints, limits: Limits) -> None:
        self._manager: AbstractAsyncContextManager[TransportStreams] = (
            stdio_transport(launch, complaints) if launch.command else http_transport(launch, limits.call)
        )

    async def __aenter__(self) -> TransportStreams:
        return await self._manager.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._manager.__aexit__(kind, error, trace)


class Links:
    """The servers of a place, started one by one when they are needed.

    Args:
        loaded: What was loaded, with the servers.
        request: For what.
        limits: How long things may take.
    """

    def __init__(self, loaded: Loaded, request: Request, limits: Limits | None = None) -> None:
        self._loaded = loaded
        self._request = request
        self._limits = limits or Limits()
        self._links: dict[str, Link] = {}
        self._locks: dict[str, anyio.Lock] = {}
        self._tasks = anyio.create_task_group()

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        for link in self._links.values():
            link.stop.set()
        with anyio.move_on_after(1, shield=True):
            for link in self._links.values():
                await link.ended.wait()
        self._tasks.cancel_scope.cancel()
        # Without what went wrong in the block: it is nobody's but the caller's, and would come back in a group.
        await self._tasks.__aexit__(None, None, None)

    async def record_of(self, server: MCPServerWithOrigin) -> Record:
        """What a server says about its tools at this moment; it is kept.

        Raises:
            ServerError: It does not run, or does not answer.
            ConfigError: It refers to something that is not there.
        """
        link = await self._link(server)
        if link.record is None or link.is_stale:
            link.is_stale = False
            with anyio.move_on_after(self._limits.start) as waiting:
                link.record = keep_listing(self._request.home, server, await _list_tools(link))
            if waiting.cancelled_caught or link.record is None:
                link.is_stale = True
                await self._drop(link)
                raise ServerError(server.config.name, f"did not list its tools within {self._limits.start:g} s")
        return link.record

    async def call(
        self, server: MCPServerWithOrigin, tool: str, arguments: dict[str, object]
    ) -> mcp_types.CallToolResult:
        """Run a tool, if it is what was approved.

        Raises:
            ServerError: As `record_of`; or there is no such tool, it is withheld, or it took too long.
        """
        name = server.config.name
        record = await self.record_of(server)
        if tool not in {each.name for each in record.usable}:
            is_withheld = tool in {each.name for each in record.withheld}
            raise ServerError(
                name,
                f"has changed its tool {tool!r}, which is withheld" if is_withheld else f"has no tool {tool!r}",
                hint=f"nexus mcp pin {name}" if is_withheld else f"nexus mcp tools {name}",
            )
        link = await self._link(server)
        result: mcp_types.CallToolResult | None = None
        with anyio.move_on_after(self._limits.call) as waiting:
            result = await self._answer(link, tool, arguments)
        if waiting.cancelled_caught or result is None:
            raise ServerError(name, f"did not answer within {self._limits.call:g} s")
        return result

    async def _answer(self, link: Link, tool: str, arguments: dict[str, object]) -> mcp_types.CallToolResult:
        try:
            return await _client(link).call_tool(tool, arguments)
        except MCPError as error:
            if error.code == mcp_types.CONNECTION_CLOSED:
                await self._drop(link)
                raise ServerError(link.server.config.name, "ended before it answered", hint=_said(link)) from None
            raise link.fault(error) from None
        except (ValueError, RuntimeError, OSError, anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
            raise link.fault(error) from None

    async def _link(self, server: MCPServerWithOrigin) -> Link:
        """The server, started if it does not run."""
        name = server.config.name
        async with self._locks.setdefault(name, anyio.Lock()):
            link = self._links.get(name)
            if link is not None and link.client is not None:
                return link
            link = self._links[name] = Link(server, prepare(server, self._loaded, self._request))
            self._tasks.start_soon(link.serve, self._limits)
            with anyio.move_on_after(self._limits.start) as waiting:
                await link.ready.wait()
            if waiting.cancelled_caught:
                link.failure = ServerError(
                    name, f"did not say who it is within {self._limits.start:g} s", hint=_said(link)
                )
                await self._drop(link)
            if link.failure is not None:
                self._links.pop(name, None)
                raise link.failure
            return link

    async def _drop(self, link: Link) -> None:
        if self._links.get(link.server.config.name) is link:
            del self._links[link.server.config.name]
        link.scope.cancel()
        with anyio.CancelScope(shield=True):
            await link.ended.wait()


def _client(link: Link) -> Client:
    if link.client is None:
        raise ServerError(link.server.config.name, "has ended", hint=_said(link))
    return link.client


async def _list_tools(link: Link) -> list[Definition]:
    found: list[Definition] = []
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        try:
            page = await _client(link).list_tools(cursor=cursor)
        except (MCPError, ValueError, RuntimeError, OSError) as error:
            raise link.fault(error) from None
        found += (Definition(each.name, each.description or "", dict(each.input_schema)) for each in page.tools)
        cursor = page.next_cursor
        if not cursor:
            return found
    raise ServerError(link.server.config.name, f"lists its tools in more than {MOST_PAGES} pieces")


def _said(link: Link) -> str | None:
    words = link.launch.mask(str(link.complaints))
    return f"it says: {words}" if words else None


def _first(error: BaseException) -> BaseException:
    """The first exception of a group, however deep."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
