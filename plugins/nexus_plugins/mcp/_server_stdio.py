"""Stdio transport of the MCP server, with a message size limit and back pressure.

The SDK's `stdio_server` lacks what the tests of this server prove: a maximum size of a line, a pause in reading while
many requests are unanswered, answers to every request made before the end of input, and an end while a client neither
reads nor writes. These are all of this module but twenty lines, so it does not build on the SDK's.
"""

from __future__ import annotations

import json
import os
import threading
from collections import Counter
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

import anyio
import anyio.from_thread
import anyio.lowlevel
import mcp_types
from mcp.shared.message import SessionMessage

from nexus_plugins.mcp._transport import MAX_MESSAGE_BYTES, LineBuffer, run_in_daemon_thread

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.client._transport import TransportStreams

MAX_PENDING_REQUESTS = 64
"""Requests without a response; more of them are not read from the client's pipe yet."""
MAX_RESPONSE_SECONDS = 30.0
"""Seconds to wait for the next response before reading continues, or before the end."""
FLUSH_SECONDS = 1.0
"""Seconds to wait at the end until the last responses are written."""


@asynccontextmanager
async def open_wire(source: int, sink: int) -> AsyncIterator[TransportStreams]:
    """Open the SDK's message streams over two file descriptors. They end when the client disconnects.

    Args:
        source: File descriptor to read; the reading thread closes it at the end of input.
        sink: File descriptor to write.
    """
    wire = _StdioWire(source, sink)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wire.write_messages, tasks.cancel_scope)
        tasks.start_soon(wire.read_messages)
        wire.start_reader()
        try:
            yield wire.incoming, wire.outgoing
        finally:
            wire.close()
            with anyio.move_on_after(FLUSH_SECONDS):
                await wire.flushed.wait()
            tasks.cancel_scope.cancel()


class _StdioWire:
    def __init__(self, source: int, sink: int) -> None:
        # Descriptors, not file objects: closing a file waits for a thread that reads or writes it, maybe forever.
        self._source = source
        self._sink = sink
        self._token = anyio.lowlevel.current_token()
        self._unanswered: Counter[mcp_types.RequestId] = Counter()
        self._answered = anyio.Event()
        self.flushed = anyio.Event()
        self._free_slots = threading.Semaphore()
        self._line_sender: MemoryObjectSendStream[bytes | None]
        self._lines: MemoryObjectReceiveStream[bytes | None]
        self._message_sender: MemoryObjectSendStream[SessionMessage | Exception]
        self._responses: MemoryObjectReceiveStream[SessionMessage]
        self._line_sender, self._lines = anyio.create_memory_object_stream[bytes | None](1)
        self._message_sender, self.incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        self.outgoing, self._responses = anyio.create_memory_object_stream[SessionMessage](MAX_PENDING_REQUESTS)

    def start_reader(self) -> None:
        """Start reading in a daemon thread, because a read may block forever."""
        threading.Thread(target=self._read_source, daemon=True).start()

    def _read_source(self) -> None:
        with suppress(BaseException):  # the stream is closed, the event loop has ended, or reading failed
            for line in _read_lines(self._source):
                self._free_slots.acquire()
                self._run_in_loop(partial(self._line_sender.send_nowait, line))
        with suppress(BaseException):  # the event loop has ended
            self._run_in_loop(self._line_sender.close)
        os.close(self._source)

    def _run_in_loop(self, work: Callable[[], None]) -> None:
        # A function, not a coroutine: a coroutine that an ended loop no longer runs would never be awaited.
        anyio.from_thread.run_sync(work, token=self._token)

    async def read_messages(self) -> None:
        """Forward the client's messages until the input ends and all requests have a response."""
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):  # the server has ended
            async for line in self._lines:
                self._free_slots.release()
                await self._forward_line(line)
            await self._wait_for_fewer_than(1)
            self._message_sender.close()

    async def _forward_line(self, line: bytes | None) -> None:
        try:
            message = mcp_types.jsonrpc_message_adapter.validate_json(line or b"", by_name=False)
        except ValueError:
            if line is None or line.strip():
                error = mcp_types.ErrorData(code=mcp_types.PARSE_ERROR, message="this line is not a JSON-RPC message")
                await self.outgoing.send(SessionMessage(mcp_types.JSONRPCError(jsonrpc="2.0", id=None, error=error)))
            return
        await self._wait_for_fewer_than(MAX_PENDING_REQUESTS)
        if isinstance(message, mcp_types.JSONRPCRequest):
            self._unanswered[message.id] += 1
        elif isinstance(message, mcp_types.JSONRPCNotification) and message.method == "notifications/cancelled":
            self._settle((message.params or {}).get("requestId"))  # a cancelled request gets no response
        await self._message_sender.send(SessionMessage(message))

    async def _wait_for_fewer_than(self, number: int) -> None:
        while self._unanswered.total() >= number:
            with anyio.move_on_after(MAX_RESPONSE_SECONDS) as waiting:
                await self._answered.wait()
            if waiting.cancelled_caught:  # these requests are taken to stay without a response
                self._unanswered.clear()

    async def write_messages(self, scope: anyio.CancelScope) -> None:
        """Write messages to the client until it closes its end."""
        try:
            async for first in self._responses:
                messages = [first]
                with suppress(anyio.WouldBlock, anyio.EndOfStream):
                    while len(messages) < MAX_PENDING_REQUESTS:
                        messages.append(self._responses.receive_nowait())
                data = b"".join(_encode_message(each) for each in messages)
                await run_in_daemon_thread(partial(self._write, data))
                for each in messages:
                    if isinstance(each.message, mcp_types.JSONRPCResponse | mcp_types.JSONRPCError):
                        self._settle(each.message.id)
        except OSError:
            scope.cancel()
        finally:
            self._responses.close()
            self.flushed.set()

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._sink, rest) :]

    def _settle(self, number: object) -> None:
        if isinstance(number, int | str):
            self._unanswered -= Counter([number])  # subtraction removes zero counts
        self._answered.set()
        self._answered = anyio.Event()

    def close(self) -> None:
        """Close all streams. Responses that were sent before are still written."""
        for stream in (self._line_sender, self._lines, self._message_sender, self.incoming, self.outgoing):
            stream.close()
        self._free_slots.release()


def _read_lines(source: int) -> Iterator[bytes | None]:
    lines = LineBuffer(MAX_MESSAGE_BYTES)
    while chunk := os.read(source, 65536):
        yield from lines.add(chunk)
    yield lines.end()


def _encode_message(message: SessionMessage) -> bytes:
    try:
        return message.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
    except ValueError:  # a lone surrogate in the text of a session
        text = json.dumps(message.message.model_dump(by_alias=True, exclude_unset=True, mode="python"))
        return text.encode() + b"\n"
