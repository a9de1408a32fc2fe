"""Running MCP servers, started on demand and ended together."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Self, TypeVar

import anyio
import mcp_types
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp_types.methods import validate_server_result
from pydantic import ValidationError

from nexus_core import FileError, UnknownNameError, __version__
from nexus_core.plugin import File, Image, Text
from nexus_plugins.mcp._errors import ServerError
from nexus_plugins.mcp._launch import prepare_launch
from nexus_plugins.mcp._tools import MAX_CATALOG_BYTES, ToolDefinition, UnusableTool, store_catalog
from nexus_plugins.mcp._transport import TransportState, http_transport, run_in_daemon_thread, stdio_transport

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
    from contextlib import AbstractAsyncContextManager
    from types import TracebackType

    from mcp.client._transport import ReadStream, TransportStreams, WriteStream
    from mcp.client.session import IncomingMessage

    from nexus_core import Request
    from nexus_core.plugin import LoadedLayers
    from nexus_core.plugin.settings import MCPServerConfig, MCPServerWithOrigin
    from nexus_plugins.mcp._launch import ServerLaunch
    from nexus_plugins.mcp._tools import ToolCatalog


class ServerTimeouts(NamedTuple):
    """Timeouts of a server in seconds.

    Attributes:
        start: To start and list its tools.
        call: To run a tool, including the start of the server.
    """

    start: float = 20.0
    call: float = 60.0

    @classmethod
    def from_settings(cls, loaded: LoadedLayers) -> ServerTimeouts:
        """Return the timeouts in the settings, or the defaults."""
        defaults = cls()
        start, call = (loaded.settings.get(f"plugins.mcp.{name}") for name in ("start_timeout", "call_timeout"))
        return cls(
            float(start) if isinstance(start, int | float) else defaults.start,
            float(call) if isinstance(call, int | float) else defaults.call,
        )

    def for_server(self, config: MCPServerConfig) -> ServerTimeouts:
        """Return these timeouts with the overrides of one server's definition."""
        start, call = config.start_timeout, config.call_timeout
        return ServerTimeouts(self.start if start is None else start, self.call if call is None else call)


SHUTDOWN_SECONDS = 1.0
"""Seconds in which servers may exit by themselves before they are killed."""
T = TypeVar("T")


class RequestDeadline(NamedTuple):
    """The time at which a request times out, and the timeout in seconds."""

    seconds: float
    at: float

    @classmethod
    def after(cls, seconds: float) -> RequestDeadline:
        """Return the deadline that many seconds from now."""
        return cls(seconds, anyio.current_time() + seconds)

    def describe_timeout(self, what: str) -> str:
        """Return the error text for a server that did not do `what` in time."""
        return f"did not {what} within {self.seconds:g} s"


