"""Speaks with a client over standard input and output.

The official SDK has a transport of its own. This one differs where a client misbehaves or leaves: a line has a largest
size, so many requests are answered at a time and no more are read, what was asked before the end is answered after it,
and nobody waits for a thread that waits for input.
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

from nexus_plugins.mcp._aside import run_aside
from nexus_plugins.mcp._running.line import LARGEST_MESSAGE
from nexus_plugins.mcp._running.lines import Lines

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.client._transport import TransportStreams

MOST_AT_ONCE = 64
"""Requests that are answered at the same time; others wait where the client wrote them."""
LONGEST_ANSWER, LAST_WORDS = 30.0, 1.0
"""Seconds that are waited for the next answer before more is read, or before the end; and until the last is written."""


@asynccontextmanager
async def open_wire(source: int, sink: int) -> AsyncIterator[TransportStreams]:
    """What a client says and what it is told, as the SDK wants it. Ends when the client has left.

    Args:
        source: The descriptor that is read; whoever reads it closes it, when there is nothing more to read.
        sink: The descriptor that is written.
    """
    wire = _Wire(source, sink)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wire.write, tasks.cancel_scope)
        tasks.start_soon(wire.hear)
        wire.begin()
        try:
            yield wire.incoming, wire.outgoing
        finally:
            wire.close()
            with anyio.move_on_after(LAST_WORDS):
                await wire.silent.wait()
            tasks.cancel_scope.cancel()


class _Wire:
    def __init__(self, source: int, sink: int) -> None:
        # Not files: closing one waits for a thread that is reading or writing it, which may be forever.
        self._source = source
        self._sink = sink
        self._token = anyio.lowlevel.current_token()
        self._unanswered: Counter[mcp_types.RequestId] = Counter()
        self._answered = anyio.Event()
        self.silent = anyio.Event()
        self._room = threading.Semaphore()
        self._said: MemoryObjectSendStream[bytes | None]
        self._lines: MemoryObjectReceiveStream[bytes | None]
        self._heard: MemoryObjectSendStream[SessionMessage | Exception]
        self._told: MemoryObjectReceiveStream[SessionMessage]
        self._said, self._lines = anyio.create_memory_object_stream[bytes | None](1)
        self._heard, self.incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        self.outgoing, self._told = anyio.create_memory_object_stream[SessionMessage](MOST_AT_ONCE)

    def begin(self) -> None:
        """Begin to listen, in a thread that ends with the program, because it may wait for input forever."""
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        with suppress(BaseException):  # nobody listens any longer, or the loop is over, or there is no reading on
            for line in _read(self._source):
                self._room.acquire()
                self._hand_over(partial(self._said.send_nowait, line))
        with suppress(BaseException):  # as above
            self._hand_over(self._said.close)
        os.close(self._source)

    def _hand_over(self, work: Callable[[], None]) -> None:
        # A function, not a coroutine: one that the loop no longer runs would be left behind.
        anyio.from_thread.run_sync(work, token=self._token)

    async def hear(self) -> None:
        """Pass on what the client says, a line after the other, until it has left and has its answers."""
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):  # nobody listens any longer
            async for line in self._lines:
                self._room.release()
                await self._take(line)
            await self._wait_for_fewer_than(1)
            self._heard.close()

    async def _take(self, line: bytes | None) -> None:
        try:
            message = mcp_types.jsonrpc_message_adapter.validate_json(line or b"", by_name=False)
        except ValueError:
            if line is None or line.strip():
                error = mcp_types.ErrorData(code=mcp_types.PARSE_ERROR, message="this line is not a JSON-RPC message")
                await self.outgoing.send(SessionMessage(mcp_types.JSONRPCError(jsonrpc="2.0", id=None, error=error)))
            return
        await self._wait_for_fewer_than(MOST_AT_ONCE)
        if isinstance(message, mcp_types.JSONRPCRequest):
            self._unanswered[message.id] += 1
        elif isinstance(message, mcp_types.JSONRPCNotification) and message.method == "notifications/cancelled":
            self._settle((message.params or {}).get("requestId"))  # it will not be answered
        await self._heard.send(SessionMessage(message))

    async def _wait_for_fewer_than(self, number: int) -> None:
        while self._unanswered.total() >= number:
            with anyio.move_on_after(LONGEST_ANSWER) as waiting:
                await self._answered.wait()
            if waiting.cancelled_caught:  # whatever it was, it will not be answered
                self._unanswered.clear()

    async def write(self, scope: anyio.CancelScope) -> None:
        """Tell the client what there is to be told, until it no longer listens."""
        try:
            async for first in self._told:
                messages = [first]
                with suppress(anyio.WouldBlock, anyio.EndOfStream):
                    while len(messages) < MOST_AT_ONCE:
                        messages.append(self._told.receive_nowait())
                data = b"".join(_line(each) for each in messages)
                await run_aside(partial(self._put, data))
                for each in messages:
                    if isinstance(each.message, mcp_types.JSONRPCResponse | mcp_types.JSONRPCError):
                        self._settle(each.message.id)
        except OSError:
            scope.cancel()
        finally:
            self._told.close()
            self.silent.set()

    def _put(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._sink, rest) :]

    def _settle(self, number: object) -> None:
        if isinstance(number, int | str):
            self._unanswered -= Counter([number])  # which leaves out what is zero
        self._answered.set()
        self._answered = anyio.Event()

    def close(self) -> None:
        """Neither hear nor say anything more; what was said is still written."""
        for stream in (self._said, self._lines, self._heard, self.incoming, self.outgoing):
            stream.close()
        self._room.release()


def _read(source: int) -> Iterator[bytes | None]:
    lines = Lines(LARGEST_MESSAGE)
    while piece := os.read(source, 65536):
        yield from lines.add(piece)
    yield lines.end()


def _line(message: SessionMessage) -> bytes:
    try:
        return message.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
    except ValueError:  # half a character, which somebody said in a session
        text = json.dumps(message.message.model_dump(by_alias=True, exclude_unset=True, mode="python"))
        return text.encode() + b"\n"
