"""Speaks with a server over HTTP."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import httpx2
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mcp.client._transport import TransportStreams

    from nexus_plugins.mcp._launch import Launch


@asynccontextmanager
async def http_transport(launch: Launch, seconds: float) -> AsyncIterator[TransportStreams]:
    """Connect to an address; redirections are followed only on the same machine, which the SDK sees to."""
    limits = httpx2.Timeout(seconds, read=None)  # what waits for an answer has a limit of its own
    if launch.is_stream:
        async with sse_client(launch.url, headers=dict(launch.headers), timeout=seconds) as streams:
            yield streams
        return
    async with (
        httpx2.AsyncClient(headers=dict(launch.headers), timeout=limits) as client,
        streamable_http_client(launch.url, http_client=client) as streams,
    ):
        yield streams