class ServerPool:
    """The servers of a working directory, each started on first use.

    Use it as an async context manager; leaving the block stops all servers.

    Args:
        loaded: The loaded layers, with the servers.
        request: The request that they were loaded for.
        timeouts: The timeouts; None for those in the settings.
    """

    def __init__(self, loaded: LoadedLayers, request: Request, timeouts: ServerTimeouts | None = None) -> None:
        self._loaded = loaded
        self._request = request
        self._timeouts = timeouts or ServerTimeouts.from_settings(loaded)
        self._connections: dict[str, ServerConnection] = {}
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
        connections = list(self._connections.values())  # a copy: connections remove themselves when they end
        with anyio.CancelScope(shield=True):
            for connection in connections:
                connection.stop.set()
            with anyio.move_on_after(SHUTDOWN_SECONDS):
                for connection in connections:
                    await connection.ended.wait()
            async with anyio.create_task_group() as tasks:
                for connection in connections:
                    tasks.start_soon(connection.abort)
        self._tasks.cancel_scope.cancel()
        # The exception of the block is not passed on: the task group would wrap it in an exception group.
        await self._tasks.__aexit__(None, None, None)

    def get_server(self, name: str) -> MCPServerWithOrigin:
        """Return the server of that name.

        Raises:
            UnknownNameError: There is none.
        """
        servers = {server.config.name: server for server in self._loaded.servers}
        if name not in servers:
            raise UnknownNameError("server", name, servers)
        return servers[name]

    async def stop(self, server: MCPServerWithOrigin) -> None:
        """Stop a server if it runs. The next call starts it again."""
        connection = self._connections.get(server.config.name)
        if connection is None:
            return
        connection.stop.set()
        with anyio.move_on_after(SHUTDOWN_SECONDS):
            await connection.ended.wait()
        await self._abort(connection)

    async def fetch_catalog(self, server: MCPServerWithOrigin) -> ToolCatalog:
        """Have a server list its tools, and store the catalog.

        Raises:
            ServerError: The server cannot be started, or does not respond.
            ConfigError: Its definition refers to a variable that is not set.
        """
        connection = await self._connect(server, RequestDeadline.after(self._timeouts.for_server(server.config).start))
        return connection.require_catalog()

    async def call(
        self, server: MCPServerWithOrigin, tool: str, arguments: dict[str, object]
    ) -> mcp_types.CallToolResult:
        """Run a tool if its definition is still the approved one. The timeout includes the server's start.

        Raises:
            UnknownNameError: The server has no such tool.
            ServerError: The server cannot be started, the tool is withheld, or the call timed out.
            ConfigError: The server's definition refers to a variable that is not set.
        """
        timeouts = self._timeouts.for_server(server.config)
        deadline = RequestDeadline.after(timeouts.call)
        name = server.config.name
        if not _is_valid_json(arguments):
            raise ServerError(name, f"is not called: the arguments of {tool!r} are not valid JSON")
        connection = await self._connect(
            server, min(RequestDeadline.after(timeouts.start), deadline, key=lambda each: each.at)
        )
        catalog = connection.require_catalog()
        if tool in {each.name for each in catalog.withheld}:
            what = f"has changed its tool {tool!r}, which is withheld"
            raise ServerError(name, what, hint=f"nexus mcp approve {name}")
        if reason := {each.name: each.reason for each in catalog.unusable}.get(tool):
            raise ServerError(name, f"describes its tool {tool!r} in a way that cannot be used: {reason}")
        if tool not in {each.name for each in catalog.usable}:
            raise UnknownNameError(f"tool of server {name!r}:", tool, (each.name for each in catalog.usable))
        return await self._send(connection, lambda client: client.call_tool(tool, arguments), deadline, "answer")

    async def _connect(self, server: MCPServerWithOrigin, deadline: RequestDeadline) -> ServerConnection:
        """Return the connection to a server with a current catalog, starting the server if necessary."""
        name = server.config.name
        async with self._lock(name, deadline):  # a second task must not use a catalog that the first finds outdated
            connection = self._connections.get(name)
            if connection is None or not connection.is_open:
                connection = await self._start(server, deadline)
            if connection.catalog is None or connection.is_stale:
                connection.is_stale, connection.catalog = False, None
                listed = await self._send(
                    connection, lambda client: fetch_tools(client, connection.state), deadline, "list its tools"
                )
                store = partial(store_catalog, self._request.home, server, listed, tuple(connection.state.unusable))
                connection.catalog = await run_in_daemon_thread(store)
            return connection

    @asynccontextmanager
    async def _lock(self, name: str, deadline: RequestDeadline) -> AsyncIterator[None]:
        lock = self._locks.setdefault(name, anyio.Lock())
        with anyio.CancelScope(deadline=deadline.at) as waiting:
            await lock.acquire()
        if waiting.cancelled_caught:
            raise ServerError(name, deadline.describe_timeout("start"))
        try:
            yield
        finally:
            lock.release()

    async def _send(
        self, connection: ServerConnection, work: Callable[[Client], Awaitable[T]], deadline: RequestDeadline, what: str
    ) -> T:
        """Return a server's response. On timeout, abort a server that has no other pending request."""
        if self._is_closed:
            raise connection.state.build_error("has ended")
        pending = PendingRequest(connection, work)
        self._tasks.start_soon(pending.run)
        try:
            with anyio.CancelScope(deadline=deadline.at):
                return await pending.wait()
            raise connection.state.build_timeout_error(deadline.describe_timeout(what))
        finally:
            if not connection.pending and (connection.state.is_lost or not pending.is_done):
                await self._abort(connection)

    async def _start(self, server: MCPServerWithOrigin, deadline: RequestDeadline) -> ServerConnection:
        name = server.config.name
        if self._is_closed:
            raise ServerError(name, "is not started: all servers are being ended")
        if (previous := self._connections.get(name)) is not None:
            await self._abort(previous)
        connection: ServerConnection | None = None
        try:
            with anyio.CancelScope(deadline=deadline.at):
                launch = await run_in_daemon_thread(partial(prepare_launch, server, self._loaded, self._request))
                connection = self._connections[name] = ServerConnection(server, launch)
                self._tasks.start_soon(connection.serve)
                await connection.ready.wait()
                if connection.failure is not None:
                    raise connection.failure
                return connection
            what = deadline.describe_timeout("start")
            raise connection.state.build_timeout_error(what) if connection is not None else ServerError(name, what)
        finally:
            if connection is not None and not connection.is_open:
                await self._abort(connection)

    async def _abort(self, connection: ServerConnection) -> None:
        if self._connections.get(connection.server.config.name) is connection:
            del self._connections[connection.server.config.name]
        await connection.abort()


