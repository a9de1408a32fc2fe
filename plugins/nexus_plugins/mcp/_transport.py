"""Transports to MCP servers: a program's standard input and output, or HTTP.

The SDK has a stdio transport of its own. This one differs where a server misbehaves: a message has a maximum size,
output that is not a message is dropped, and the program ends within a second with every process that it started.
HTTP goes through the SDK, with a maximum size, no compression, and a host name that keeps its first safe address.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from uuid import uuid4

import anyio
import anyio.from_thread
import anyio.lowlevel
import httpx2
import mcp_types
from mcp.client.sse import sse_client
from mcp.client.streamable_http import MCP_SESSION_ID, streamable_http_client
from mcp.shared.message import SessionMessage

from nexus_core.plugin.text import visible_line
from nexus_plugins.mcp._errors import ServerError, ServerRefusedError
from nexus_plugins.mcp._launch import LOOPBACK_HOSTS, has_own_token, resolve_safe_address

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from anyio.abc import ByteReceiveStream, Process
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.client._transport import TransportStreams

    from nexus_plugins.mcp._launch import ServerLaunch
    from nexus_plugins.mcp._tools import UnusableTool

T = TypeVar("T")


async def run_in_daemon_thread(work: Callable[[], T]) -> T:
    """Run blocking work in a daemon thread and return its result or raise its exception.

    Cancellation returns at once. The thread delays neither the event loop nor the end of the program, as a DNS lookup
    in a pool thread would for as long as the network takes.
    """
    done = anyio.Event()
    token = anyio.lowlevel.current_token()
    results: list[T] = []
    failures: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:  # noqa: BLE001 - raised again in the waiting task
            failures.append(error)
        with suppress(RuntimeError):  # the event loop has ended
            anyio.from_thread.run_sync(done.set, token=token)

    threading.Thread(target=run, daemon=True).start()
    await done.wait()
    if failures:
        raise failures[0]
    return results[0]


# The SDK logs every error of a peer with a traceback, and Python prints records without a handler.
logging.getLogger("mcp").addHandler(logging.NullHandler())
logging.getLogger("client").addHandler(logging.NullHandler())  # the logger of the SDK's session

MAX_MESSAGE_BYTES = 16 * 1024 * 1024
"""Bytes of one message over any transport."""
MAX_STDERR_BYTES = 4_096
"""Bytes kept of the end of a server's standard error."""
MAX_REASON_CHARACTERS = 300
"""Characters of the SDK's or the server's text in an error."""


async def _do_nothing() -> None:
    pass


class TransportState:
    """State of the transport to one server: failure, standard error, and how to kill its process.

    Attributes:
        launch: The launch parameters of the server.
        is_lost: True if the server has ended or no longer knows the session.
        unusable: The tools that were removed from the list that the server sent last.
        kill: Ends the server's process at once, also while requests are pending.
    """

    def __init__(self, launch: ServerLaunch) -> None:
        self.launch = launch
        self.kill: Callable[[], Awaitable[None]] = _do_nothing
        self.is_lost = False
        self.unusable: list[UnusableTool] = []
        self._reason = ""
        self._hint: str | None = None
        self._is_complete = True
        self._stderr = b""
        self._tokens: set[str] = set()

    def set_reason(self, reason: str, hint: str | None = None, *, is_complete: bool = True) -> None:
        """Store why the server will not respond.

        Args:
            reason: The text of a later error; "" to reset it after a good response.
            hint: What to do about it.
            is_complete: False to append the error text of the SDK or the server.
        """
        self._reason, self._hint, self._is_complete = reason, hint, is_complete

    def add_token(self, token: str) -> None:
        """Keep a token out of later errors."""
        self._tokens.add(token)

    def mask(self, text: str) -> str:
        """Return a text with the secrets of the server and its tokens replaced by `***`."""
        for token in sorted(self._tokens, key=len, reverse=True):
            text = text.replace(token, "***")
        return self.launch.mask(text)

    def add_stderr(self, data: bytes) -> None:
        """Append output of the server's standard error, keeping only the end."""
        self._stderr = (self._stderr + data)[-MAX_STDERR_BYTES:]

    def build_error(self, what: str) -> ServerError:
        """Return the error of a failed request: the stored reason if there is one, else `what`, without secrets."""
        masked = self.mask(what)
        masked = masked if len(masked) <= MAX_REASON_CHARACTERS else f"{masked[:MAX_REASON_CHARACTERS]}…"
        if self._reason:
            reason = self._reason if self._is_complete else f"{self._reason}: {masked.removeprefix('failed: ')}"
            return ServerError(self.launch.name, reason, hint=self._hint)
        return self.build_timeout_error(masked)

    def build_timeout_error(self, what: str) -> ServerError:
        """Return an error with the last lines of the server's standard error as its hint."""
        lines = self._last_lines
        return ServerError(self.launch.name, what, hint=f"it says: {lines}" if lines else None)

    @property
    def _last_lines(self) -> str:
        # Masked before the text is split into lines, because a secret may have several.
        lines = map(str.strip, self.mask(self._stderr.decode("utf-8", "replace")).splitlines())
        return "\n  ".join([line for line in lines if line][-3:])


