"""RpcServer: the methods of a pool as JSON-RPC 2.0 over HTTP on the loopback interface.

A request is a POST to `/` with the token. `send` and `resume` answer with server-sent events if the client accepts
them: a notification `event` for each event, then the response. Otherwise they answer when the turn has ended.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import socket
from contextlib import nullcontext, suppress
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Any

import httptools
import uvicorn
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from nexus_core.errors import NexusError, UsageError
from nexus_core.rpc.dispatcher import STREAMS, Dispatcher
from nexus_core.rpc.protocol import (
    MAX_BATCH,
    MAX_BODY_BYTES,
    SHUTTING_DOWN,
    InvalidRequestError,
    build_error,
    build_event,
    build_result,
    encode_json,
    encode_sse,
    get_error_code,
    parse_json_body,
    parse_request,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractContextManager

    from starlette.types import Receive, Scope, Send
    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

    from nexus_core.rpc.pool import AgentPool
    from nexus_core.rpc.protocol import RpcRequest

LOOPBACK = "127.0.0.1"
DEFAULT_PORT = 8765
MAX_CONNECTIONS = 64
"""Connections at once; more get 503."""
MAX_HEADER_BYTES = 32 * 1024
MAX_OVERHEAD_BYTES = 2 * MAX_HEADER_BYTES
"""Bytes in a row that are not body. The parser has no limit; more get 400 and the end of the connection."""
READ_SECONDS = 10.0
"""For the headers of a request, and for its body: a client that sends them slowly must not hold a connection."""
SHUTDOWN_SECONDS = 5.0
"""For clients to read their responses when the server ends; one that has stopped reading must not keep it alive."""
PING_SECONDS = 15.0
"""Between two comments in a stream without events, so that both sides notice when the other is gone."""
_LOGGER = logging.getLogger("nexus_core.rpc")
_EVENT_STREAM = "text/event-stream"
_PING = b": still running\n\n"


class RpcServer:
    """A server for the agents of a pool.

    Attributes:
        token: The token that every request must have.

    Args:
        pool: The pool. The server closes it when it ends.
        token: The token; None to make one of 256 bits.
    """

    def __init__(self, pool: AgentPool, token: str | None = None) -> None:
        self.token = token or token_urlsafe(32)
        self._pool = pool
        self._authorization = f"Bearer {self.token}".encode("latin-1")
        self._hosts: frozenset[bytes] = frozenset()
        self._server: uvicorn.Server | None = None
        self._is_ending = False
        self._dispatcher = Dispatcher(pool, on_shutdown=self.stop)

    async def serve(self, listener: socket.socket) -> None:
        """Answer requests until `stop`, then cancel running turns, which stores what was said, and close the pool.

        Args:
            listener: A bound socket of the loopback interface; it is closed at the end.
        """
        port = listener.getsockname()[1]
        names = (LOOPBACK, "localhost")
        self._hosts = frozenset(f"{name}:{port}".encode() for name in names)
        if port == 80:  # noqa: PLR2004 - HTTP's own, which clients leave out
            self._hosts |= {name.encode() for name in names}
        config = uvicorn.Config(
            self,
            http=_TimedProtocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            limit_concurrency=MAX_CONNECTIONS + 1,  # uvicorn refuses from that number on
            timeout_keep_alive=int(2 * READ_SECONDS),
        )
        self._server = _ClosingServer(config, self._close_pool)
        if self._is_ending:
            self._server.should_exit = True
        try:
            await self._server.serve(sockets=[listener])
        finally:
            await self._close_pool()

    def stop(self) -> None:
        """End the server. A second call no longer waits for clients to read their responses."""
        server = self._server
        if server is not None:
            server.force_exit = server.should_exit
            server.should_exit = True
        self._is_ending = True

    async def _close_pool(self) -> None:
        self._is_ending = True
        for agent in self._pool:
            if agent.waiting:
                _LOGGER.warning("agent %s: %d messages that waited were not delivered", agent.id, agent.waiting)
        await self._pool.close()

    # ---- HTTP -------------------------------------------------------------------------------------------------------

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request, as ASGI wants it."""
        request = Request(scope, receive)
        try:
            refusal = self._refuse(request)
            response = await self._respond(request) if refusal is None else await _close_after(refusal, request)
        except (ClientDisconnect, TimeoutError):
            response = Response(status_code=408, headers={"Connection": "close"})
        await response(scope, receive, send)

    def _refuse(self, request: Request) -> Response | None:
        """Return the response to a request that no method may see; None if there is nothing wrong with it.

        A wrong token is refused before anything else is looked at, so that nothing is learned without one.
        """
        headers = request.scope["headers"]
        given = [value for name, value in headers if name == b"authorization"]
        if len(given) != 1 or not hmac.compare_digest(given[0], self._authorization):
            return Response(status_code=401, headers={"WWW-Authenticate": "Bearer"})
        hosts = [value.lower() for name, value in headers if name == b"host"]
        if len(hosts) != 1 or hosts[0] not in self._hosts:  # a browser that was sent here under another name
            return Response(status_code=421)
        if sum(len(name) + len(value) for name, value in headers) > MAX_HEADER_BYTES:
            return Response(status_code=431)
        if any(name == b"origin" for name, _ in headers):  # only browsers send it
            return Response(status_code=403)
        return _refuse_form(request)

    async def _respond(self, request: Request) -> Response:
        try:
            async with asyncio.timeout(READ_SECONDS):
                body = await _read_body(request)
        except InvalidRequestError as error:
            return _write_json(build_error(None, error), status=413)
        try:
            value = parse_json_body(body)
            if not isinstance(value, list):
                return await self._respond_to_one(value, accepts_events=_accepts_events(request))
            _check_batch(value)
        except InvalidRequestError as error:
            return _write_json(build_error(error.request_id, error))
        responses = [response for each in value if (response := await self._answer(each)) is not None]
        return _write_json(responses) if responses else Response(status_code=204)

    async def _respond_to_one(self, value: object, *, accepts_events: bool) -> Response:
        if accepts_events:
            request = parse_request(value)
            if request.method in STREAMS and not request.is_notification:
                try:
                    self._ensure_running()
                    events = self._dispatcher.stream(request.method, request.params)
                except Exception as error:  # noqa: BLE001 - the response says it
                    return _write_json(self._describe_error(request, error))
                return StreamingResponse(
                    self._stream(request, events), media_type=_EVENT_STREAM, headers={"Cache-Control": "no-store"}
                )
        answer = await self._answer(value)
        return Response(status_code=204) if answer is None else _write_json(answer)

    # ---- methods ----------------------------------------------------------------------------------------------------

    async def _answer(self, value: object) -> dict[str, Any] | None:
        """Return the response to one request; None for a notification."""
        try:
            request = parse_request(value)
        except InvalidRequestError as error:
            return build_error(error.request_id, error)
        try:
            self._ensure_running()
            if request.method not in STREAMS:
                result = await self._dispatcher.dispatch(request.method, request.params)
            else:
                events = self._dispatcher.stream(request.method, request.params)
                if request.is_notification:
                    return None  # the turn runs whether or not its events are read
                result = await _read_last_event(events)
        except Exception as error:  # noqa: BLE001 - the response says it
            response = self._describe_error(request, error)
        else:
            response = build_result(request.id, result)
        return None if request.is_notification else response

    async def _stream(self, request: RpcRequest, events: AsyncIterator[dict[str, Any]]) -> AsyncIterator[bytes]:
        last: dict[str, Any] | None = None
        following: asyncio.Future[dict[str, Any]] | None = None
        try:
            while True:
                following = following or asyncio.ensure_future(anext(events))
                done, _ = await asyncio.wait([following], timeout=PING_SECONDS)
                if not done:
                    yield _PING
                    continue
                last, following = following.result(), None
                yield encode_sse(build_event(request.id, last))
        except StopAsyncIteration:
            yield encode_sse(build_result(request.id, last))
        except Exception as error:  # noqa: BLE001 - the response says it
            yield encode_sse(self._describe_error(request, error))
        finally:
            if following is not None and not following.done():
                following.cancel()

    def _ensure_running(self) -> None:
        if self._is_ending:
            raise _EndingError("the server is shutting down", hint="`nexus serve` starts another")

    def _describe_error(self, request: RpcRequest, error: Exception) -> dict[str, Any]:
        code = SHUTTING_DOWN if isinstance(error, _EndingError) else get_error_code(error)
        if not isinstance(error, NexusError):
            _LOGGER.error("%s failed", request.method, exc_info=error)
        return build_error(request.id, error, code)