def _is_valid_json(arguments: dict[str, object]) -> bool:
    try:
        json.dumps(arguments, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, TypeError, RecursionError):
        return False
    return True


ABORT_WAIT_SECONDS = 0.5
"""Seconds to wait for the tasks of a connection that was aborted."""


class ServerConnection:
    """One running server.

    Attributes:
        client: The SDK's client, None before initialization and after the end.
        failure: The reason why the server does not run.
        catalog: The tools that it listed last.
        is_stale: True after the server notified that its tools have changed.
        pending: Number of requests without a response.
    """

    def __init__(self, server: MCPServerWithOrigin, launch: ServerLaunch) -> None:
        self.server = server
        self.state = TransportState(launch)
        self.client: Client | None = None
        self.failure: ServerError | None = None
        self.catalog: ToolCatalog | None = None
        self.is_stale = True
        self.pending = 0
        self.ready = anyio.Event()
        self.stop = anyio.Event()
        self.ended = anyio.Event()
        self._scope = anyio.CancelScope()

    async def serve(self) -> None:
        """Run until `stop` is set. Errors are stored in `failure`, so that other servers go on."""
        try:
            with self._scope:
                await self._run()
        except Exception as error:  # noqa: BLE001 - a broken server may raise anything, groups of exceptions too
            self.failure = self.failure or self.to_server_error(_unwrap_group(error))
        finally:
            self.client = None
            self.ready.set()
            self.ended.set()

    async def _run(self) -> None:
        client = Client(
            _ServerTransport(self.state, lambda: self.client.session.protocol_version if self.client else None),
            cache=None,
            message_handler=self._handle_notification,
            client_info=mcp_types.Implementation(name="nexus", version=__version__),
        )
        async with client as self.client:
            self.ready.set()
            await self.stop.wait()

    @property
    def is_open(self) -> bool:
        """True if the server is initialized and still runs."""
        return self.client is not None and self.failure is None and not self.state.is_lost

    def require_catalog(self) -> ToolCatalog:
        """Return the tools that the server listed. Raises ServerError if it has not."""
        if self.catalog is None:
            raise self.state.build_error("has not listed its tools")
        return self.catalog

    def require_client(self) -> Client:
        """Return the SDK's client. Raises ServerError if the server has ended."""
        if self.client is None:
            raise self.state.build_error("has ended")
        return self.client

    async def _handle_notification(self, message: IncomingMessage) -> None:
        if isinstance(message, mcp_types.ToolListChangedNotification):
            self.is_stale = True

    def to_server_error(self, error: BaseException) -> ServerError:
        """Convert an error, with the end of the server's standard error and without its secrets."""
        if isinstance(error, ServerError):
            return error
        if isinstance(error, MCPError) and error.code == mcp_types.CONNECTION_CLOSED:
            self.state.is_lost = True
            if self.state.launch.command:
                return self.state.build_error("ended before it answered")
        return self.state.build_error(f"failed: {_describe_error(error)}")

    async def abort(self) -> None:
        """Stop the server at once, also in the middle of a request."""
        if self.ended.is_set():
            return
        with anyio.CancelScope(shield=True):
            # The process first: while it runs, the SDK may wait for it to read a last message.
            await self.state.kill()
            self._scope.cancel()
            with anyio.move_on_after(ABORT_WAIT_SECONDS):
                await self.ended.wait()


