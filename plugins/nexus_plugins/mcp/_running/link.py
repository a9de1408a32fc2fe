"""One server while it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

import anyio
import mcp_types
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError

import nexus_plugins.mcp._running.quiet  # noqa: F401 - for what it does
from nexus_core import __version__
from nexus_plugins.mcp._errors import ServerError
from nexus_plugins.mcp._running.http import http_transport
from nexus_plugins.mcp._running.line import Line
from nexus_plugins.mcp._running.sifting import Sifted
from nexus_plugins.mcp._running.stdio import stdio_transport

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import AbstractAsyncContextManager
    from types import TracebackType

    from mcp.client._transport import TransportStreams
    from mcp.client.session import IncomingMessage

    from nexus_core.plugin import MCPServerWithOrigin
    from nexus_plugins.mcp._running.launch import Launch
    from nexus_plugins.mcp._telling.records import Record

ENDING = 0.5
"""Seconds that are waited for the rest of a server that was cut off."""


class Link:
    """One server while it runs.

    Attributes:
        client: What speaks with it, once it has said who it is.
        failure: Why it does not run.
        record: What is known of its tools.
        is_stale: Whether it says that its tools have changed.
        errands: How many answers of it are waited for.
    """

    def __init__(self, server: MCPServerWithOrigin, launch: Launch) -> None:
        self.server = server
        self.line = Line(launch)
        self.client: Client | None = None
        self.failure: ServerError | None = None
        self.record: Record | None = None
        self.is_stale = True
        self.errands = 0
        self.ready = anyio.Event()
        self.stop = anyio.Event()
        self.ended = anyio.Event()
        self._scope = anyio.CancelScope()

    async def serve(self) -> None:
        """Run until `stop`; whatever goes wrong is this server's own affair."""
        try:
            with self._scope:
                await self._run()
        except Exception as error:  # noqa: BLE001 - a broken server may raise anything, groups of exceptions too
            self.failure = self.failure or self.fault(_first(error))
        finally:
            self.client = None
            self.ready.set()
            self.ended.set()

    async def _run(self) -> None:
        client = Client(
            _Transport(self.line, lambda: self.client.session.protocol_version if self.client else None),
            cache=None,
            message_handler=self._notice,
            client_info=mcp_types.Implementation(name="nexus", version=__version__),
        )
        async with client as self.client:
            self.ready.set()
            await self.stop.wait()

    @property
    def is_open(self) -> bool:
        """Whether it has said who it is and still runs."""
        return self.client is not None and self.failure is None and not self.line.is_lost

    def require_record(self) -> Record:
        """What is known of its tools; raises ServerError when it has said nothing about them."""
        if self.record is None:
            raise self.line.fault("has not listed its tools")
        return self.record

    def require_client(self) -> Client:
        """What speaks with it; raises ServerError when it has ended."""
        if self.client is None:
            raise self.line.fault("has ended")
        return self.client

    async def _notice(self, message: IncomingMessage) -> None:
        if isinstance(message, mcp_types.ToolListChangedNotification):
            self.is_stale = True

    def fault(self, error: BaseException) -> ServerError:
        """What went wrong, with what the server itself complained about, and without its secrets."""
        if isinstance(error, ServerError):
            return error
        if isinstance(error, MCPError) and error.code == mcp_types.CONNECTION_CLOSED:
            self.line.is_lost = True
            if self.line.launch.command:
                return self.line.fault("ended before it answered")
        return self.line.fault(f"failed: {_words(error)}")

    async def drop(self) -> None:
        """End it at once, whatever it is doing."""
        if self.ended.is_set():
            return
        with anyio.CancelScope(shield=True):
            # First what runs there: as long as it does, the SDK may wait for it to take a last message.
            await self.line.cut()
            self._scope.cancel()
            with anyio.move_on_after(ENDING):
                await self.ended.wait()


T = TypeVar("T")


class Errand(Generic[T]):
    """Something that is asked of a server, in a task of its own, so that whoever waits for it can leave at any time.

    The SDK tells a server when nobody waits any longer, and waits seconds for it to listen.
    """

    def __init__(self, link: Link, work: Callable[[Client], Awaitable[T]]) -> None:
        self._link = link
        self._work = work
        self._scope = anyio.CancelScope()
        self._done = anyio.Event()
        self._answer: list[T] = []
        self._failure: ServerError | None = None

    async def run(self) -> None:
        """Ask; the task itself never fails."""
        with self._scope:
            try:
                self._answer.append(await self._work(self._link.require_client()))
            except Exception as error:  # noqa: BLE001 - the answer of a broken server may be anything
                self._failure = self._link.fault(error)
        self._done.set()

    @property
    def is_done(self) -> bool:
        """Whether there is an answer, or a reason why there is none."""
        return bool(self._answer) or self._failure is not None

    async def wait(self) -> T:
        """The answer; raises ServerError if there will be none."""
        self._link.errands += 1
        try:
            await self._done.wait()
        finally:
            self._link.errands -= 1
            self._scope.cancel()
        if self._failure is not None:
            raise self._failure
        return self._answer[0]


class _Transport:
    """The way to a server; made when the client enters it."""

    def __init__(self, line: Line, version: Callable[[], str | None]) -> None:
        self._line = line
        self._version = version
        self._manager: AbstractAsyncContextManager[TransportStreams] = (
            stdio_transport(line) if line.launch.command else http_transport(line)
        )

    async def __aenter__(self) -> TransportStreams:
        incoming, outgoing = await self._manager.__aenter__()
        return Sifted(incoming, self._line, self._version), outgoing

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._manager.__aexit__(kind, error, trace)


def _words(error: BaseException) -> str:
    words = str(error).partition("\n")[0]
    if "validation error" in words:  # what follows would be the SDK's names for things, and a link
        return "its answer does not follow the protocol"
    return words or type(error).__name__


def _first(error: BaseException) -> BaseException:
    """The first exception of a group, however deep."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
