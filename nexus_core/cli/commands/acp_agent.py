"""`nexus acp`: agents of Nexus for editors, over the Agent Client Protocol."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections import Counter
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import acp
from acp.schema import (
    AgentCapabilities,
    AllowedOutcome,
    CloseSessionResponse,
    ForkSessionResponse,
    Implementation,
    ListSessionsResponse,
    McpCapabilities,
    PermissionOption,
    PromptCapabilities,
    ResumeSessionResponse,
    SessionCapabilities,
    SessionCloseCapabilities,
    SessionForkCapabilities,
    SessionInfo,
    SessionListCapabilities,
    SessionResumeCapabilities,
    ToolCallUpdate,
)
from acp.schema import Usage as AcpUsage

from nexus_core._version import __version__
from nexus_core.agents import DoneEvent, ReasoningDelta, TextDelta, ToolCallEvent, ToolResultEvent, tool
from nexus_core.agents.toolsets import ToolsetRunner
from nexus_core.cli.commands.acp_servers import EditorServers, read_editor_servers
from nexus_core.cli.commands.chat import name_new_session
from nexus_core.cli.context import redirect_plugin_output
from nexus_core.errors import NexusError, ProviderError
from nexus_core.history.groups import is_session_start
from nexus_core.nexus import Nexus
from nexus_core.text.safety import visible_line
from nexus_core.transcripts.acp import read_block
from nexus_core.types.messages import Image, Message, Reasoning, Text

if TYPE_CHECKING:
    from collections.abc import Callable

    from acp.interfaces import Client

    from nexus_core.agents import AsyncAgent
    from nexus_core.agents.tools import FunctionTool
    from nexus_core.cli.context import CliContext
    from nexus_core.thread.state import RecordedCall
    from nexus_core.types.messages import ToolResult, Usage

_PAGE_SIZE = 100
_MAX_CURSOR_DIGITS = 9
_CURSOR = re.compile(f"[0-9]{{1,{_MAX_CURSOR_DIGITS}}}")
_MAX_MESSAGE_BYTES = 64 * 1024 * 1024
"""Of one line of the protocol: a prompt may hold images."""
_ALLOW, _ALLOW_ALWAYS, _REJECT = "allow", "allow-always", "reject"
_PLAN_TOOL = "update_plan"
_STOP_REASONS = {"length": "max_tokens", "refusal": "refusal"}


def serve_editor(cli: CliContext, ledger: str | None, given: dict[str, Any], *, editor_servers: bool) -> None:
    """Serve an editor on standard input and output until it closes them.

    Args:
        cli: The command.
        ledger: The URL of the ledger; None for the user's own.
        given: Options of the agents: model, provider, role, level.
        editor_servers: False to start no MCP servers that the editor passes.
    """
    output = cli.console.output
    with redirect_plugin_output(), EditorAgent(cli, ledger, given, editor_servers=editor_servers) as agent:
        asyncio.run(_serve(agent, output.fileno()))


async def _serve(agent: EditorAgent, output: int) -> None:
    loop = asyncio.get_running_loop()
    reader = MessageReader(agent.warn)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(0, "rb", closefd=False))
    transport, protocol = await loop.connect_write_pipe(
        asyncio.streams.FlowControlMixin, os.fdopen(os.dup(output), "wb")
    )
    writer = asyncio.StreamWriter(transport, protocol, None, loop)
    # Listing, forking and resuming sessions are part of the protocol that may still change.
    served: Any = agent  # it has every method of the protocol that it announces
    await acp.run_agent(served, writer, reader, use_unstable_protocol=True)


class MessageReader(asyncio.StreamReader):
    """Lines of an editor without those that are no message, each of which would end the official package's loop.

    Args:
        warn: Called with what is wrong with a line that is left out.
    """

    def __init__(self, warn: Callable[[str], None]) -> None:
        super().__init__(limit=_MAX_MESSAGE_BYTES)
        self._warn = warn

    async def readuntil(self, separator: Any = b"\n") -> bytes:  # noqa: ANN401 - as in the base class
        """Return the next line that is a message."""
        while True:
            try:
                line = await self._read_whole(separator)
            except asyncio.IncompleteReadError as error:
                if self._is_message(error.partial):
                    raise
                raise asyncio.IncompleteReadError(b"", None) from None
            if self._is_message(line):
                return line

    async def _read_whole(self, separator: Any) -> bytes:  # noqa: ANN401 - as above
        """Return a line of any length."""
        pieces: list[bytes] = []
        while True:
            try:
                pieces.append(await super().readuntil(separator))
            except asyncio.LimitOverrunError as error:
                pieces.append(await self.readexactly(error.consumed))
            except asyncio.IncompleteReadError as error:
                raise asyncio.IncompleteReadError(b"".join([*pieces, error.partial]), None) from None
            else:
                return b"".join(pieces)

    def _is_message(self, line: bytes) -> bool:
        """True for an object with an id and an error that the package can use; warn of other lines with text."""
        if not line.strip():
            return False
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            message = None
        if (
            isinstance(message, dict)
            and isinstance(message.get("id"), str | int | float | None)
            and isinstance(message.get("error"), dict | None)
        ):
            return True
        self._warn("a line of the editor is left out: it is no message of the protocol")
        return False


@dataclass(frozen=True)
class PlanStep:
    """A step of a plan that the editor shows.

    Attributes:
        content: The text of the step.
        status: How far it is.
        priority: How important it is.
    """

    content: str
    status: Literal["pending", "in_progress", "completed"] = "pending"
    priority: Literal["high", "medium", "low"] = "medium"


class OpenDirectory(NamedTuple):
    """A directory with the servers that an editor has passed for it.

    Attributes:
        nexus: Its Nexus.
        toolsets: What runs the tools of plugins there.
        servers: The editor's servers.
    """

    nexus: Nexus
    toolsets: ToolsetRunner
    servers: EditorServers


class EditorAgent:
    """The agent's side of the protocol: one agent of Nexus for each session that an editor opens.

    Args:
        cli: The command.
        ledger: As for `serve_editor`.
        given: As there.
        editor_servers: As there.
    """

    def __init__(self, cli: CliContext, ledger: str | None, given: dict[str, Any], *, editor_servers: bool) -> None:
        self._uses_servers = editor_servers
        self._cli = cli
        self._ledger = ledger
        self._given = given
        self._agents: dict[str, AsyncAgent] = {}
        self._turns: Counter[str] = Counter()  # by session, its prompts that are not answered yet
        self._always: set[tuple[str, str]] = set()  # sessions, and tools that the user allows there
        self._names: set[str] = set()  # of sessions begun here: the ledger has them from their first message on
        self._opening = asyncio.Lock()  # requests run at the same time: one names a session or opens a directory
        self._directories: dict[str, OpenDirectory] = {}
        self._used: dict[str, str] = {}  # by session, the key of its directory
        self._stack = ExitStack()
        self._client: Client | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def on_connect(self, conn: Client) -> None:
        """Keep the connection to the editor."""
        self._client = conn

    def warn(self, message: str) -> None:
        """Tell the user something on standard error."""
        self._cli.console.warning(visible_line(message))

    # ---- the protocol -----------------------------------------------------------------------------------------------

    async def initialize(self, protocol_version: int, **_: Any) -> acp.InitializeResponse:  # noqa: ANN401, ARG002 - the protocol's
        """Return what the agent can do."""
        sessions = SessionCapabilities(
            list=SessionListCapabilities(),
            fork=SessionForkCapabilities(),
            resume=SessionResumeCapabilities(),
            close=SessionCloseCapabilities(),
        )
        return acp.InitializeResponse(
            protocol_version=acp.PROTOCOL_VERSION,
            agent_capabilities=AgentCapabilities(
                load_session=True,
                prompt_capabilities=PromptCapabilities(image=True, embedded_context=True),
                mcp_capabilities=McpCapabilities(http=True, sse=True),
                session_capabilities=sessions,
            ),
            agent_info=Implementation(name="nexus", version=__version__),
        )

    async def authenticate(self, method_id: str, **_: Any) -> None:  # noqa: ANN401 - as above
        """Do nothing: keys come from the environment."""

    async def new_session(self, cwd: str, mcp_servers: list[Any] | None = None, **_: Any) -> acp.NewSessionResponse:  # noqa: ANN401 - as above
        """Begin a session in a directory, with the servers that the editor passes."""
        opened = await self._open_directory(cwd, mcp_servers)
        name = await self._reserve_name(opened.nexus)
        await self._open_agent(name, cwd, mcp_servers)
        return acp.NewSessionResponse(session_id=name)

    async def load_session(
        self,
        cwd: str,
        session_id: str,
        mcp_servers: list[Any] | None = None,
        **_: Any,  # noqa: ANN401 - as above
    ) -> acp.LoadSessionResponse:
        """Continue a session, and repeat its messages for the editor."""
        nexus = await self._require_session(session_id, cwd)
        await self._open_agent(session_id, cwd, mcp_servers)
        messages = await asyncio.to_thread(lambda: nexus.session(session_id, any_directory=True).original_messages)
        for message in messages:
            if not is_session_start(message):
                await self._repeat(session_id, message)
        return acp.LoadSessionResponse()

    async def resume_session(
        self,
        session_id: str,
        cwd: str,
        mcp_servers: list[Any] | None = None,
        **_: Any,  # noqa: ANN401 - as above
    ) -> ResumeSessionResponse:
        """Continue a session without repeating its messages."""
        await self._require_session(session_id, cwd)
        await self._open_agent(session_id, cwd, mcp_servers)
        return ResumeSessionResponse()

    async def fork_session(
        self,
        session_id: str,
        cwd: str,
        mcp_servers: list[Any] | None = None,
        **_: Any,  # noqa: ANN401 - as above
    ) -> ForkSessionResponse:
        """Continue in a copy of a session."""
        nexus = await self._require_session(session_id, cwd)
        name = await self._reserve_name(nexus)
        original = nexus.session(session_id, any_directory=True)
        await self._open_agent(name, cwd, mcp_servers, fork=lambda: original.fork(name))
        return ForkSessionResponse(session_id=name)

    async def list_sessions(
        self,
        cwd: str | None = None,
        cursor: str | None = None,
        **_: Any,  # noqa: ANN401 - as above
    ) -> ListSessionsResponse:
        """Return the sessions of a directory, or all of them, the newest first."""
        if cursor is not None and not _CURSOR.fullmatch(cursor):
            raise _invalid(f"there is no such cursor: {cursor[:_MAX_CURSOR_DIGITS]!r}")
        opened = next(iter(self._directories.values()), None) or await self._open_directory(str(self._cli.cwd))
        with _protocol_errors():
            records = await asyncio.to_thread(lambda: list(opened.nexus.ledger.sessions()))
        found = [each for each in records if cwd is None or each.payload.cwd == cwd]
        found.sort(key=lambda each: (-each.updated, each.label))
        start = int(cursor or 0)
        page = [
            SessionInfo(
                session_id=each.label,
                cwd=each.payload.cwd or "/",
                title=each.label,
                updated_at=datetime.fromtimestamp(each.updated / 1000, UTC).isoformat(),
            )
            for each in found[start : start + _PAGE_SIZE]
        ]
        more = str(start + _PAGE_SIZE) if start + _PAGE_SIZE < len(found) else None
        return ListSessionsResponse(sessions=page, next_cursor=more)

    async def close_session(self, session_id: str, **_: Any) -> CloseSessionResponse:  # noqa: ANN401 - as above
        """End the turn of a session, and forget it with the servers that no other one uses. It stays in the ledger."""
        self._get_agent(session_id).cancel()
        del self._agents[session_id]
        key = self._used.pop(session_id)
        if key not in self._used.values() and (runner := self._directories[key].toolsets.find_servers()) is not None:
            for name in self._directories[key].servers.names:
                with suppress(NexusError):
                    await asyncio.to_thread(runner.disconnect, name)
        return CloseSessionResponse()

    async def cancel(self, session_id: str, **_: Any) -> None:  # noqa: ANN401 - as above
        """End the turn of a session and store the partial reply."""
        if session_id in self._agents:
            self._agents[session_id].cancel()

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> acp.PromptResponse:  # noqa: ANN401 - as above
        """Run a turn, and send its events to the editor as they happen."""
        agent = self._get_agent(session_id)
        blocks = [each.model_dump(mode="json", by_alias=True, exclude_none=True) for each in prompt]
        parts = [part for block in blocks if (part := read_block(block)) is not None]
        if not parts:
            raise _invalid("the prompt has no content")
        done: DoneEvent | None = None
        self._turns[session_id] += 1
        try:
            with _protocol_errors():
                async for event in agent.run(Message("user", parts), interrupt=True):
                    if isinstance(event, DoneEvent):
                        done = event
                    elif (update := _to_update(event)) is not None:
                        await self._send(session_id, update)
        finally:
            self._turns[session_id] -= 1
        if done is None or done.cancelled:
            return acp.PromptResponse(stop_reason="cancelled")
        reason: Any = _STOP_REASONS.get(done.stop, "end_turn")
        return acp.PromptResponse(stop_reason=reason, usage=_to_usage(done.usage))

    # ---- sessions ---------------------------------------------------------------------------------------------------

    async def _open_directory(self, cwd: str, servers: list[Any] | None = None) -> OpenDirectory:
        """Return a directory with the servers that the editor passes; the same for the same servers."""
        if not os.path.isabs(cwd):  # noqa: PTH117 - it is not used as a path yet
            raise _invalid(f"cwd must be an absolute path, not {cwd!r}")
        definitions, unusable = self._read_servers(servers)
        for name in unusable:
            self._warn_unused(name, "its transport is not supported")
        key = self._build_key(cwd, definitions)
        async with self._opening:
            if key not in self._directories:
                with _protocol_errors():
                    opened = await asyncio.to_thread(self._load_directory, Path(cwd), EditorServers(definitions))
                self._directories[key] = opened
        return self._directories[key]

    def _load_directory(self, cwd: Path, servers: EditorServers) -> OpenDirectory:
        first = next(iter(self._directories.values()), None)
        ledger = self._ledger if first is None else first.nexus.ledger  # one connection for all directories
        plugins = [servers] if servers.names else []
        with ExitStack() as stack:
            nexus = stack.enter_context(
                Nexus(cwd, home=self._cli.home, ledger=ledger, report=self._cli.report, plugins=plugins)
            )
            nexus.load()  # a directory with settings or servers that cannot be used is not kept
            toolsets = stack.enter_context(ToolsetRunner(nexus.host, nexus))
            self._stack.push(stack.pop_all())
        return OpenDirectory(nexus, toolsets, servers)

    def _read_servers(self, servers: list[Any] | None) -> tuple[list[dict[str, Any]], list[str]]:
        return read_editor_servers(servers or ()) if self._uses_servers else ([], [])

    def _build_key(self, cwd: str, definitions: list[dict[str, Any]]) -> str:
        return json.dumps([cwd, definitions], sort_keys=True)

    async def _reserve_name(self, nexus: Nexus) -> str:
        """Return a name that no session has, and give it to no other one."""
        async with self._opening:
            with _protocol_errors():
                name = await asyncio.to_thread(name_new_session, nexus, self._names)
            self._names.add(name)
        return name

    async def _require_session(self, name: str, cwd: str) -> Nexus:
        nexus = (await self._open_directory(cwd)).nexus
        with _protocol_errors():
            record = await asyncio.to_thread(nexus.ledger.session, name)
        if record is None:
            raise _invalid(f"there is no session {name!r}")
        return nexus

    def _keeps_agent(self, name: str, key: str) -> bool:
        """True if a turn of the session runs, which only its own agent can cancel.

        Raises:
            RequestError: It runs in another directory, or with other servers.
        """
        if name not in self._agents or not self._turns[name]:
            return False
        if self._used[name] != key:
            what = f"a turn of session {name!r} runs in another directory or with other servers; cancel it first"
            raise _invalid(what)
        return True

    async def _open_agent(
        self, name: str, cwd: str, servers: list[Any] | None = None, *, fork: Callable[[], object] | None = None
    ) -> None:
        """Open the agent of a session. `fork` copies the session last, when nothing can fail any more."""
        key = self._build_key(cwd, self._read_servers(servers)[0])
        if self._keeps_agent(name, key):
            return
        opened = await self._open_directory(cwd, servers)
        with _protocol_errors():
            await asyncio.to_thread(self._connect_servers, opened)
        loop = asyncio.get_running_loop()
        ask = partial(self._ask, loop, name)
        tools = [opened.toolsets, self._build_plan_tool(loop, name)]
        open_agent = partial(
            opened.nexus.async_agent, name, tools=tools, ask=ask, mode="repl", any_directory=True, **self._given
        )
        with _protocol_errors():
            agent = await asyncio.to_thread(open_agent)
            if fork is not None:
                await asyncio.to_thread(fork)
        if not self._keeps_agent(name, key):  # a turn may have begun meanwhile
            self._agents[name], self._used[name] = agent, key

    def _connect_servers(self, opened: OpenDirectory) -> None:
        """Start the editor's servers and no others, so that the model is offered their tools from the first turn."""
        if not opened.servers.names:
            return
        runner = opened.toolsets.find_servers()
        loaded = {each.config.name: each for each in opened.nexus.load().servers}
        for name in opened.servers.names:
            found = loaded.get(name)
            if runner is None:
                self._warn_unused(name, "the extra `mcp` is not installed: pip install 'nexusctx[mcp]'")
            elif found is None or not opened.servers.is_own(found):
                where = "" if found is None else f" in {found.source_path}"
                self._warn_unused(name, f"another server has that name{where}")
            else:
                try:
                    runner.connect(name)
                except NexusError as error:
                    self._warn_unused(name, str(error))

    def _warn_unused(self, name: str, reason: str) -> None:
        self.warn(f"the editor's MCP server {name!r} is not used: {reason}")

    def _build_plan_tool(self, loop: asyncio.AbstractEventLoop, session: str) -> FunctionTool:
        """Return the tool with which a model shows its plan in the editor."""

        def update_plan(steps: list[PlanStep]) -> str:
            """Show the user your plan for a task of several steps. Call it again when a step begins or ends.

            Args:
                steps: All steps of the plan, in order.
            """
            asyncio.run_coroutine_threadsafe(self._send(session, _to_plan(steps)), loop).result()
            return "The plan is shown."

        return tool(update_plan, name=_PLAN_TOOL, risk="low")

    def _get_agent(self, name: str) -> AsyncAgent:
        if name not in self._agents:
            raise _invalid(f"session {name!r} is not open")
        return self._agents[name]

    # ---- the editor -------------------------------------------------------------------------------------------------

    async def _send(self, session: str, update: Any) -> None:  # noqa: ANN401 - one of the protocol's many types
        assert self._client is not None  # noqa: S101 - set when the connection begins
        await self._client.session_update(session, update)

    async def _repeat(self, session: str, message: Message) -> None:
        if message.role == "user":
            await self._send(session, acp.update_user_message_text(message.content))
            return
        for part in message.parts:
            if isinstance(part, Text) and part.text:
                await self._send(session, acp.update_agent_message_text(part.text))
            elif isinstance(part, Reasoning) and part.text:
                await self._send(session, acp.update_agent_thought_text(part.text))
        for call in message.tool_calls:
            if call.name == _PLAN_TOOL:
                continue
            await self._send(session, acp.start_tool_call(call.id or call.name, call.name, raw_input=call.arguments))
        for result in message.tool_results:
            if result.name != _PLAN_TOOL:
                await self._send(session, _to_result(result.call_id or result.name, result))

    def _ask(self, loop: asyncio.AbstractEventLoop, session: str, call: RecordedCall, reason: str) -> bool:
        """Ask the user in the editor. Runs in a thread of its own."""
        if (session, call.name) in self._always:
            return True
        return asyncio.run_coroutine_threadsafe(self._request_permission(session, call, reason), loop).result()

    async def _request_permission(self, session: str, call: RecordedCall, reason: str) -> bool:
        assert self._client is not None  # noqa: S101 - as above
        options = [
            PermissionOption(option_id=_ALLOW, name="Run it", kind="allow_once"),
            PermissionOption(option_id=_ALLOW_ALWAYS, name="Always in this session", kind="allow_always"),
            PermissionOption(option_id=_REJECT, name="Do not run it", kind="reject_once"),
        ]
        title = f"{call.name} ({reason})"
        about = ToolCallUpdate(tool_call_id=_get_call_id(call), title=title, raw_input=call.arguments)
        answer = await self._client.request_permission(session, about, options)
        chosen = answer.outcome.option_id if isinstance(answer.outcome, AllowedOutcome) else _REJECT
        if chosen == _ALLOW_ALWAYS:
            self._always.add((session, call.name))
        return chosen in {_ALLOW, _ALLOW_ALWAYS}