class PendingRequest(Generic[T]):
    """A request to a server in its own task, so that its caller can be cancelled at once.

    When a request is cancelled, the SDK notifies the server and waits for seconds until the server reads that.
    """

    def __init__(self, connection: ServerConnection, work: Callable[[Client], Awaitable[T]]) -> None:
        self._connection = connection
        self._work = work
        self._scope = anyio.CancelScope()
        self._done = anyio.Event()
        self._response: list[T] = []
        self._failure: ServerError | None = None

    async def run(self) -> None:
        """Send the request. The task itself never raises."""
        with self._scope:
            try:
                self._response.append(await self._work(self._connection.require_client()))
            except Exception as error:  # noqa: BLE001 - a broken server's response may raise anything
                self._failure = self._connection.to_server_error(error)
        self._done.set()

    @property
    def is_done(self) -> bool:
        """True if there is a response or an error."""
        return bool(self._response) or self._failure is not None

    async def wait(self) -> T:
        """Wait for the response. Raises ServerError if the request failed."""
        self._connection.pending += 1
        try:
            await self._done.wait()
        finally:
            self._connection.pending -= 1
            self._scope.cancel()
        if self._failure is not None:
            raise self._failure
        return self._response[0]


class _ServerTransport:
    """The transport to a server, opened when the client enters it."""

    def __init__(self, state: TransportState, version: Callable[[], str | None]) -> None:
        self._state = state
        self._version = version
        self._manager: AbstractAsyncContextManager[TransportStreams] = (
            stdio_transport(state) if state.launch.command else http_transport(state)
        )

    async def __aenter__(self) -> TransportStreams:
        incoming, outgoing = await self._manager.__aenter__()
        requests = UnansweredRequests()
        return ServerMessageStream(incoming, self._state, self._version, requests), ReplyStream(outgoing, requests)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._manager.__aexit__(kind, error, trace)


def _describe_error(error: BaseException) -> str:
    if isinstance(error, FileError) and error.where:  # such as the lock of the tokens
        return f"{error.what} ({error.where})"
    first_line = str(error).partition("\n")[0]
    if "validation error" in first_line:  # the SDK's text has internal names and a link
        return "its answer does not follow the protocol"
    return first_line or type(error).__name__


