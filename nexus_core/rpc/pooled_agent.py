"""One agent of a pool: its turns, the messages that wait for it, and a view of its context."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from nexus_core.agents.events import DoneEvent, PermissionEvent
from nexus_core.agents.loop import drive_async
from nexus_core.agents.permissions import UnansweredQuestion
from nexus_core.errors import AgentDestroyedError, TurnError, UnknownNameError
from nexus_core.runner import run
from nexus_core.session.async_session import AsyncSession
from nexus_core.types.messages import Message
from nexus_core.types.providers import CancelSignal

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path
    from typing import Unpack

    from nexus_core.agents.agent import AgentTools
    from nexus_core.agents.events import AgentEvent
    from nexus_core.agents.loop import AgentLoop
    from nexus_core.request.input import EventFields
    from nexus_core.session.engine import CallInputs, Engine
    from nexus_core.thread.state import RecordedCall
    from nexus_core.types.assembled import AssembledContext
    from nexus_core.types.messages import Tool
    from nexus_core.types.providers import Provider

MessageDelivery = Literal["queue", "steer", "interrupt"]
"""When a message that arrives during a turn is read: after the turn, before its next model call, or at once."""
MESSAGE_DELIVERIES: tuple[MessageDelivery, ...] = get_args(MessageDelivery)


class AgentContextView:
    """View of an agent's next call, with the names of `ContextManager`. Its methods block for a moment.

    Args:
        engine: The operations of the agent's session.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._counted: tuple[CallInputs, dict[str, Any]] | None = None

    def count_tokens(self) -> dict[str, Any]:
        """Return the tokens of what the agent would send now, and of all its calls so far, as JSON.

        They are counted again only if the session, a file or a setting has changed.
        """
        inputs = run(self._engine.find_call_inputs())
        if self._counted is None or self._counted[0] != inputs:
            context = self.assemble()
            counted = {
                **measure_context(context),
                "model": context.model,
                "estimated": context.token_budget.estimated,
                "usage": asdict(run(self._engine.usage())),
            }
            self._counted = inputs, counted
        return dict(self._counted[1])

    def assemble(self) -> AssembledContext:
        """Return the call that the agent would send now: the open turn, or its history without a new message."""
        return run(self._engine.peek())

    @property
    def system_prompt(self) -> str:
        """The system prompt."""
        return self.assemble().system_prompt

    @property
    def messages(self) -> list[Message]:
        """The messages since the latest summary; the list is a copy."""
        return list(run(self._engine.messages()))

    def get_tool_definitions(self) -> list[Tool]:
        """Return the tools that the model is offered."""
        return list(self.assemble().tools)

    def build_messages(self) -> list[Message]:
        """Return the system prompt and the messages that fit."""
        context = self.assemble()
        system = [Message("system", context.system_prompt)] if context.system_prompt else []
        return [*system, *context.messages]

    def get_token_usage(self) -> dict[str, int]:
        """Return the tokens of system, tools and messages, their total, the budget, and the available part of it."""
        return measure_context(self.assemble())

    def is_over_budget(self) -> bool:
        """Return True if something must be left out of the next call, or summarized before it."""
        usage = self.get_token_usage()
        return usage["total"] > usage["available"]


def measure_context(context: AssembledContext) -> dict[str, int]:
    """Return the tokens of a call by the names of `ContextManager.get_token_usage`."""
    budget = context.token_budget
    system, tools = budget.used.get("system", 0), budget.used.get("tools", 0)
    return {
        "system": system,
        "tools": tools,
        "messages": budget.total - system - tools,
        "total": budget.total,
        "budget": budget.limit,
        "available": budget.available,
    }