class _EndingError(NexusError):
    """Raised when a method is called while the server ends."""


class _ClosingServer(uvicorn.Server):
    """A server that ends running turns before it waits for their responses, and leaves signals to its caller."""

    def __init__(self, config: uvicorn.Config, close: Callable[[], Any]) -> None:
        super().__init__(config)
        self._close = close

    def capture_signals(self) -> AbstractContextManager[None]:  # type: ignore[override]  # a generator there
        return nullcontext()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        await self._close()
        # Not uvicorn's own limit: it cancels the responses, and each would be logged with a traceback.
        limit = asyncio.get_running_loop().call_later(SHUTDOWN_SECONDS, self._abort_connections)
        try:
            await super().shutdown(sockets)
        finally:
            limit.cancel()

    def _abort_connections(self) -> None:
        for connection in tuple(self.server_state.connections):
            transport = getattr(connection, "transport", None)
            if transport is not None:
                transport.abort()


class _BatchingTransport:
    """A transport that sends what is written at the same moment at once: the headers of a response with its body."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._pieces: list[bytes] = []

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - the rest of a transport
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if not self._pieces:
            self._loop.call_soon(self._flush)
        self._pieces.append(data)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        pieces, self._pieces = self._pieces, []
        if pieces and not self._transport.is_closing():
            self._transport.write(b"".join(pieces))


class _TimedProtocol(HttpToolsProtocol):
    """HTTP/1.1 with a limit for the time between two requests and for the headers of one."""

    cycle: RequestResponseCycle | None  # type: ignore[assignment]  # of the newest request; None before the first
    _deadline: asyncio.TimerHandle | None = None
    _overhead = 0  # bytes since the last ones of a body: headers, trailers or the frame of a chunk
    _refusal: str | None = None  # the error in what was received; nothing more is read

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        joined: Any = _BatchingTransport(transport, self.loop)
        super().connection_made(joined)
        self._restart()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._refusal is not None:
            return
        self._unset_keepalive_if_required()
        self._overhead += len(data)
        try:
            while data:
                data = self._parse(data)
        except httptools.HttpParserError:
            self._refuse("Invalid HTTP request received.")
        else:
            if self._overhead > MAX_OVERHEAD_BYTES:
                self._refuse("The headers are too large.")

    def on_headers_complete(self) -> None:
        if not self.parser.should_upgrade():
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._overhead = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        if not self.parser.should_upgrade():
            self._overhead = 0
            super().on_message_complete()

    def on_response_complete(self) -> None:
        was_last = not self.pipeline
        super().on_response_complete()
        if self._refusal is not None and was_last and not self.transport.is_closing():
            self.send_400_response(self._refusal)

    def _parse(self, data: bytes) -> bytes:
        """Parse bytes, and return those that are to be parsed next.

        A request that offers another protocol, such as HTTP/2 by Java's client, is read as if it did not. The parser
        takes what follows the headers for that protocol, so a new one gets them again without the offer.
        """
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as offer:
            method = self.parser.get_method()
            if method == b"CONNECT":
                raise httptools.HttpParserError("this server is not a proxy") from None
            first = b"%s %s HTTP/%s\r\n" % (method, self.url, self.parser.get_http_version().encode())
            headers = (b"%s: %s\r\n" % each for each in self.headers if each[0] != b"upgrade")
            self.parser = httptools.HttpRequestParser(self)
            self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn's
            return b"".join([first, *headers, b"\r\n", data[offer.args[0] :]])
        return b""

    def _refuse(self, reason: str) -> None:
        """Read nothing more, and answer 400 when the complete requests before the error have their responses."""
        self._refusal = reason
        is_partial = self.cycle is not None and self.cycle.more_body
        if self.pipeline:  # waits for the request before it
            if is_partial:
                self.pipeline.popleft()
        elif is_partial or self.cycle is None or self.cycle.response_complete:
            self.send_400_response(reason)

    def _restart(self) -> None:
        self._deadline = self.loop.call_later(READ_SECONDS, self._check, self.cycle)

    def _check(self, before: RequestResponseCycle | None) -> None:
        # Since the last look no request has begun, and none is being answered.
        was_answered = before is None or before.response_complete
        if was_answered and self.cycle is before:
            self.transport.close()
        elif not self.transport.is_closing():
            self._restart()


# ---- bodies ---------------------------------------------------------------------------------------------------------


def _refuse_form(request: Request) -> Response | None:
    """Return the response to a request that is not a POST of JSON to `/`; None if it is."""
    if request.scope["path"] != "/":
        return Response(status_code=404)
    if request.method != "POST":
        return Response(status_code=405, headers={"Allow": "POST"})
    kind, _, _ = request.headers.get("content-type", "").partition(";")
    if kind.strip().lower() != "application/json":
        return Response(status_code=415)
    return None


async def _close_after(refusal: Response, request: Request) -> Response:
    """Return a response to a refused request that ends its connection, after the body or the time for it.

    Without the end, a client that need not know the token could hold the connection with a body that never comes; and
    without the wait, one that is still sending would lose the response.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(READ_SECONDS):
            async for _ in request.stream():
                pass
    refusal.headers["Connection"] = "close"
    return refusal


