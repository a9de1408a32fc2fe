"""Speaks with a program over its standard input and output.

The official SDK has a transport of its own. This one differs where a server misbehaves: a line has a largest size, what
is no message is dropped, and the program ends with all that it started within a second.
"""

from __future__ import annotations

import subprocess
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types
from mcp.shared.message import SessionMessage

from nexus_plugins.mcp._errors import ServerError
from nexus_plugins.mcp._processes import MARK, ask_to_end, kill_all, new_mark

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from anyio.abc import ByteReceiveStream, Process
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.client._transport import TransportStreams

    from nexus_plugins.mcp._launch import Launch

LONGEST_LINE = 16 * 1024 * 1024
"""Bytes of one message."""
MOST_NOISE = 1_000
"""Lines that are no message; a server that prints more of them is given up."""
LAST_WORDS = 4_096
"""Bytes that are kept of what a server complained about."""
GRACE = 0.3
"""Seconds in which a server may end by itself, and again after it was told to."""
GLANCE = 0.01


class Complaints:
    """The end of what a server printed to standard error."""

    def __init__(self) -> None:
        self._tail = b""

    def add(self, data: bytes) -> None:
        """Keep the end of what was printed."""
        self._tail = (self._tail + data)[-LAST_WORDS:]

    def __str__(self) -> str:
        lines = self._tail.decode("utf-8", "replace").splitlines()
        return "\n".join([line for line in lines if line.strip()][-3:])


@asynccontextmanager
async def stdio_transport(launch: Launch, complaints: Complaints) -> AsyncIterator[TransportStreams]:
    """Start a program, and end it.

    Raises:
        ServerError: It cannot be started.
    """
    mark = new_mark()
    process = await _start(launch, mark)
    incoming_in, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, outgoing_out = anyio.create_memory_object_stream[SessionMessage](0)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_read, process, incoming_in)
            tasks.start_soon(_write, process, outgoing_out, incoming_in)
            tasks.start_soon(_listen, process, complaints)
            try:
                yield incoming, outgoing
            finally:
                with anyio.CancelScope(shield=True):
                    await _end(process, mark)
                tasks.cancel_scope.cancel()
    finally:
        for stream in (incoming_in, incoming, outgoing, outgoing_out):
            stream.close()


async def _start(launch: Launch, mark: str) -> Process:
    try:
        return await anyio.open_process(
            list(launch.command),
            env={**launch.env, MARK: mark},
            cwd=launch.cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "its command cannot be used"
        raise ServerError(launch.name, f"cannot be started: {reason}", hint="look at its command and cwd") from None


async def _read(process: Process, incoming: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
    """Hand over what the server says until it ends, or says too much."""
    noise = 0
    with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
        async with incoming:
            async for line in _lines(process.stdout):
                message = _message(line)
                if message is not None:
                    await incoming.send(message)
                else:
                    noise += 1
                    if noise > MOST_NOISE:
                        return
                    await anyio.lowlevel.checkpoint()


async def _lines(stream: ByteReceiveStream | None) -> AsyncIterator[bytes]:
    """The lines of a stream; ends where one is too long."""
    begun: list[bytes] = []
    size = 0
    if stream is None:
        return
    async for chunk in stream:
        first, *rest = chunk.split(b"\n")
        begun.append(first)
        size += len(first)
        if size > LONGEST_LINE:
            return
        if rest:
            yield b"".join(begun)
            for line in rest[:-1]:
                yield line
            begun, size = [rest[-1]], len(rest[-1])


def _message(line: bytes) -> SessionMessage | None:
    if not line.lstrip().startswith(b"{"):
        return None
    try:
        return SessionMessage(mcp_types.jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError:
        return None


async def _write(
    process: Process,
    outgoing: MemoryObjectReceiveStream[SessionMessage],
    incoming: MemoryObjectSendStream[SessionMessage | Exception],
) -> None:
    try:
        async with outgoing:
            async for message in outgoing:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                if process.stdin is not None:
                    await process.stdin.send(f"{text}\n".encode())
    except (anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
        incoming.close()  # whoever waits for an answer learns that there will be none


async def _listen(process: Process, complaints: Complaints) -> None:
    if process.stderr is None:
        return
    with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
        async for data in process.stderr:
            complaints.add(data)


async def _end(process: Process, mark: str) -> None:
    """Close its input, then tell it to end, then end it, with everything that it started."""
    if process.stdin is not None:
        with anyio.move_on_after(GRACE), suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            await process.stdin.aclose()
    if not await _has_ended(process):
        ask_to_end(process.pid)
        await _has_ended(process)
    kill_all(process.pid, mark)
    await _has_ended(process)
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
                await stream.aclose()
    # Something that could not be ended may hold a pipe open, and the loop would wait for it.
    transport: Any = getattr(getattr(process, "_process", None), "_transport", None)
    if transport is not None:
        with suppress(OSError):
            transport.close()


async def _has_ended(process: Process) -> bool:
    # Not `wait()`, which waits for the end of the pipes too, and a child of the server may hold them open.
    for _ in range(round(GRACE / GLANCE)):
        if process.returncode is not None:
            return True
        await anyio.sleep(GLANCE)
    return process.returncode is not None
