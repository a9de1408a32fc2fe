"""`nexus acp`: agents of Nexus for editors, over the Agent Client Protocol."""

from __future__ import annotations

import asyncio
import os
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import acp
from acp.schema import (
    AgentCapabilities,
    AllowedOutcome,
    CloseSessionResponse,
    ForkSessionResponse,
    Implementation,
    ListSessionsResponse,
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
from nexus_core.agents import DoneEvent, ReasoningDelta, TextDelta, ToolCallEvent, ToolResultEvent
from nexus_core.agents.toolsets import ToolsetRunner
from nexus_core.cli.commands.chat import name_new_session
from nexus_core.cli.context import redirect_plugin_output
from nexus_core.cli.output import CLOCK_PREFIX
from nexus_core.errors import NexusError, ProviderError
from nexus_core.nexus import Nexus
from nexus_core.text.safety import visible_line
from nexus_core.transcripts.acp import read_block
from nexus_core.types.messages import Message, Reasoning, Text

if TYPE_CHECKING:
    from acp.interfaces import Client

    from nexus_core.agents import AsyncAgent
    from nexus_core.cli.context import CliContext
    from nexus_core.thread.state import RecordedCall
    from nexus_core.types.messages import Usage

_PAGE_SIZE = 100
_MAX_MESSAGE_BYTES = 64 * 1024 * 1024
"""Of one line of the protocol: a prompt may hold images."""
_ALLOW, _ALLOW_ALWAYS, _REJECT = "allow", "allow-always", "reject"
_STOP_REASONS = {"length": "max_tokens", "refusal": "refusal"}


def serve_editor(cli: CliContext, ledger: str | None, given: dict[str, Any]) -> None:
    """Serve an editor on standard input and output until it closes them.

    Args:
        cli: The command.
        ledger: The URL of the ledger; None for the user's own.
        given: Options of the agents: model, provider, role, level.
    """
    output = cli.console.output
    with redirect_plugin_output(), EditorAgent(cli, ledger, given) as agent:
        asyncio.run(_serve(agent, output.fileno()))


async def _serve(agent: EditorAgent, output: int) -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_MAX_MESSAGE_BYTES)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(0, "rb", closefd=False))
    transport, protocol = await loop.connect_write_pipe(
        asyncio.streams.FlowControlMixin, os.fdopen(os.dup(output), "wb")
    )
    writer = asyncio.StreamWriter(transport, protocol, None, loop)
    # Listing, forking and resuming sessions are part of the protocol that may still change.
    served: Any = agent  # it has every method of the protocol that it announces
    await acp.run_agent(served, writer, reader, use_unstable_protocol=True)