async def _read_body(request: Request) -> bytes:
    """Return the body of a request.

    Raises:
        InvalidRequestError: It is too large.
    """
    size = 0
    pieces: list[bytes] = []
    async for piece in request.stream():
        size += len(piece)
        # The rest is read nevertheless: a client that is still sending would lose the response.
        if size <= MAX_BODY_BYTES:
            pieces.append(piece)
    if size > MAX_BODY_BYTES:
        raise InvalidRequestError(f"the body has {size:,} bytes, more than {MAX_BODY_BYTES:,}")
    return b"".join(pieces)


def _check_batch(batch: list[Any]) -> None:
    if not batch:
        raise InvalidRequestError("a batch must have requests")
    if len(batch) > MAX_BATCH:
        raise InvalidRequestError(f"a batch must have at most {MAX_BATCH} requests, not {len(batch):,}")


def _accepts_events(request: Request) -> bool:
    return any(
        part.partition(";")[0].strip().lower() == _EVENT_STREAM for part in request.headers.get("accept", "").split(",")
    )


def _write_json(value: object, *, status: int = 200) -> Response:
    headers = {"Cache-Control": "no-store"}
    return Response(encode_json(value), status_code=status, media_type="application/json", headers=headers)


async def _read_last_event(events: AsyncIterator[dict[str, Any]]) -> dict[str, Any] | None:
    last = None
    async for event in events:
        last = event
    return last


def open_listener(port: int) -> socket.socket:
    """Return a socket that is bound to a port of the loopback interface; 0 for a free one.

    Raises:
        UsageError: The port is in use, or may not be used.
    """
    # With the protocol named, asyncio switches Nagle's algorithm off; otherwise each response waits 40 ms.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((LOOPBACK, port))
        listener.listen()
    except OSError as error:
        listener.close()
        raise UsageError(
            f"cannot listen on port {port}: {(error.strerror or str(error)).lower()}",
            hint="--port 0 takes a free port; `nexus rpc` finds it",
        ) from None
    listener.setblocking(False)  # noqa: FBT003 - the name of the method says it
    return listener