def _to_update(event: object) -> Any:  # noqa: ANN401 - as above
    """Return an event of a turn as an update of the protocol; None for events that it does not have."""
    if isinstance(event, TextDelta):
        return acp.update_agent_message_text(event.text)
    if isinstance(event, ReasoningDelta):
        return acp.update_agent_thought_text(event.text)
    if isinstance(event, ToolCallEvent | ToolResultEvent) and event.call.name == _PLAN_TOOL:
        return None  # the editor shows the plan itself
    if isinstance(event, ToolCallEvent):
        call = event.call
        return acp.start_tool_call(_get_call_id(call), call.name, status="pending", raw_input=call.arguments)
    if isinstance(event, ToolResultEvent):
        return _to_result(_get_call_id(event.call), event.result)
    return None


def _to_result(call: str, result: ToolResult) -> Any:  # noqa: ANN401 - as above
    """Return the update for a tool result, with its texts and images."""
    blocks: list[Any] = []
    for part in result.parts:
        if isinstance(part, Image) and part.data:
            blocks.append(acp.image_block(part.data, part.mime or "image/png"))
        elif isinstance(part, Text):
            blocks.append(acp.text_block(part.text))
    content = [acp.tool_content(each) for each in blocks or [acp.text_block(result.text)]]
    return acp.update_tool_call(call, status="failed" if result.is_error else "completed", content=content)


def _to_plan(steps: list[PlanStep]) -> Any:  # noqa: ANN401 - as above
    return acp.update_plan([acp.plan_entry(each.content, priority=each.priority, status=each.status) for each in steps])


def _to_usage(usage: Usage) -> AcpUsage:
    return AcpUsage(
        total_tokens=usage.total_tokens,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_read_tokens=usage.cached_input_tokens,
        cached_write_tokens=usage.cache_write_tokens,
        thought_tokens=usage.reasoning_tokens,
    )


def _get_call_id(call: RecordedCall) -> str:
    """Return an id that is unique in the session, which those of providers need not be."""
    return f"{call.key.step}-{call.key.place}"


def _invalid(message: str) -> acp.RequestError:
    return acp.RequestError(-32602, message)


class _protocol_errors:  # noqa: N801 - used as a statement
    """Turns errors of Nexus into those of the protocol."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, NexusError):
            code = -32603 if isinstance(error, ProviderError) else -32602
            raise acp.RequestError(code, str(error)) from error