class EditorAgent:
    """The agent's side of the protocol: one agent of Nexus for each session that an editor opens.

    Args:
        cli: The command.
        ledger: As for `serve_editor`.
        given: As there.
    """

    def __init__(self, cli: CliContext, ledger: str | None, given: dict[str, Any]) -> None:
        self._cli = cli
        self._ledger = ledger
        self._given = given
        self._agents: dict[str, AsyncAgent] = {}
        self._always: set[tuple[str, str]] = set()  # sessions, and tools that the user allows there
        self._directories: dict[str, tuple[Nexus, ToolsetRunner]] = {}
        self._stack = ExitStack()
        self._client: Client | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def on_connect(self, conn: Client) -> None:
        """Keep the connection to the editor."""
        self._client = conn

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
                session_capabilities=sessions,
            ),
            agent_info=Implementation(name="nexus", version=__version__),
        )

    async def authenticate(self, method_id: str, **_: Any) -> None:  # noqa: ANN401 - as above
        """Do nothing: keys come from the environment."""

    async def new_session(self, cwd: str, mcp_servers: list[Any] | None = None, **_: Any) -> acp.NewSessionResponse:  # noqa: ANN401 - as above
        """Begin a session in a directory."""
        self._refuse_servers(mcp_servers)
        nexus, _tools = await self._open_directory(cwd)
        stem = name = await asyncio.to_thread(name_new_session, nexus)
        number = 1
        while name in self._agents:
            number += 1
            name = f"{stem}-{number}"
        await self._open_agent(name, cwd)
        return acp.NewSessionResponse(session_id=name)

    async def load_session(
        self,
        cwd: str,
        session_id: str,
        mcp_servers: list[Any] | None = None,
        **_: Any,  # noqa: ANN401 - as above
    ) -> acp.LoadSessionResponse:
        """Continue a session, and repeat its messages for the editor."""
        self._refuse_servers(mcp_servers)
        nexus = await self._require_session(session_id, cwd)
        await self._open_agent(session_id, cwd)
        messages = await asyncio.to_thread(lambda: nexus.session(session_id, any_directory=True).messages)
        for message in messages:
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
        self._refuse_servers(mcp_servers)
        await self._require_session(session_id, cwd)
        await self._open_agent(session_id, cwd)
        return ResumeSessionResponse()

    async def fork_session(
        self,
        session_id: str,
        cwd: str,
        mcp_servers: list[Any] | None = None,
        **_: Any,  # noqa: ANN401 - as above
    ) -> ForkSessionResponse:
        """Continue in a copy of a session."""
        self._refuse_servers(mcp_servers)
        nexus = await self._require_session(session_id, cwd)
        name = await asyncio.to_thread(name_new_session, nexus)
        with _protocol_errors():
            await asyncio.to_thread(lambda: nexus.session(session_id, any_directory=True).fork(name))
        await self._open_agent(name, cwd)
        return ForkSessionResponse(session_id=name)

    async def list_sessions(
        self,
        cwd: str | None = None,
        cursor: str | None = None,
        **_: Any,  # noqa: ANN401 - as above
    ) -> ListSessionsResponse:
        """Return the sessions of a directory, or all of them, the newest first."""
        if cursor is not None and not cursor.isdecimal():
            raise _invalid(f"there is no such cursor: {cursor!r}")
        nexus, _tools = await self._open_directory(next(iter(self._directories), str(self._cli.cwd)))
        with _protocol_errors():
            records = await asyncio.to_thread(lambda: list(nexus.ledger.sessions()))
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
        """End the turn of a session, and forget it. It stays in the ledger."""
        self._get_agent(session_id).cancel()
        del self._agents[session_id]
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
        with _protocol_errors():
            async for event in agent.run(Message("user", parts), interrupt=True):
                if isinstance(event, DoneEvent):
                    done = event
                elif (update := _to_update(event)) is not None:
                    await self._send(session_id, update)
        if done is None or done.cancelled:
            return acp.PromptResponse(stop_reason="cancelled")
        reason: Any = _STOP_REASONS.get(done.stop, "end_turn")
        return acp.PromptResponse(stop_reason=reason, usage=_to_usage(done.usage))

    # ---- sessions ---------------------------------------------------------------------------------------------------

    async def _open_directory(self, cwd: str) -> tuple[Nexus, ToolsetRunner]:
        if not os.path.isabs(cwd):  # noqa: PTH117 - it is not used as a path yet
            raise _invalid(f"cwd must be an absolute path, not {cwd!r}")
        if cwd not in self._directories:
            with _protocol_errors():
                self._directories[cwd] = await asyncio.to_thread(self._load_directory, Path(cwd))
        return self._directories[cwd]

    def _load_directory(self, cwd: Path) -> tuple[Nexus, ToolsetRunner]:
        first = next(iter(self._directories.values()), None)
        ledger = self._ledger if first is None else first[0].ledger  # one connection for all directories
        nexus = self._stack.enter_context(Nexus(cwd, home=self._cli.home, ledger=ledger, report=self._cli.report))
        return nexus, self._stack.enter_context(ToolsetRunner(nexus.host, nexus))

    async def _require_session(self, name: str, cwd: str) -> Nexus:
        nexus, _tools = await self._open_directory(cwd)
        with _protocol_errors():
            record = await asyncio.to_thread(nexus.ledger.session, name)
        if record is None:
            raise _invalid(f"there is no session {name!r}")
        return nexus

    async def _open_agent(self, name: str, cwd: str) -> None:
        nexus, tools = await self._open_directory(cwd)
        ask = partial(self._ask, asyncio.get_running_loop(), name)
        open_agent = partial(
            nexus.async_agent, name, tools=[tools], ask=ask, mode="repl", any_directory=True, **self._given
        )
        with _protocol_errors():
            self._agents[name] = await asyncio.to_thread(open_agent)

    def _get_agent(self, name: str) -> AsyncAgent:
        if name not in self._agents:
            raise _invalid(f"session {name!r} is not open")
        return self._agents[name]

    def _refuse_servers(self, servers: list[Any] | None) -> None:
        """Warn about MCP servers of the editor: only those that the user approved for Nexus are started."""
        for each in servers or ():
            name = visible_line(str(getattr(each, "name", "")))
            self._cli.console.warning(f"the editor's MCP server {name!r} is not used; `nexus mcp add` adds it")

    # ---- the editor -------------------------------------------------------------------------------------------------

    async def _send(self, session: str, update: Any) -> None:  # noqa: ANN401 - one of the protocol's many types
        assert self._client is not None  # noqa: S101 - set when the connection begins
        await self._client.session_update(session, update)

    async def _repeat(self, session: str, message: Message) -> None:
        if message.role == "user":
            await self._send(session, acp.update_user_message_text(CLOCK_PREFIX.sub("", message.content, count=1)))
            return
        for part in message.parts:
            if isinstance(part, Text) and part.text:
                await self._send(session, acp.update_agent_message_text(part.text))
            elif isinstance(part, Reasoning) and part.text:
                await self._send(session, acp.update_agent_thought_text(part.text))
        for call in message.tool_calls:
            await self._send(session, acp.start_tool_call(call.id or call.name, call.name, raw_input=call.arguments))
        for result in message.tool_results:
            await self._send(session, _to_result(result.call_id or result.name, result.text, is_error=result.is_error))

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
    if isinstance(event, ToolCallEvent):
        call = event.call
        return acp.start_tool_call(_get_call_id(call), call.name, status="pending", raw_input=call.arguments)
    if isinstance(event, ToolResultEvent):
        return _to_result(_get_call_id(event.call), event.result.text, is_error=event.result.is_error)
    return None


def _to_result(call: str, text: str, *, is_error: bool) -> Any:  # noqa: ANN401 - as above
    content = [acp.tool_content(acp.text_block(text))]
    return acp.update_tool_call(call, status="failed" if is_error else "completed", content=content)


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