class LineBuffer:
    """Splits chunks of bytes into lines, in linear time and bounded memory.

    Args:
        limit: Maximum bytes of a line.
    """

    def __init__(self, limit: int = MAX_MESSAGE_BYTES) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0

    @property
    def is_too_long(self) -> bool:
        """True if the current line exceeds the limit. Its bytes are discarded."""
        return self._size > self._limit

    def add(self, chunk: bytes) -> Iterator[bytes | None]:
        """Add a chunk and yield the lines that end in it, or None for a line that is too long."""
        first, *rest = chunk.split(b"\n")
        self._append(first)
        for each in rest:
            yield self.end()
            self._append(each)

    def end(self) -> bytes | None:
        """Return the current line, None if it is too long, and start a new one."""
        line = None if self.is_too_long else b"".join(self._parts)
        self._parts, self._size = [], 0
        return line

    def _append(self, part: bytes) -> None:
        self._size += len(part)
        if not self.is_too_long:
            self._parts.append(part)
        else:
            self._parts.clear()


RUN_VARIABLE = "NEXUS_MCP_RUN"
"""Environment variable that marks all descendants of a server, also those that left its process group."""
MAX_KILL_ROUNDS = 20
"""Repetitions of the search for processes that were started while others were killed."""


class ProcessIdentity(NamedTuple):
    """A process: its id, and its start time, because ids are reused."""

    pid: int
    born: int

    @property
    def is_alive(self) -> bool:
        """True if the process still runs."""
        status = _read_process_status(self.pid)
        return status is not None and status[0] == self.born


def create_run_mark() -> str:
    """Return a unique value for `RUN_VARIABLE`."""
    return uuid4().hex


def terminate_group(leader: int) -> None:
    """Send SIGTERM to the process group of a server."""
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(leader, signal.SIGTERM)


def find_descendants(leader: int, mark: str) -> frozenset[ProcessIdentity]:
    """Return the running processes that descend from a server or carry its mark. Linux only, else empty."""
    if not sys.platform.startswith("linux"):
        return frozenset()
    wanted = f"{RUN_VARIABLE}={mark}".encode()
    parents: dict[ProcessIdentity, int] = {}
    marked: set[ProcessIdentity] = set()
    for pid in [int(entry) for entry in os.listdir("/proc") if entry.isdecimal()]:  # noqa: PTH208 - hundreds of them
        status = _read_process_status(pid)
        if status is None:
            continue
        known = ProcessIdentity(pid, status[0])
        parents[known] = status[1]
        with suppress(OSError):  # a process of another user
            if wanted in Path("/proc", str(pid), "environ").read_bytes().split(b"\0"):
                marked.add(known)
    return frozenset(marked | _collect_descendants({leader, *(each.pid for each in marked)}, parents))


