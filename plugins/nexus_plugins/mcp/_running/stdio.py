"""Speaks with a program over its standard input and output.

The official SDK has a transport of its own. This one differs where a server misbehaves: a line has a largest size, what
is no message is dropped, and the program ends with all that it started within a second.
"""

from __future__ import annotations

import os
import subprocess
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types
from mcp.shared.message import SessionMessage

from nexus_core.plugin import visible_line
from nexus_plugins.mcp._aside import run_aside
from nexus_plugins.mcp._errors import RefusedError, ServerError
from nexus_plugins.mcp._running.line import LARGEST_MESSAGE
from nexus_plugins.mcp._running.lines import Lines
from nexus_plugins.mcp._running.processes import MARK, ask_to_end, family, kill_all, new_mark

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from anyio.abc import ByteReceiveStream, Process
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.client._transport import TransportStreams

    from nexus_plugins.mcp._running.launch import Launch
    from nexus_plugins.mcp._running.line import Line
    from nexus_plugins.mcp._running.processes import Known

MOST_NOISE = 1_000
"""Lines that are no message; a server that prints more of them is given up."""
GRACE = 0.3
"""Seconds in which a server may end by itself, and again after it was told to."""
HURRY = 0.2
"""The same for one that took too long already."""
FAREWELL = 2.0
"""The same for one that was killed: only a machine that is very busy takes so long to say so."""
GLANCE = 0.01


@asynccontextmanager
async def stdio_transport(line: Line) -> AsyncIterator[TransportStreams]:
    """Start a program, and end it.

    Raises:
        ServerError: It cannot be started, or its code was exchanged meanwhile.
    """
    mark = new_mark()
    process = await _start(line.launch, mark)
    line.cut = partial(_cut, process, mark)
    await _require_same_code(process, mark, line.launch)
    incoming_in, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, outgoing_out = anyio.create_memory_object_stream[SessionMessage](0)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_read, process, incoming_in, line)
            tasks.start_soon(_write, process, outgoing_out, incoming_in)
            tasks.start_soon(_listen, process, line)
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
        raise _not_started(launch, error) from None


async def _require_same_code(process: Process, mark: str, launch: Launch) -> None:
    """End a program again, before anything is said to it, if its code is no longer what was approved.

    Between the look at its code and its start, the code may have been exchanged, and put back since.
    """
    still_holds = False
    try:
        still_holds = await run_aside(launch.still_holds)
    finally:
        if not still_holds:
            with anyio.CancelScope(shield=True):
                await _end(process, mark, grace=0)
    if not still_holds:
        hint = (
            "`nexus trust diff` shows what differs; if the server itself writes to the directory of its program, "
            "let it write elsewhere"
        )
        raise RefusedError(launch.name, "is ended: its code changed while it was started", hint=hint)


def _not_started(launch: Launch, error: Exception) -> ServerError:
    """Why a program cannot be started, with its name if that is no secret."""
    reason, hint = getattr(error, "strerror", None) or "its command cannot be used", "look at its command and cwd"
    program = launch.command[0]
    if not launch.cwd.is_dir():
        reason, hint = "there is no such directory", "look at its cwd"
    elif isinstance(error, FileNotFoundError) and launch.mask(program) == program:
        reason, hint = f"there is no program {visible_line(program)!r}", "install it, or look at its command"
    return ServerError(launch.name, f"cannot be started: {reason}", hint=hint)


async def _read(process: Process, incoming: MemoryObjectSendStream[SessionMessage | Exception], line: Line) -> None:
    """Hand over what the server says until it ends, or says too much."""
    noise = 0
    with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
        async with incoming:
            async for said in _lines(process.stdout, line):
                message = _message(said)
                if message is not None:
                    await incoming.send(message)
                else:
                    noise += 1
                    if noise > MOST_NOISE:
                        line.note(f"printed more than {MOST_NOISE} lines that are not messages")
                        return
                    await anyio.lowlevel.checkpoint()


async def _lines(stream: ByteReceiveStream | None, line: Line) -> AsyncIterator[bytes]:
    """The lines of a stream; ends where one is too long."""
    if stream is None:
        return
    lines = Lines()
    async for piece in stream:
        for each in lines.add(piece):
            if each is None:
                break
            yield each
        else:
            if not lines.is_too_long:
                continue
        line.note(f"sent a message of more than {LARGEST_MESSAGE >> 20} MiB")
        return


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


async def _listen(process: Process, line: Line) -> None:
    if process.stderr is None:
        return
    with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
        async for data in process.stderr:
            line.complain(data)


async def _cut(process: Process, mark: str) -> None:
    """Tell a program to end, and end it, with everything that it started."""
    known = family(process.pid, mark)
    if process.returncode is None:
        ask_to_end(process.pid)
        await _has_ended(process, HURRY)
    _kill(process, mark, known)


def _kill(process: Process, mark: str, known: frozenset[Known]) -> None:
    # `process.kill()` only where there is no other way: it looks whether the program has ended, and the loop, which
    # waits for just that, would hear that there is no such program, and complain.
    if hasattr(os, "killpg"):
        kill_all(process.pid, mark, known)
    elif process.returncode is None:
        with suppress(ProcessLookupError, PermissionError):
            process.kill()


async def _end(process: Process, mark: str, grace: float = GRACE) -> None:
    """Close its input, then tell it to end, then end it, with everything that it started."""
    known = family(process.pid, mark)
    if not grace:
        _kill(process, mark, known)
    if process.stdin is not None:
        with anyio.move_on_after(GRACE), suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            await process.stdin.aclose()
    if not await _has_ended(process, grace):
        ask_to_end(process.pid)
        await _has_ended(process, grace)
    _kill(process, mark, known)
    await _has_ended(process, FAREWELL)
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
                await stream.aclose()
    # Something that could not be ended may hold a pipe open, and the loop would wait for it.
    transport: Any = getattr(getattr(process, "_process", None), "_transport", None)
    if transport is not None:
        with suppress(OSError):
            transport.close()


async def _has_ended(process: Process, seconds: float) -> bool:
    # Not `wait()`, which waits for the end of the pipes too, and a child of the server may hold them open.
    with anyio.move_on_after(seconds):
        while process.returncode is None:  # noqa: ASYNC110 - nobody tells
            await anyio.sleep(GLANCE)
    return process.returncode is not None
