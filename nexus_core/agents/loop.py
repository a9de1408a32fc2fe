"""A turn of an agent, written once for blocking and async callers.

A turn is a generator. It yields events for the caller, functions that block, and waits for other threads; the drivers
`drive` and `drive_async` tell them apart. Every reply and every tool result is stored by the session before anything
else happens, so a program that dies continues with `resume`.
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, get_args

from nexus_core.agents.event_queue import BackgroundWork, EventQueue, start_daemon
from nexus_core.agents.events import (
    AgentEvent,
    CompactionEvent,
    DoneEvent,
    MemoryEvent,
    PermissionEvent,
    SteeringMessageEvent,
    StepEvent,
    ToolCallEvent,
    ToolResultEvent,
    UsageEvent,
)
from nexus_core.agents.permissions import UnansweredQuestion, decide_call
from nexus_core.agents.tools import DEFAULT_TOOL_SECONDS, ToolRun, describe_tool_error
from nexus_core.errors import MessageError, NexusError, ProviderError, TurnError, UsageError, did_you_mean
from nexus_core.runner import LongCall, blocking, settle
from nexus_core.session.replay import restore_tool_offers
from nexus_core.thread.state import CallResult
from nexus_core.types.messages import Message, Usage
from nexus_core.types.providers import (
    CancelSignal,
    ProviderEvent,
    ProviderReply,
    ReasoningDelta,
    TextDelta,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Generator, Iterator, Mapping, Sequence

    from nexus_core.agents.permissions import ToolRisk
    from nexus_core.agents.tools import FunctionTool, ToolRunner
    from nexus_core.host.manager import ContributionRegistry
    from nexus_core.runner import Operation
    from nexus_core.session.engine import Engine
    from nexus_core.thread.state import RecordedCall
    from nexus_core.types.assembled import AssembledContext
    from nexus_core.types.ledger import Ledger
    from nexus_core.types.messages import Reply
    from nexus_core.types.providers import Provider

    AskPermission = Callable[[RecordedCall, str], Any]
    TurnOperation = Generator[Any, Any, None]
    TakeMessages = Callable[[], Sequence[tuple[object, Mapping[str, Any]]]]

_EVENTS = get_args(AgentEvent)
_PROVIDER_EVENTS = get_args(ProviderEvent)
MAX_MODEL_CALLS = 100
"""Model calls of one run, so that a model that calls tools for ever does not spend money for ever."""


class TurnCancelled(BaseException):
    """Raised inside a turn when it is cancelled."""


class AgentLogger(Protocol):
    """A log of an agent. Its methods block, and raise nothing."""

    def log_system(self, prompt: str) -> None:
        """Log the system prompt of a call; one that was logged last is not logged again."""

    def log_message(self, message: Message) -> None:
        """Log a message of the user, a reply or a tool result."""

    def log_call(self, context: AssembledContext, outcome: ProviderReply | BaseException) -> None:
        """Log a model call and what came of it."""


class ProviderStream(BackgroundWork):
    """Provider stream that is read in its own thread.

    Args:
        provider: The provider.
        context: The assembled call.
        cancel: Ends it.
    """

    def __init__(self, provider: Provider, context: AssembledContext, cancel: CancelSignal) -> None:
        self._provider = provider
        self._context = context
        self._cancel = cancel
        self._mailbox: EventQueue[object] = EventQueue()
        cancel.on_cancel(self._end)
        start_daemon(self._read_stream, "model call")

    def wait(self) -> list[object]:
        """Block until events arrive, and return them. None among them is the end, an exception a failure."""
        return self._mailbox.wait(None)

    async def wait_async(self) -> list[object]:
        """Return what `wait` returns."""
        return await self._mailbox.wait_async(None)

    def close(self) -> None:
        """Forget about it, whether it has ended or not."""
        self._cancel.forget(self._end)

    def _end(self) -> None:
        self._mailbox.put(None)

    def _read_stream(self) -> None:
        try:
            for event in self._provider.stream(self._context, self._cancel):
                if self._cancel.is_set:
                    break
                self._mailbox.put(event)
        except BaseException as error:  # noqa: BLE001 - a plugin may raise anything; the turn raises it again
            self._mailbox.put(error)
        self._mailbox.put(None)


class AgentLoop:
    """Loop of model calls and tool runs for the turns of one agent.

    Args:
        engine: The operations of its session.
        ledger: Returns the ledger.
        providers: The providers, by name.
        provider: The provider to use; None for the one of the settings or of the model.
        functions: Its Python tools, by name.
        runners: What runs the tools of plugins.
        level: Its permission level.
        ask: Called with a tool call that needs permission, and the reason; returns whether it may run.
        max_calls: Maximum model calls of one run.
        logger: Keeps a log of the conversation and of every model call; None for no log.

    Attributes:
        take_messages: Called before each further call of a turn; returns the user messages that the model shall read
            next, each with its metadata.
    """

    def __init__(
        self,
        engine: Engine,
        ledger: Callable[[], Ledger],
        *,
        providers: ContributionRegistry[Provider],
        provider: Provider | None,
        functions: Mapping[str, FunctionTool],
        runners: Sequence[ToolRunner],
        level: str,
        ask: AskPermission | None,
        max_calls: int = MAX_MODEL_CALLS,
        logger: AgentLogger | None = None,
    ) -> None:
        self.engine = engine
        self.take_messages: TakeMessages = tuple
        self._logger = logger
        self.level = level
        self._ledger = ledger
        self._providers = providers
        self._provider = provider
        self._functions = functions
        self._runners = runners
        self._ask_permission = ask
        self._max_calls = max_calls
        self._signal: CancelSignal | None = None
        self._said: list[str] = []  # text of the reply that is arriving
        self._usage = Usage()
        self._calls = 0

    def cancel(self) -> None:
        """End the turn that is running, from any thread. Does nothing if none is."""
        signal = self._signal
        if signal is not None:
            signal.cancel()

    # ---- turns --------------------------------------------------------------------------------------------------

    def run(
        self, message: object, *, interrupt: bool, event: Mapping[str, Any], signal: CancelSignal | None = None
    ) -> TurnOperation:
        """Start a turn with a user message, and continue it to its end.

        Args:
            message: The message.
            interrupt: Whether to end a turn that is still open.
            event: Metadata of the message.
            signal: Ends the turn like `cancel`, and can be set before the turn begins; None to make one.
        """
        yield from self._guard(self._start(message, interrupt=interrupt, event=event), signal)

    def resume(self, signal: CancelSignal | None = None) -> TurnOperation:
        """Continue the open turn to its end. The signal is that of `run`."""
        yield from self._guard(self._continue(), signal)

    def _guard(self, turn: TurnOperation, signal: CancelSignal | None) -> TurnOperation:
        """Run a turn; end it cleanly if it is cancelled."""
        if self._signal is not None:
            raise TurnError(
                f"a turn of session {self.engine.label!r} is running already",
                hint="wait until it is done, or cancel() it",
            )
        self._signal = signal or CancelSignal()
        self._said, self._usage, self._calls = [], Usage(), 0
        try:
            yield from turn
        except TurnCancelled:
            self._signal.cancel()
            yield from self._end_cancelled()
        finally:
            self._signal.cancel()  # a caller that stops iterating ends the model call, too
            self._signal = None

    def _start(self, message: object, *, interrupt: bool, event: Mapping[str, Any]) -> TurnOperation:
        context = yield from self._ask(message, interrupt=interrupt, event=event)
        yield from self._answer(context)

    def _ask(
        self, message: object, *, interrupt: bool, event: Mapping[str, Any]
    ) -> Generator[Any, Any, AssembledContext]:
        """Store a user message and return the call, after events about its memories."""
        context = yield from self._assemble(self.engine.ask(message, interrupt=interrupt, event=event))
        if self._logger is not None and context.current_message is not None:
            yield from blocking(self._logger.log_system, context.system_prompt)
            yield from blocking(self._logger.log_message, context.current_message)
        if context.token_budget.used.get("memory"):
            placed = yield from blocking(lambda: context.placements)
            yield MemoryEvent(tuple(each for each in placed if each.kind == "memory" and each.tokens))
        return context

    def _continue(self) -> TurnOperation:
        pending = yield from self.engine.pending()
        if pending:
            yield from self._run_calls(pending, (yield from blocking(self._find_offered, pending[0])))
        context = yield from self._go_on()
        yield from self._answer(context)

    def _go_on(self) -> Generator[Any, Any, AssembledContext]:
        """Return the next call, or start a turn for a message that arrived meanwhile."""
        context: AssembledContext | None = None
        for message, event in self.take_messages():
            context = yield from self._ask(message, interrupt=True, event=event)
            yield SteeringMessageEvent(message)
        return context or (yield from self._assemble(self.engine.next()))

    def _answer(self, context: AssembledContext) -> TurnOperation:
        """Call the model and run its tools until it is done."""
        while True:
            if self._calls >= self._max_calls:
                raise TurnError(
                    f"the model was called {self._calls} times without coming to an end",
                    hint="resume() lets it go on, interrupt() of the session ends the turn; max_calls sets the limit",
                )
            reply = yield from self._call_or_recover(context)
            step = yield from self.engine.record(reply)
            self._said = []
            yield from self._log(*reply.messages)
            yield StepEvent(step)
            if reply.usage is not None:
                self._usage += reply.usage
                yield UsageEvent(reply.usage)
            if step.done:
                yield DoneEvent(text=step.text, stop=reply.stop, usage=self._usage, calls=self._calls)
                return
            yield from self._run_calls(step.tool_calls, {tool.name for tool in context.tools})
            context = yield from self._go_on()

    def _assemble(self, operation: Operation[AssembledContext]) -> Generator[Any, Any, AssembledContext]:
        compactions = self.engine.compactions
        context = yield from operation
        if self.engine.compactions > compactions:
            yield CompactionEvent("context_limit")
        self._check()
        return context

    def _end_cancelled(self) -> TurnOperation:
        """Store the partial reply, and close the turn."""
        text = "".join(self._said)
        pending = yield from self.engine.pending()
        if text.strip() and not pending and (yield from self.engine.is_open()):
            said = Message("assistant", text)
            step = yield from self.engine.record(said, interrupted=True)
            yield from self._log(said)
            yield StepEvent(step)
        elif ended := (yield from self.engine.interrupt()):
            yield StepEvent(ended)
        yield DoneEvent(text=text, cancelled=True, usage=self._usage, calls=self._calls)

    def _log(self, *messages: Message) -> TurnOperation:
        if self._logger is not None:
            for message in messages:
                yield from blocking(self._logger.log_message, message)

    def _check(self) -> None:
        if self._signal is None or self._signal.is_set:
            raise TurnCancelled

    # ---- the model ----------------------------------------------------------------------------------------------

    def _call_or_recover(self, context: AssembledContext) -> Generator[Any, Any, Reply]:
        try:
            return (yield from self._call(context))
        except ProviderError as error:
            shorter = yield from self.engine.recover(error)  # raises the error itself if it has another cause
        yield CompactionEvent("overflow_recovery")
        return (yield from self._call(shorter))

    def _call(self, context: AssembledContext) -> Generator[Any, Any, Reply]:
        """Call the model once; yield the pieces of its reply."""
        assert self._signal is not None  # noqa: S101 - a turn is running
        provider = self._find_provider(context)
        self._calls += 1
        self._said = []
        try:
            outcome = yield from self._read_stream(provider, context, self._signal)
        except ProviderError as error:
            if self._logger is not None:
                yield from blocking(self._logger.log_call, context, error)
            raise
        if self._logger is not None:
            yield from blocking(self._logger.log_call, context, outcome)
        return outcome.reply

    def _read_stream(
        self, provider: Provider, context: AssembledContext, signal: CancelSignal
    ) -> Generator[Any, Any, ProviderReply]:
        call = ProviderStream(provider, context, signal)
        reply: ProviderReply | None = None
        try:
            while True:
                for event in (yield call):
                    self._check()
                    if event is None:
                        if reply is None:
                            raise ProviderError(f"the provider {provider.name!r} ended without a reply")
                        return reply
                    if isinstance(event, BaseException):
                        raise _to_provider_error(event, provider.name)
                    if not isinstance(event, _PROVIDER_EVENTS):
                        raise ProviderError(
                            f"the provider {provider.name!r} yielded {type(event).__name__}, which is no event"
                        )
                    if isinstance(event, TextDelta):
                        self._said.append(event.text)
                        yield event
                    elif isinstance(event, ReasoningDelta):
                        yield event
                    elif isinstance(event, ProviderReply):
                        reply = event
        finally:
            call.close()

    def _find_provider(self, context: AssembledContext) -> Provider:
        if self._provider is not None:
            return self._provider
        if not context.provider:
            model = f"the model {context.model!r}" if context.model else "this agent"
            raise UsageError(
                f"it is not known which provider to call for {model}",
                hint="set provider.provider in config.json, or pass provider='openai'; and provider.model, or model=…",
            )
        return self._providers.get(context.provider)

    # ---- tools --------------------------------------------------------------------------------------------------

    def _find_offered(self, call: RecordedCall) -> Collection[str]:
        """Return the names of the tools that the model had when it made a call."""
        return {tool.name for tool in restore_tool_offers(self._ledger(), call.key.step)}

    def _run_calls(self, calls: Sequence[RecordedCall], offered: Collection[str]) -> TurnOperation:
        """Run tool calls one after the other, and store each result before the next is run."""
        for call in calls:
            self._check()
            yield ToolCallEvent(call)
            result, seconds = yield from self._run_call(call, offered)
            try:
                step = yield from self.engine.record(result)
            except MessageError as error:
                result = call.result(f"its result could not be stored: {error.what}", is_error=True)
                step = yield from self.engine.record(result)
            yield from self._log(Message("tool", (result.result,)))
            yield ToolResultEvent(call, result.result, seconds)
            yield StepEvent(step)

    def _run_call(self, call: RecordedCall, offered: Collection[str]) -> Generator[Any, Any, tuple[CallResult, float]]:
        assert self._signal is not None  # noqa: S101 - a turn is running
        start, risk, seconds = self._prepare(call, offered)
        if isinstance(start, str):
            return call.result(start, is_error=True), 0.0
        if refusal := (yield from self._refuse(call, risk)):
            return call.result(refusal, is_error=True), 0.0
        self._check()
        outcome = yield ToolRun(start, seconds, self._signal)
        if outcome is None:
            raise TurnCancelled
        if outcome.is_late:
            text = f"{call.name} gave no result in {seconds:.3g} seconds; it may still be running"
            return call.result(text, is_error=True), outcome.seconds
        if outcome.error:
            return call.result(outcome.error, is_error=True), outcome.seconds
        if isinstance(outcome.value, CallResult):
            return outcome.value, outcome.seconds
        return call.result(outcome.value), outcome.seconds

    def _prepare(
        self, call: RecordedCall, offered: Collection[str]
    ) -> tuple[Callable[[], object] | str, ToolRisk, float]:
        """Return the function that runs a call, or why it cannot run; with its risk and time-out."""
        function = self._functions.get(call.name)
        runner = next((each for each in self._runners if call.name in each), None)
        nothing: tuple[ToolRisk, float] = ("high", DEFAULT_TOOL_SECONDS)
        if call.name not in offered:
            nearest = did_you_mean(call.name, offered)
            return f"there is no tool called {call.name!r}{f'; {nearest}' if nearest else ''}", *nothing
        if call.has_invalid_arguments:
            return "it was not run: its arguments are no JSON object", *nothing
        if function is not None:
            try:
                return function.bind(call.arguments), function.risk, function.timeout
            except ValueError as error:
                return f"it was not run: {error}", *nothing
        if runner is None:
            return f"nothing runs the tool {call.name!r} here", *nothing
        get_risk = getattr(runner, "get_risk", None)  # of a runner with tools of more than one risk
        risk: ToolRisk = getattr(runner, "risk", "high") if get_risk is None else get_risk(call.name)
        return _RunnerCall(runner, call), risk, DEFAULT_TOOL_SECONDS

    def _refuse(self, call: RecordedCall, risk: ToolRisk) -> Generator[Any, Any, str]:
        """Return why a call may not run; "" if it may."""
        verdict = decide_call(self.level, risk)
        if verdict == "run":
            return ""
        reason = f"the permission level is {self.level!r}"
        if verdict == "refuse" or self._ask_permission is None:
            return f"{call.name} was not run: {reason}"
        yield PermissionEvent(call, reason)
        allowed = yield LongCall(self._ask_permission, call, reason)
        if isinstance(allowed, UnansweredQuestion):
            return f"{call.name} was not run: the permission question was not answered in {allowed.seconds:g} seconds"
        return "" if allowed is True else f"{call.name} was not run: the user did not allow it"


class _RunnerCall:
    """A call of a tool of a plugin."""

    def __init__(self, runner: ToolRunner, call: RecordedCall) -> None:
        self.func = runner.run  # as `functools.partial` names it
        self._call = call

    def __call__(self) -> object:
        return self.func(self._call)


def _to_provider_error(error: BaseException, name: str) -> BaseException:
    """Return an error of Nexus for what a provider raised; the original is its cause."""
    if isinstance(error, NexusError) or not isinstance(error, Exception):
        return error
    wrapped = ProviderError(f"the provider {name!r} failed: {describe_tool_error(error)}")
    wrapped.__cause__ = error
    return wrapped


# ---- drivers --------------------------------------------------------------------------------------------------------


def drive(turn: TurnOperation) -> Iterator[AgentEvent]:
    """Yield the events of a turn, blocking this thread in between."""
    error: BaseException | None = None
    value: object = None
    interruption: KeyboardInterrupt | None = None
    try:
        while True:
            item = turn.throw(error) if error is not None else turn.send(value)
            error = value = None
            if isinstance(item, _EVENTS):
                if interruption is None:
                    yield item
                continue
            try:
                value = item.wait() if isinstance(item, BackgroundWork) else settle(item())
            except KeyboardInterrupt as pressed:
                interruption, error = pressed, TurnCancelled()
            except Exception as raised:  # noqa: BLE001 - the turn handles it
                error = raised
    except StopIteration:
        if interruption is not None:
            raise interruption from None
    finally:
        turn.close()


async def drive_async(turn: TurnOperation) -> AsyncIterator[AgentEvent]:
    """Yield the events of a turn without blocking the event loop.

    Blocking calls that follow each other are made in one worker thread, which runs the turn meanwhile.
    """
    error: BaseException | None = None
    value: object = None
    cancellation: asyncio.CancelledError | None = None
    try:
        while True:
            item = turn.throw(error) if error is not None else turn.send(value)
            error = value = None
            if not isinstance(item, _PAUSES):
                item, cancelled = await _make_calls_in_thread(turn, item)
                cancellation = cancelled or cancellation
                if item is None:
                    break
            if isinstance(item, _EVENTS):
                if cancellation is None:
                    yield item
                continue
            try:
                value = await _wait_for(item)
            except asyncio.CancelledError as raised:
                cancellation, error = raised, TurnCancelled()
            except Exception as raised:  # noqa: BLE001 - as above
                error = raised
    except StopIteration:
        pass
    finally:
        turn.close()
    if cancellation is not None:
        raise cancellation


class _AwaitableResult(NamedTuple):
    """The result of a blocking call that is to be awaited."""

    value: Any


_PAUSES = (*_EVENTS, BackgroundWork, LongCall, _AwaitableResult)
"""What ends a stretch of blocking calls."""


async def _wait_for(pause: Any) -> object:  # noqa: ANN401 - what a turn yields
    """Return the result of a wait, a long call or an awaitable."""
    if isinstance(pause, BackgroundWork):
        found: object = await pause.wait_async()
        return found
    value = await asyncio.to_thread(pause) if isinstance(pause, LongCall) else pause.value
    return await value if hasattr(value, "__await__") else value


async def _make_calls_in_thread(turn: TurnOperation, call: Any) -> tuple[Any, asyncio.CancelledError | None]:  # noqa: ANN401 - what a turn yields
    """Make blocking calls of a turn until it yields something else; return that, None if the turn has ended.

    A cancellation waits for the call that is being made, since a step is stored whole, and is then raised in the turn.
    """
    cancellation: asyncio.CancelledError | None = None
    is_cancelled = threading.Event()
    made = asyncio.ensure_future(asyncio.to_thread(_make_calls, turn, call, is_cancelled))
    while not made.done():
        try:
            await asyncio.shield(made)
        except asyncio.CancelledError as raised:
            cancellation = raised
            is_cancelled.set()
        except Exception:  # noqa: BLE001 - raised by `result` below
            break
    return made.result(), cancellation


def _make_calls(turn: TurnOperation, call: Any, is_cancelled: threading.Event) -> object:  # noqa: ANN401 - as above
    was_cancelled = False
    try:
        while not isinstance(call, _PAUSES):
            error: BaseException | None = None
            value: object = None
            try:
                value = call()
            except Exception as raised:  # noqa: BLE001 - the turn handles it
                error = raised
            if is_cancelled.is_set() and not was_cancelled:
                was_cancelled, error = True, TurnCancelled()
            elif hasattr(value, "__await__"):
                return _AwaitableResult(value)
            call = turn.throw(error) if error is not None else turn.send(value)
    except StopIteration:
        return None
    return call