class AgentTurn:
    """The events of a turn that a pool runs: `async for event in turn`, or `await turn.answer()`.

    The turn runs whether or not its events are read. They can be read once.

    Args:
        agent_id: The agent that runs it.
    """

    def __init__(self, agent_id: str) -> None:
        self.agent_id = agent_id
        self._events: asyncio.Queue[AgentEvent | BaseException | None] = asyncio.Queue()
        self._ended = asyncio.Event()

    @property
    def is_done(self) -> bool:
        """True if the turn has ended."""
        return self._ended.is_set()

    async def wait(self) -> None:
        """Wait for the end of the turn without reading its events."""
        await self._ended.wait()

    def __aiter__(self) -> AsyncIterator[AgentEvent]:
        return self._read()

    async def _read(self) -> AsyncIterator[AgentEvent]:
        while (event := await self._events.get()) is not None:
            if isinstance(event, BaseException):
                raise event
            yield event

    async def answer(self) -> str:
        """Return the text of the final reply.

        Raises:
            ProviderError: The model gives no reply. `resume` of the agent sends the call again.
            TurnError: A turn is open, the model was called too often, or the turn was cancelled.
        """
        done: DoneEvent | None = None
        async for event in self:
            if isinstance(event, DoneEvent):
                done = event
        if done is None or done.cancelled:
            raise TurnError(f"the turn of agent {self.agent_id!r} was cancelled", hint="send the message again")
        return done.text

    def put(self, event: AgentEvent) -> None:
        """Add an event."""
        self._events.put_nowait(event)

    def finish(self, error: BaseException | None = None) -> None:
        """End the turn; an error is raised where its events are read."""
        self._events.put_nowait(error)
        self._ended.set()


class WaitingMessage(NamedTuple):
    """A message that waits for its turn.

    Attributes:
        turn: Receives the events.
        message: The message; None to resume the open turn.
        event: Metadata of the message.
        delivery: When it is read.
        signal: Ends its turn, even before it has begun.
    """

    turn: AgentTurn
    message: object
    event: Mapping[str, Any]
    delivery: MessageDelivery
    signal: CancelSignal


class PermissionQuestion(NamedTuple):
    """A tool call of an agent that waits for permission.

    Attributes:
        id: Identifies the question; no other has it.
        call: The tool call.
        reason: Why it needs permission.
        answer: The answer, once there is one.
    """

    id: str
    call: RecordedCall
    reason: str
    answer: asyncio.Future[bool]


def build_question_id(call: RecordedCall) -> str:
    """Return the id of the question about a tool call. Ids of calls may be empty or occur twice."""
    return f"{call.key.step}.{call.key.place}"


def question_to_json(question: PermissionQuestion | None) -> dict[str, Any] | None:
    """Return a question as JSON: its id, the tool and its arguments, and the reason; None for none."""
    if question is None:
        return None
    call = question.call
    return {
        "question": question.id,
        "id": call.id,
        "name": call.name,
        "arguments": dict(call.arguments),
        "reason": question.reason,
    }