def _unwrap_group(error: BaseException) -> BaseException:
    """Return the first exception of a group, at any depth."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


MAX_TOOL_PAGES = 100
"""Pages in which a server may list its tools; a server that never ends its list is stopped there."""


async def fetch_tools(client: Client, state: TransportState) -> list[ToolDefinition]:
    """Return the tools of a server in its order, and store the unusable ones in `state.unusable`.

    Raises:
        ServerError: The list exceeds the size or page limit.
    """
    found: list[ToolDefinition] = []
    state.unusable.clear()
    cursor: str | None = None
    size = 0
    for _ in range(MAX_TOOL_PAGES):
        page = await client.list_tools(cursor=cursor)
        size += len(page.model_dump_json())
        if size > MAX_CATALOG_BYTES:
            raise state.build_error(f"describes its tools in more than {MAX_CATALOG_BYTES >> 20} MiB")
        found += (ToolDefinition(each.name, each.description or "", dict(each.input_schema)) for each in page.tools)
        cursor = page.next_cursor
        if not cursor:
            return found
    raise state.build_error(f"lists its tools in more than {MAX_TOOL_PAGES} pieces")


LIST_METHOD = "tools/list"
MAX_LISTED_TOOLS = 10_000
"""Tools of a list that are read: the errors of millions of invalid ones would fill the memory."""
MAX_REASON_CHARACTERS = 200
"""Characters of the reason why a tool cannot be used."""
_TOO_MANY_REASON = f"no more than {MAX_LISTED_TOOLS:,} are read"


MAX_UNANSWERED_REQUESTS = 1_000
"""Requests of a server that may wait for replies. The SDK keeps a task for each until the server reads the reply."""


class UnansweredRequests:
    """The requests of a server for which no reply was sent yet.

    A request that the server cancels gets no reply. The SDK cancels only the newest request with an id, so earlier ones
    with the same id count until they get a reply.
    """

    def __init__(self) -> None:
        self._count = 0
        self._ids: set[str] = set()

    @property
    def is_over_limit(self) -> bool:
        """True if more requests wait than `MAX_UNANSWERED_REQUESTS`."""
        return self._count > MAX_UNANSWERED_REQUESTS

    def add_received(self, message: mcp_types.JSONRPCMessage) -> None:
        """Count a request from the server, or forget one that it cancels."""
        if isinstance(message, mcp_types.JSONRPCRequest):
            self._count += 1
            self._ids.add(str(message.id))
        elif isinstance(message, mcp_types.JSONRPCNotification) and message.method == "notifications/cancelled":
            self._remove(str((message.params or {}).get("requestId")))

    def add_sent(self, message: mcp_types.JSONRPCMessage) -> None:
        """Forget the request that a sent message replies to."""
        if isinstance(message, mcp_types.JSONRPCResponse | mcp_types.JSONRPCError):
            self._ids.discard(str(message.id))
            self._count = max(self._count - 1, 0)

    def _remove(self, request_id: str) -> None:
        if request_id in self._ids:
            self._ids.remove(request_id)
            self._count -= 1


class ReplyStream:
    """A message stream to a server that counts the replies to its requests.

    Args:
        stream: Messages to the server.
        requests: The requests that wait for replies.
    """

    def __init__(self, stream: WriteStream[SessionMessage], requests: UnansweredRequests) -> None:
        self._stream = stream
        self._requests = requests

    async def send(self, item: SessionMessage, /) -> None:
        """Send a message. Waits until the transport takes it."""
        await self._stream.send(item)
        self._requests.add_sent(item.message)

    async def aclose(self) -> None:
        """Close the stream."""
        await self._stream.aclose()

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._stream.__aexit__(kind, error, trace)


class ServerMessageStream:
    """A server's message stream, without unusable tools, that ends if the server reads no replies.

    Args:
        stream: Messages from the server.
        state: The state of the transport, which gets the tools that were removed.
        version: Returns the negotiated protocol version; None before initialization.
        requests: The requests that wait for replies.
    """

    def __init__(
        self,
        stream: ReadStream[SessionMessage | Exception],
        state: TransportState,
        version: Callable[[], str | None],
        requests: UnansweredRequests,
    ) -> None:
        self._stream = stream
        self._state = state
        self._version = version
        self._requests = requests

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message. Raises EndOfStream if too many requests wait for replies."""
        item = await self._stream.receive()
        if isinstance(item, SessionMessage):
            self._requests.add_received(item.message)
            if self._requests.is_over_limit:
                what = f"sent more than {MAX_UNANSWERED_REQUESTS:,} requests without reading the replies"
                self._state.set_reason(what)
                raise anyio.EndOfStream
            self._remove_tools(item.message)
        return item

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        """Close the stream."""
        await self._stream.aclose()

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._stream.__aexit__(kind, error, trace)

    @property
    def last_context(self) -> Any:  # noqa: ANN401 - private to the SDK
        """The attribute that the SDK reads from its own streams."""
        return getattr(self._stream, "last_context", None)

    def _remove_tools(self, message: mcp_types.JSONRPCMessage) -> None:
        version = self._version()
        if version and isinstance(message, mcp_types.JSONRPCResponse):
            self._state.unusable += remove_unusable_tools(message.result, version)


