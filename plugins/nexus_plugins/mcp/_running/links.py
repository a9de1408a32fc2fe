"""Servers that are started when they are needed, each in a task of its own, and ended together."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Self, TypeVar

import anyio

from nexus_core import UnknownNameError
from nexus_plugins.mcp._aside import run_aside
from nexus_plugins.mcp._errors import ServerError
from nexus_plugins.mcp._running.launch import prepare
from nexus_plugins.mcp._running.limits import Limits
from nexus_plugins.mcp._running.link import Errand, Link
from nexus_plugins.mcp._running.listing import list_tools
from nexus_plugins.mcp._telling.records import keep_listing

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from types import TracebackType

    import mcp_types
    from mcp.client.client import Client

    from nexus_core import Request
    from nexus_core.plugin import Loaded, MCPServerWithOrigin
    from nexus_plugins.mcp._telling.records import Record

PATIENCE = 1.0
"""Seconds in which servers may end by themselves when nobody needs them any longer."""
T = TypeVar("T")


class Deadline(NamedTuple):
    """When something must be over, and how many seconds that was when it began."""

    seconds: float
    at: float

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        """So many seconds from now."""
        return cls(seconds, anyio.current_time() + seconds)

    def passed(self, what: str) -> str:
        """What is told when it has passed."""
        return f"did not {what} within {self.seconds:g} s"


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
        self._is_closed = False

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._is_closed = True
        links = list(self._links.values())  # those that are asked something still leave when they end
        with anyio.CancelScope(shield=True):
            for link in links:
                link.stop.set()
            with anyio.move_on_after(PATIENCE):
                for link in links:
                    await link.ended.wait()
            async with anyio.create_task_group() as tasks:
                for link in links:
                    tasks.start_soon(link.drop)
        self._tasks.cancel_scope.cancel()
        # Without what went wrong in the block: it is nobody's but the caller's, and would come back in a group.
        await self._tasks.__aexit__(None, None, None)

    async def record_of(self, server: MCPServerWithOrigin) -> Record:
        """What a server says about its tools at this moment; it is kept.

        Raises:
            ServerError: It does not run, or does not answer.
            ConfigError: It refers to something that is not there.
        """
        link = await self._fresh(server, Deadline.after(self._limits.for_server(server.config).start))
        return link.require_record()

    async def call(
        self, server: MCPServerWithOrigin, tool: str, arguments: dict[str, object]
    ) -> mcp_types.CallToolResult:
        """Run a tool, if it is what was approved. The time to start the server counts as the tool's.

        Raises:
            UnknownNameError: It has no such tool.
            ServerError: As `record_of`; or the tool is withheld, or took too long.
        """
        limits = self._limits.for_server(server.config)
        deadline = Deadline.after(limits.call)
        name = server.config.name
        if not _is_sendable(arguments):
            raise ServerError(name, f"is not called: the arguments of {tool!r} are not valid JSON")
        link = await self._fresh(server, min(Deadline.after(limits.start), deadline, key=lambda each: each.at))
        record = link.require_record()
        if tool in {each.name for each in record.withheld}:
            what = f"has changed its tool {tool!r}, which is withheld"
            raise ServerError(name, what, hint=f"nexus mcp pin {name}")
        if reason := {each.name: each.reason for each in record.unusable}.get(tool):
            raise ServerError(name, f"describes its tool {tool!r} in a way that cannot be used: {reason}")
        if tool not in {each.name for each in record.usable}:
            raise UnknownNameError(f"tool of server {name!r}:", tool, (each.name for each in record.usable))
        return await self._ask(link, lambda client: client.call_tool(tool, arguments), deadline, "answer")

    async def _fresh(self, server: MCPServerWithOrigin, deadline: Deadline) -> Link:
        """The server, started if it does not run, and what it says about its tools at this moment."""
        name = server.config.name
        async with self._turn(name, deadline):  # whoever comes second must not rely on what the first finds outdated
            link = self._links.get(name)
            if link is None or not link.is_open:
                link = await self._start(server, deadline)
            if link.record is None or link.is_stale:
                link.is_stale, link.record = False, None
                listed = await self._ask(link, lambda client: list_tools(client, link.line), deadline, "list its tools")
                keep = partial(keep_listing, self._request.home, server, listed, tuple(link.line.unusable))
                link.record = await run_aside(keep)
            return link

    @asynccontextmanager
    async def _turn(self, name: str, deadline: Deadline) -> AsyncIterator[None]:
        lock = self._locks.setdefault(name, anyio.Lock())
        with anyio.CancelScope(deadline=deadline.at) as waiting:
            await lock.acquire()
        if waiting.cancelled_caught:
            raise ServerError(name, deadline.passed("start"))
        try:
            yield
        finally:
            lock.release()

    async def _ask(self, link: Link, work: Callable[[Client], Awaitable[T]], deadline: Deadline, what: str) -> T:
        """What a server answers. One that does not in time is ended, if nobody else waits for it."""
        if self._is_closed:
            raise link.line.fault("has ended")
        errand = Errand(link, work)
        self._tasks.start_soon(errand.run)
        try:
            with anyio.CancelScope(deadline=deadline.at):
                return await errand.wait()
            raise link.line.overdue(deadline.passed(what))
        finally:
            if not link.errands and (link.line.is_lost or not errand.is_done):
                await self._drop(link)

    async def _start(self, server: MCPServerWithOrigin, deadline: Deadline) -> Link:
        name = server.config.name
        if self._is_closed:
            raise ServerError(name, "is not started: all servers are being ended")
        if (before := self._links.get(name)) is not None:
            await self._drop(before)
        link: Link | None = None
        try:
            with anyio.CancelScope(deadline=deadline.at):
                launch = await run_aside(partial(prepare, server, self._loaded, self._request))
                link = self._links[name] = Link(server, launch)
                self._tasks.start_soon(link.serve)
                await link.ready.wait()
                if link.failure is not None:
                    raise link.failure
                return link
            said = deadline.passed("start")
            raise link.line.overdue(said) if link is not None else ServerError(name, said)
        finally:
            if link is not None and not link.is_open:
                await self._drop(link)

    async def _drop(self, link: Link) -> None:
        if self._links.get(link.server.config.name) is link:
            del self._links[link.server.config.name]
        await link.drop()


def _is_sendable(arguments: dict[str, object]) -> bool:
    try:
        json.dumps(arguments, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, TypeError, RecursionError):
        return False
    return True