class PooledAgent:
    """An agent of a pool; `AgentPool.create` makes one. Use it in the event loop in which it was created.

    Args:
        agent_id: Its id, which is the name of its session.
        loop: Its turns.
        view: The operations of its session, for looking at it during a turn.
        tools: Its tools, without those of the pool.
        provider: The provider that was chosen for it; None for that of its model.
        cwd: Its working directory.
        role: Its role.
        parent: The agent that created it, or for which it was created; None for none.
        question_seconds: The time for `answer_permission`; None or 0 if it asks nothing.
    """

    def __init__(
        self,
        agent_id: str,
        loop: AgentLoop,
        *,
        view: Engine,
        tools: AgentTools,
        provider: Provider | None,
        cwd: Path,
        role: str,
        parent: PooledAgent | None,
        question_seconds: float | None = None,
    ) -> None:
        self.id = agent_id
        self.cwd = cwd
        self.role = role
        self.parent = parent
        self.children: dict[str, PooledAgent] = {}
        self.tools = tools
        self.provider = provider
        self.context = AgentContextView(view)
        self._loop = loop
        self._view = view
        self._current: WaitingMessage | None = None  # of the turn that is running or about to
        self._waiting: deque[WaitingMessage] = deque()
        self._steering: deque[WaitingMessage] = deque()
        self._listeners: list[AgentTurn] = []
        self._task: asyncio.Task[None] | None = None
        self._is_destroyed = False
        self._question_seconds = question_seconds
        self._question: PermissionQuestion | None = None
        loop.take_messages = self._take_steering

    def __repr__(self) -> str:
        return f"PooledAgent({self._loop.engine.describe()})"

    @property
    def level(self) -> str:
        """The permission level: `yolo`, `trusted` or `sandboxed`."""
        return self._loop.level

    @property
    def engine(self) -> Engine:
        """The operations of its session, besides those of the running turn."""
        return self._view

    @property
    def session(self) -> AsyncSession:
        """The session: its messages, usage and pending tool calls, compaction, forks."""
        return AsyncSession(self._view)

    @property
    def is_running(self) -> bool:
        """True if a turn is running or about to."""
        return self._current is not None

    @property
    def waiting(self) -> int:
        """The number of messages that wait for the running turn."""
        return len(self._waiting) + len(self._steering)

    @property
    def is_destroyed(self) -> bool:
        """True once the pool has destroyed it."""
        return self._is_destroyed

    # ---- messages -------------------------------------------------------------------------------------------------

    def send(self, message: object, *, delivery: MessageDelivery = "queue", **event: Unpack[EventFields]) -> AgentTurn:
        """Send a message and return its turn, whose events can be read. The turn runs in the background.

        A message that waits is in memory only; it is stored when its turn begins.

        Args:
            message: Text, a `Message`, or a user message or its parts in any API's format.
            delivery: If a turn is running: `queue` starts another turn after it, `steer` adds the message to it before
                its next model call, `interrupt` cancels it.
            event: Metadata of the message, as for `Session.ask`.

        Raises:
            AgentDestroyedError: The agent was destroyed.
            UnknownNameError: There is no such delivery.
        """
        if delivery not in MESSAGE_DELIVERIES:
            raise UnknownNameError("delivery", delivery, MESSAGE_DELIVERIES)
        return self._add(WaitingMessage(AgentTurn(self.id), message, event, delivery, CancelSignal()))

    def resume(self) -> AgentTurn:
        """Continue the open turn after a failure or a crash, and return it.

        Raises:
            AgentDestroyedError: The agent was destroyed.
        """
        return self._add(WaitingMessage(AgentTurn(self.id), None, {}, "queue", CancelSignal()))

    async def answer(
        self, message: object, *, delivery: MessageDelivery = "queue", **event: Unpack[EventFields]
    ) -> str:
        """Send a message and return the text of the final reply. Arguments are those of `send`."""
        return await self.send(message, delivery=delivery, **event).answer()

    def cancel(self) -> bool:
        """End the running turn and store the partial reply. Return False if no turn is running.

        Messages that wait start their turns afterwards.
        """
        current = self._current
        if current is None:
            return False
        current.signal.cancel()
        if self._question is not None and not self._question.answer.done():
            self._question.answer.set_result(False)
        return True

    async def destroy(self) -> None:
        """Cancel the running turn, refuse all messages that wait, and end. The session stays in the ledger."""
        self._is_destroyed = True
        for each in (*self._waiting, *self._steering):
            each.turn.finish(self._build_destroyed_error())
        self._waiting.clear()
        self._steering.clear()
        self.cancel()
        if (task := self._task) is not None and task is not asyncio.current_task():
            await asyncio.wait([task])

    # ---- permissions ------------------------------------------------------------------------------------------------

    @property
    def question(self) -> PermissionQuestion | None:
        """The tool call that waits for permission; None if none does."""
        return self._question

    async def ask_permission(self, _call: RecordedCall, _reason: str) -> bool | UnansweredQuestion:
        """Wait for `answer_permission`, and return whether the tool call of the question may run.

        Without an answer in time, it may not.
        """
        question, seconds = self._question, self._question_seconds
        if question is None or seconds is None:  # the pool asks nothing
            return False
        try:
            async with asyncio.timeout(seconds):
                return await question.answer
        except TimeoutError:
            return UnansweredQuestion(seconds)
        finally:
            self._question = None

    def _open_question(self, event: PermissionEvent) -> None:
        # Before the event is read, so that a client cannot answer before there is a question.
        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._question = PermissionQuestion(build_question_id(event.call), event.call, event.reason, answer)
        if self._current is None or self._current.signal.is_set:
            answer.set_result(False)

    def answer_permission(self, question: str, *, allow: bool) -> None:
        """Let the tool call that waits for permission run, or refuse it.

        Args:
            question: The id of the question.
            allow: Whether it may run.

        Raises:
            UnknownNameError: No such question waits for an answer: it was answered, its time is over, or the turn was
                cancelled.
        """
        waiting = self._question
        if waiting is None or waiting.id != question or waiting.answer.done():
            raise UnknownNameError("permission question", question, () if waiting is None else (waiting.id,))
        waiting.answer.set_result(allow)

    def _add(self, item: WaitingMessage) -> AgentTurn:
        if self._is_destroyed:
            raise self._build_destroyed_error()
        if self._current is None:
            self._current = item
            self._task = asyncio.get_running_loop().create_task(self._run_turns(item), name=f"agent {self.id}")
        elif item.delivery == "steer":
            self._steering.append(item)
        elif item.delivery == "interrupt":
            ahead = sum(1 for each in self._waiting if each.delivery == "interrupt")
            self._waiting.insert(ahead, item)
            self.cancel()
        else:
            self._waiting.append(item)
        return item.turn

    def _build_destroyed_error(self) -> AgentDestroyedError:
        hint = "its conversation is in the ledger; create an agent with the same id to go on with it"
        return AgentDestroyedError(f"agent {self.id!r} was destroyed", hint=hint)

    # ---- turns ----------------------------------------------------------------------------------------------------

    async def _run_turns(self, first: WaitingMessage) -> None:
        """Run a turn for a message, then one for each that waits."""
        following: WaitingMessage | None = first
        try:
            while following is not None:
                self._current = following
                await self._run_turn(following)
                # Steering messages for which the turn had no further call come next, before those in the queue.
                self._waiting.extendleft(reversed(self._steering))
                self._steering.clear()
                following = self._waiting.popleft() if self._waiting else None
        finally:
            self._current = self._task = None

    async def _run_turn(self, item: WaitingMessage) -> None:
        self._listeners = [item.turn]
        error: BaseException | None = None
        try:
            operation = self._loop.resume(item.signal) if item.message is None else self._start(item)
            async for event in drive_async(operation):
                if self._question_seconds and isinstance(event, PermissionEvent):
                    self._open_question(event)
                for listener in self._listeners:
                    listener.put(event)
        except Exception as raised:  # noqa: BLE001 - raised where the events are read
            error = raised
        except BaseException as raised:
            error = raised
            raise
        finally:
            self._question = None
            for listener in self._listeners:
                listener.finish(error)
            self._listeners = []

    def _start(self, item: WaitingMessage) -> Any:  # noqa: ANN401 - a turn as a generator
        is_urgent = item.delivery == "interrupt"
        return self._loop.run(item.message, interrupt=is_urgent, event=item.event, signal=item.signal)

    def _take_steering(self) -> list[tuple[object, Mapping[str, Any]]]:
        """Return the messages for the running turn; from now on, their turns receive its events too."""
        taken: list[WaitingMessage] = []
        while self._steering:  # one by one: this runs in another thread than `send`
            taken.append(self._steering.popleft())
        self._listeners += [each.turn for each in taken]
        return [(each.message, each.event) for each in taken]
