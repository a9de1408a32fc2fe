"""Speaks with a server over HTTP.

The official SDK does, and follows redirections only on the same machine. What is added here: an answer has a largest
size, nothing compressed is unpacked, a name leads to the same machine for as long as the link lasts, and whatever the
server refuses is told in words.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import httpx2
from mcp.client.sse import sse_client
from mcp.client.streamable_http import MCP_SESSION_ID, streamable_http_client

from nexus_plugins.mcp._aside import run_aside
from nexus_plugins.mcp._errors import RefusedError
from nexus_plugins.mcp._running.addresses import harmless_address
from nexus_plugins.mcp._running.line import LARGEST_MESSAGE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mcp.client._transport import TransportStreams

    from nexus_plugins.mcp._running.line import Line

FORBIDDEN = frozenset({401, 403, 407})
HOW_TO_ENTER = (
    'put a token into its headers: "Authorization": "Bearer ${NAME}", and set the variable NAME; '
    "Nexus does not sign in for you (OAuth): ask whoever runs the server where to get one"
)
NOT_ACCEPTED = (
    "the token in its header Authorization is not accepted, or has expired; get a new one, and set its variable"
)
OLDER = 'if it speaks the older SSE protocol, write "type": "sse" beside its address'
NO_TIMEOUT = httpx2.Timeout(None)
"""Every errand has a deadline of its own."""


@asynccontextmanager
async def http_transport(line: Line) -> AsyncIterator[TransportStreams]:
    """Connect to an address."""
    guard = _Guard(line)
    if line.launch.is_stream:

        def make(
            headers: dict[str, str] | None = None,  # noqa: ARG001 - what the SDK would make one with
            timeout: httpx2.Timeout | None = None,  # noqa: ARG001 - as above
            auth: httpx2.Auth | None = None,  # noqa: ARG001 - as above
        ) -> httpx2.AsyncClient:
            return guard.client()

        async with sse_client(line.launch.url, httpx_client_factory=make) as streams:
            yield streams
        return
    async with (
        guard.client() as client,
        streamable_http_client(line.launch.url, http_client=client, max_sse_event_size=LARGEST_MESSAGE) as streams,
    ):
        yield streams


class _Guard:
    """Looks at every request and every answer of one link."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._pinned = ""

    def client(self) -> httpx2.AsyncClient:
        """A client that is looked after."""
        return httpx2.AsyncClient(
            headers={**self._line.launch.headers, "Accept-Encoding": "identity"},
            timeout=NO_TIMEOUT,
            event_hooks={"request": [self._pin], "response": [self._look]},
        )

    async def _pin(self, request: httpx2.Request) -> None:
        """Connect to the address that was found harmless, not to whatever the name leads to a moment later."""
        host = request.url.host
        if self._line.launch.is_own:
            return
        if not self._pinned:
            found = await run_aside(partial(harmless_address, host))
            if found is None:
                what = "is not connected to: its address leads to this machine or to a link-local address"
                raise RefusedError(self._line.launch.name, what)
            self._pinned = found
        request.extensions = {**request.extensions, "sni_hostname": host, "nexus_url": request.url}
        request.url = request.url.copy_with(host=self._pinned)

    async def _look(self, response: httpx2.Response) -> None:
        request = response.request
        request.url = request.extensions.get("nexus_url", request.url)  # redirections are relative to what was asked
        if request.method == "POST" or self._line.launch.is_stream:
            self._note(response)
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            self._line.note("sends its answers compressed, although it was told not to")
            raise httpx2.DecodingError("compressed", request=request)
        if not _is_stream(response):
            response.stream = _Bounded(response.stream, self._line)

    def _note(self, response: httpx2.Response) -> None:
        """Remember what the answer says about whether there will be a better one."""
        code = response.status_code
        if response.has_redirect_location:
            self._line.note(f"redirects elsewhere (HTTP {code}), which is not followed", "look at its address")
        elif code in FORBIDDEN:
            self._line.note(*_closed_door(response, "authorization" in map(str.lower, self._line.launch.headers)))
        elif code == httpx2.codes.NOT_FOUND and MCP_SESSION_ID in response.request.headers:
            self._line.is_lost = True
            self._line.note("has lost the session (HTTP 404); the next call starts a new one")
        elif code >= httpx2.codes.BAD_REQUEST:
            self._line.note(f"responds with HTTP {code}", self._advice(response), is_all=self._line.launch.is_stream)
        elif response.request.method == "POST":
            self._line.note("")
        elif _is_stream(response):
            self._line.note("closed its event stream before it answered")
        else:
            self._line.note("does not answer with an event stream", "remove its type 'sse' to use streamable HTTP")

    def _advice(self, response: httpx2.Response) -> str | None:
        """What to do about an address that does not take what is sent to it."""
        is_missing = response.status_code == httpx2.codes.NOT_FOUND
        is_older = response.status_code == httpx2.codes.METHOD_NOT_ALLOWED or response.request.url.path.endswith("/sse")
        if is_older and not self._line.launch.is_stream:
            return OLDER
        return "look at its address" if is_missing else None


def _closed_door(response: httpx2.Response, has_token: bool) -> tuple[str, str]:
    """Why a server denies access, as far as it says so, and what to do about it."""
    code, challenge = response.status_code, response.headers.get("www-authenticate", "").lower()
    if has_token and "insufficient_scope" in challenge:
        return f"does not allow this (HTTP {code})", "its token lacks a scope that this needs; get another one"
    if not has_token and "resource_metadata" in challenge:
        return f"requires signing in (OAuth, HTTP {code})", HOW_TO_ENTER
    return f"denies access (HTTP {code})", NOT_ACCEPTED if has_token else HOW_TO_ENTER


def _is_stream(response: httpx2.Response) -> bool:
    kind: str = response.headers.get("content-type", "")
    return kind.lower().startswith("text/event-stream")


class _Bounded(httpx2.AsyncByteStream):
    """The body of an answer, up to the largest size."""

    def __init__(self, stream: Any, line: Line) -> None:  # noqa: ANN401 - a stream of either kind
        self._stream = stream
        self._line = line

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._stream:
            size += len(chunk)
            if size > LARGEST_MESSAGE:
                self._line.note(f"sent a message of more than {LARGEST_MESSAGE >> 20} MiB")
                raise httpx2.StreamError("too large")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