def _read_process_status(pid: int) -> tuple[int, int] | None:
    """Return the start time and the parent of a process, or None if it has ended."""
    try:
        state, parent, *rest = Path("/proc", str(pid), "stat").read_bytes().rpartition(b")")[2].split()
    except (OSError, ValueError):
        return None
    return None if state in {b"Z", b"X"} else (int(rest[17]), int(parent))


def _collect_descendants(roots: set[int], parents: dict[ProcessIdentity, int]) -> set[ProcessIdentity]:
    found: set[ProcessIdentity] = set()
    while roots:
        fresh = {child for child, parent in parents.items() if parent in roots} - found
        found |= fresh
        roots = {each.pid for each in fresh}
    return found


def kill_process_tree(leader: int, mark: str, known: frozenset[ProcessIdentity] = frozenset()) -> None:
    """Kill the process group of a server, on Linux also its descendants and processes with its mark.

    Args:
        leader: Process id of the server.
        mark: Its value of `RUN_VARIABLE`.
        known: Its descendants before it was terminated. A process whose parent has ended gets another parent; if it
            also cleared its environment, nothing else identifies it.
    """
    for _ in range(MAX_KILL_ROUNDS):
        found = find_descendants(leader, mark) | {each for each in known if each.is_alive}
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(leader, signal.SIGKILL)
        for process in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process.pid, signal.SIGKILL)
        if not found:
            return


MAX_NOISE_LINES = 1_000
"""Lines that are not messages; a server that prints more of them is stopped."""
EXIT_GRACE_SECONDS = 0.3
"""Seconds to exit after its input is closed, and again after SIGTERM."""
ABORT_GRACE_SECONDS = 0.2
"""Seconds to exit after SIGTERM, for a server that has timed out already."""
KILL_WAIT_SECONDS = 2.0
"""Seconds to wait after SIGKILL; only a very busy machine needs that long."""
EXIT_POLL_SECONDS = 0.01


@asynccontextmanager
async def stdio_transport(state: TransportState) -> AsyncIterator[TransportStreams]:
    """Start a server's program, open its streams, and end it with the block.

    Raises:
        ServerError: The program cannot be started, or its code changed meanwhile.
    """
    mark = create_run_mark()
    process = await _start_process(state.launch, mark)
    state.kill = partial(_terminate_process, process, mark)
    await _require_unchanged_code(process, mark, state.launch)
    incoming_in, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, outgoing_out = anyio.create_memory_object_stream[SessionMessage](0)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_read_stdout, process, incoming_in, state)
            tasks.start_soon(_write_stdin, process, outgoing_out, incoming_in)
            tasks.start_soon(_read_stderr, process, state)
            try:
                yield incoming, outgoing
            finally:
                with anyio.CancelScope(shield=True):
                    await _end_process(process, mark)
                tasks.cancel_scope.cancel()
    finally:
        for stream in (incoming_in, incoming, outgoing, outgoing_out):
            stream.close()