def remove_unusable_tools(result: dict[str, Any], version: str) -> list[UnusableTool]:
    """Remove unusable tools from a tool list in place, and return them. Other results stay unchanged."""
    tools = result.get("tools")
    if not isinstance(tools, list):
        return []
    unread = len(tools) - MAX_LISTED_TOOLS
    result["tools"] = tools = tools[:MAX_LISTED_TOOLS]
    reasons = _find_rejections(result, version)
    result["tools"] = [tool for number, tool in enumerate(tools) if number not in reasons]
    unusable = [UnusableTool(_get_tool_name(tools[number], number), reasons[number]) for number in sorted(reasons)]
    return [*unusable, *([UnusableTool(f"the last {unread:,} of its list", _TOO_MANY_REASON)] if unread > 0 else [])]


def _find_rejections(result: dict[str, Any], version: str) -> dict[int, str]:
    """Return why the SDK would reject tools, by index. The SDK validates a result twice."""
    reasons: dict[int, str] = {}
    validators = (
        partial(validate_server_result, LIST_METHOD, version),
        partial(mcp_types.ListToolsResult.model_validate, by_name=False),
    )
    for validate in validators:
        try:
            validate(result)
        except ValidationError as error:
            for each in error.errors(include_url=False, include_context=False, include_input=False):
                match each["loc"]:
                    case ("tools", int(number), *path):
                        field = f"{'.'.join(map(str, path))}: " if path else ""
                        reasons.setdefault(number, f"{field}{each['msg']}"[:MAX_REASON_CHARACTERS])
        except (KeyError, ValueError):  # an unknown protocol version, or one without this method
            pass
    return reasons


def _get_tool_name(tool: Any, number: int) -> str:  # noqa: ANN401 - any JSON value
    name = tool.get("name") if isinstance(tool, dict) else None
    return name if isinstance(name, str) and name else f"number {number + 1} of its list"


class ToolOutcome(NamedTuple):
    """The result of a tool: text or parts, and whether the tool failed."""

    content: str | tuple[Text | Image | File, ...]
    is_error: bool = False


def convert_tool_result(result: mcp_types.CallToolResult) -> ToolOutcome:
    """Convert the SDK's result. Content of text blocks only becomes one text."""
    parts = tuple(_convert_block(block) for block in result.content)
    if not parts and result.structured_content is not None:
        return ToolOutcome(json.dumps(result.structured_content, ensure_ascii=False), result.is_error)
    if all(isinstance(part, Text) for part in parts):
        return ToolOutcome("\n".join(_list_texts(parts)), result.is_error)
    return ToolOutcome(parts, result.is_error)


def _list_texts(parts: Iterable[Text | Image | File]) -> Iterable[str]:
    return (part.text for part in parts if isinstance(part, Text))


def _convert_block(block: mcp_types.ContentBlock) -> Text | Image | File:
    if isinstance(block, mcp_types.TextContent):
        return Text(block.text)
    if isinstance(block, mcp_types.ImageContent):
        return Image(mime=block.mime_type, data=block.data)
    if isinstance(block, mcp_types.AudioContent):
        return File(mime=block.mime_type, data=block.data)
    if isinstance(block, mcp_types.EmbeddedResource):
        resource = block.resource
        if isinstance(resource, mcp_types.TextResourceContents):
            return Text(resource.text)
        return File(mime=resource.mime_type or "application/octet-stream", data=resource.blob)
    return Text(f"{block.name}: {block.uri}")