async def _start_process(launch: ServerLaunch, mark: str) -> Process:
    try:
        return await anyio.open_process(
            list(launch.command),
            env={**launch.env, RUN_VARIABLE: mark},
            cwd=launch.cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise _explain_start_failure(launch, error) from None


async def _require_unchanged_code(process: Process, mark: str, launch: ServerLaunch) -> None:
    """Kill a program before it gets any message if its code is no longer the approved one.

    Between the check of its code and its start, the code may have been replaced, and restored since.
    """
    still_holds = False
    try:
        still_holds = await run_in_daemon_thread(launch.still_holds)
    finally:
        if not still_holds:
            with anyio.CancelScope(shield=True):
                await _end_process(process, mark, grace=0)
    if not still_holds:
        hint = (
            "`nexus trust diff` shows what differs; if the server itself writes to the directory of its program, "
            "let it write elsewhere"
        )
        raise ServerRefusedError(launch.name, "is ended: its code changed while it was started", hint=hint)


def _explain_start_failure(launch: ServerLaunch, error: Exception) -> ServerError:
    """Return why a program cannot be started, with its name unless that holds a secret."""
    reason, hint = getattr(error, "strerror", None) or "its command cannot be used", "check its command and cwd"
    program = launch.command[0]
    if not launch.cwd.is_dir():
        reason, hint = "there is no such directory", "check its cwd"
    elif isinstance(error, FileNotFoundError) and launch.mask(program) == program:
        reason, hint = f"there is no program {visible_line(program)!r}", "install it, or check its command"
    return ServerError(launch.name, f"cannot be started: {reason}", hint=hint)


async def _read_stdout(
    process: Process, incoming: MemoryObjectSendStream[SessionMessage | Exception], state: TransportState
) -> None:
    """Forward the server's messages until it ends or exceeds a limit."""
    noise_lines = 0
    with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
        async with incoming:
            async for line in _split_lines(process.stdout, state):
                message = _parse_message(line)
                if message is not None:
                    await incoming.send(message)
                else:
                    noise_lines += 1
                    if noise_lines > MAX_NOISE_LINES:
                        state.set_reason(f"printed more than {MAX_NOISE_LINES} lines that are not messages")
                        return
                    await anyio.lowlevel.checkpoint()


async def _split_lines(stream: ByteReceiveStream | None, state: TransportState) -> AsyncIterator[bytes]:
    """Yield the lines of a stream, up to the first that is too long."""
    if stream is None:
        return
    lines = LineBuffer()
    async for chunk in stream:
        for each in lines.add(chunk):
            if each is None:
                break
            yield each
        else:
            if not lines.is_too_long:
                continue
        state.set_reason(f"sent a message of more than {MAX_MESSAGE_BYTES >> 20} MiB")
        return


def _parse_message(line: bytes) -> SessionMessage | None:
    if not line.lstrip().startswith(b"{"):
        return None
    try:
        return SessionMessage(mcp_types.jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError:
        return None


async def _write_stdin(
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
        incoming.close()  # ends the requests that wait for a response


async def _read_stderr(process: Process, state: TransportState) -> None:
    if process.stderr is None:
        return
    with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
        async for data in process.stderr:
            state.add_stderr(data)


async def _terminate_process(process: Process, mark: str) -> None:
    """Terminate a program, then kill it with its descendants."""
    known = find_descendants(process.pid, mark)
    if process.returncode is None:
        terminate_group(process.pid)
        await _wait_for_exit(process, ABORT_GRACE_SECONDS)
    _kill_process(process, mark, known)


def _kill_process(process: Process, mark: str, known: frozenset[ProcessIdentity]) -> None:
    # `process.kill()` only without process groups: it polls the program's exit status, so that the event loop, which
    # waits for the same status, would find no such process and log a warning.
    if hasattr(os, "killpg"):
        kill_process_tree(process.pid, mark, known)
    elif process.returncode is None:
        with suppress(ProcessLookupError, PermissionError):
            process.kill()


async def _end_process(process: Process, mark: str, grace: float = EXIT_GRACE_SECONDS) -> None:
    """Close a program's input, then terminate it, then kill it with its descendants."""
    known = find_descendants(process.pid, mark)
    if not grace:
        _kill_process(process, mark, known)
    if process.stdin is not None:
        with (
            anyio.move_on_after(EXIT_GRACE_SECONDS),
            suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError),
        ):
            await process.stdin.aclose()
    if not await _wait_for_exit(process, grace):
        terminate_group(process.pid)
        await _wait_for_exit(process, grace)
    _kill_process(process, mark, known)
    await _wait_for_exit(process, KILL_WAIT_SECONDS)
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
                await stream.aclose()
    # A process that could not be killed may hold a pipe open, and the loop would wait for it.
    transport: Any = getattr(getattr(process, "_process", None), "_transport", None)
    if transport is not None:
        with suppress(OSError):
            transport.close()


async def _wait_for_exit(process: Process, seconds: float) -> bool:
    # Not `wait()`: it also waits for the end of the pipes, and a child of the server may hold them open.
    with anyio.move_on_after(seconds):
        while process.returncode is None:  # noqa: ASYNC110 - no event is set
            await anyio.sleep(EXIT_POLL_SECONDS)
    return process.returncode is not None


ACCESS_DENIED_STATUSES = frozenset({401, 403, 407})
LOGIN_HINT = "nexus mcp login {}"
TOKEN_HINT = (
    "`nexus mcp login {}` signs in, if it supports OAuth; or put a token into its headers: "  # noqa: S105 - a hint
    '"Authorization": "Bearer ${{NAME}}", and set the variable NAME'
)
TOKEN_REJECTED_HINT = (
    "the token in its header Authorization is not accepted, or has expired; get a new one, and set its variable"  # noqa: S105 - a hint
)
SSE_HINT = 'if it speaks the older SSE protocol, write "type": "sse" beside its address'
NO_TIMEOUT = httpx2.Timeout(None)
"""None, because every request has its own deadline."""


@asynccontextmanager
async def http_transport(state: TransportState) -> AsyncIterator[TransportStreams]:
    """Connect to a server's URL over streamable HTTP or SSE."""
    guard = _HttpGuard(state)
    if state.launch.is_stream:

        def make(
            headers: dict[str, str] | None = None,  # noqa: ARG001 - the SDK passes it
            timeout: httpx2.Timeout | None = None,  # noqa: ARG001 - the SDK passes it
            auth: httpx2.Auth | None = None,  # noqa: ARG001 - the SDK passes it
        ) -> httpx2.AsyncClient:
            return guard.client()

        async with sse_client(state.launch.url, httpx_client_factory=make) as streams:
            yield streams
        return
    async with (
        guard.client() as client,
        streamable_http_client(state.launch.url, http_client=client, max_sse_event_size=MAX_MESSAGE_BYTES) as streams,
    ):
        yield streams


def open_http_client(state: TransportState, auth: httpx2.Auth) -> httpx2.AsyncClient:
    """Return a client for signing in to a server, with the checks of a connection."""
    return _HttpGuard(state).client(auth)


class _HttpGuard:
    """Checks every HTTP request and response of one connection."""

    def __init__(self, state: TransportState) -> None:
        self._state = state
        self._pinned: dict[str, str] = {}
        self._host = httpx2.URL(state.launch.url).host
        self._has_login = False

    def client(self, auth: httpx2.Auth | None = None) -> httpx2.AsyncClient:
        """Return an HTTP client whose requests and responses are checked.

        Args:
            auth: Signs in; None to use the tokens that are stored, if there are any.
        """
        return httpx2.AsyncClient(
            headers={**self._state.launch.headers, "Accept-Encoding": "identity"},
            timeout=NO_TIMEOUT,
            event_hooks={"request": [self._check_request], "response": [self._check_response]},
            auth=auth or self._load_login(),
        )

    def _load_login(self) -> httpx2.Auth | None:
        """Return what adds the stored tokens to requests, or None if there are none."""
        path = self._state.launch.token_file
        if path is None or not os.path.lexists(path):
            return None
        from nexus_plugins.mcp._oauth import StoredTokenAuth, TokenFile  # few servers need it

        storage = TokenFile(path, self._state.launch.name, self._state.launch.url, self._state.add_token)
        self._has_login = storage.load()
        return StoredTokenAuth(storage) if self._has_login else None

    async def _check_request(self, request: httpx2.Request) -> None:
        """Refuse other hosts without encryption, and send a request to the address that was checked first."""
        host, name = request.url.host, self._state.launch.name
        # Only an authorization server is another host: what is sent there must stay secret, too.
        is_local = {host, self._host} <= LOOPBACK_HOSTS
        if host != self._host and not is_local and (request.url.scheme != "https" or host in LOOPBACK_HOSTS):
            raise ServerRefusedError(name, f"is not signed in to: {host!r} is local, or not encrypted")
        if self._state.launch.is_own:
            return
        if host not in self._pinned:  # DNS may return another address later
            found = await run_in_daemon_thread(partial(resolve_safe_address, host))
            if found is None:
                what = "is not connected to: its address leads to this machine or to a link-local address"
                raise ServerRefusedError(name, what)
            self._pinned[host] = found
        request.extensions = {**request.extensions, "sni_hostname": host, "nexus_url": request.url}
        request.url = request.url.copy_with(host=self._pinned[host])

    async def _check_response(self, response: httpx2.Response) -> None:
        request = response.request
        request.url = request.extensions.get("nexus_url", request.url)  # redirects are relative to the original URL
        is_renewal = request.headers.get("content-type") == "application/x-www-form-urlencoded"
        if not is_renewal and (request.method == "POST" or self._state.launch.is_stream):
            self._store_reason(response)
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            self._state.set_reason("sends compressed responses, although the request forbids it")
            raise httpx2.DecodingError("compressed", request=request)
        if not _is_event_stream(response):
            response.stream = _BoundedStream(response.stream, self._state)

    def _store_reason(self, response: httpx2.Response) -> None:
        """Store what a response says about why requests fail, or reset it after a good one."""
        code = response.status_code
        if response.has_redirect_location:
            self._state.set_reason(f"redirects elsewhere (HTTP {code}), which is not followed", "check its address")
        elif code in ACCESS_DENIED_STATUSES:
            launch = self._state.launch
            if self._has_login:
                what = f"does not accept your login, or it has expired (HTTP {code})"
                self._state.set_reason(what, LOGIN_HINT.format(launch.name))
            else:
                self._state.set_reason(*_explain_denied_access(response, launch.name, has_own_token(launch.headers)))
        elif code == httpx2.codes.NOT_FOUND and MCP_SESSION_ID in response.request.headers:
            self._state.is_lost = True
            self._state.set_reason("has lost the session (HTTP 404); the next call starts a new one")
        elif code >= httpx2.codes.BAD_REQUEST:
            is_stream = self._state.launch.is_stream
            self._state.set_reason(f"responds with HTTP {code}", self._find_hint(response), is_complete=is_stream)
        elif response.request.method == "POST":
            self._state.set_reason("")
        elif _is_event_stream(response):
            self._state.set_reason("closed its event stream before it answered")
        else:
            self._state.set_reason(
                "does not answer with an event stream", "remove its type 'sse' to use streamable HTTP"
            )

    def _find_hint(self, response: httpx2.Response) -> str | None:
        """Return the hint for a URL that rejects requests."""
        is_missing = response.status_code == httpx2.codes.NOT_FOUND
        is_older = response.status_code == httpx2.codes.METHOD_NOT_ALLOWED or response.request.url.path.endswith("/sse")
        if is_older and not self._state.launch.is_stream:
            return SSE_HINT
        return "check its address" if is_missing else None


def _explain_denied_access(response: httpx2.Response, name: str, has_token: bool) -> tuple[str, str]:
    """Return why a server denies access, by its challenge, and what to do about it."""
    code, challenge = response.status_code, response.headers.get("www-authenticate", "").lower()
    if has_token and "insufficient_scope" in challenge:
        return f"does not allow this (HTTP {code})", "its token lacks a scope that this needs; get another one"
    if not has_token and "resource_metadata" in challenge:
        return f"requires signing in (OAuth, HTTP {code})", LOGIN_HINT.format(name)
    return f"denies access (HTTP {code})", TOKEN_REJECTED_HINT if has_token else TOKEN_HINT.format(name)


def _is_event_stream(response: httpx2.Response) -> bool:
    kind: str = response.headers.get("content-type", "")
    return kind.lower().startswith("text/event-stream")


class _BoundedStream(httpx2.AsyncByteStream):
    """A response body with a maximum size."""

    def __init__(self, stream: Any, state: TransportState) -> None:  # noqa: ANN401 - a stream of either kind
        self._stream = stream
        self._state = state

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._stream:
            size += len(chunk)
            if size > MAX_MESSAGE_BYTES:
                self._state.set_reason(f"sent a message of more than {MAX_MESSAGE_BYTES >> 20} MiB")
                raise httpx2.StreamError("too large")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
