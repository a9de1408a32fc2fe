"""Agent and AsyncAgent: a session that calls a model and runs its tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_core.agents.events import DoneEvent
from nexus_core.agents.loop import MAX_MODEL_CALLS, AgentLoop, drive, drive_async
from nexus_core.agents.permissions import read_level
from nexus_core.agents.tools import FunctionTool, ToolRunner
from nexus_core.config.pointers import dotted_to_pointer
from nexus_core.errors import UsageError
from nexus_core.session.async_session import AsyncSession
from nexus_core.session.engine import open_engine
from nexus_core.session.options import SessionArguments
from nexus_core.session.session import Session
from nexus_core.types.providers import Provider

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator
    from typing import Unpack

    from nexus_core.agents.events import AgentEvent
    from nexus_core.agents.loop import AskPermission
    from nexus_core.host.manager import ContributionRegistry
    from nexus_core.request.input import EventFields
    from nexus_core.request.runtime import SessionRuntime
    from nexus_core.types.layers import LoadedLayers
    from nexus_core.types.settings import Settings


_USER_LAYER = "global"
"""The layer of the user's own settings."""


class AgentArguments(SessionArguments, total=False):
    """The arguments of `Nexus.agent`."""

    provider: str | Provider | None
    level: str | None
    ask: AskPermission | None
    max_calls: int
    any_directory: bool


class Agent:
    """Durable conversation that calls a model and runs tools. `Nexus.agent` opens one.

    Every reply and every tool result is stored before anything else happens. After a crash, `resume` continues.

    Args:
        loop: The turns of the agent.
    """

    def __init__(self, loop: AgentLoop) -> None:
        self._loop = loop
        self._session = Session(loop.engine)

    def __repr__(self) -> str:
        return f"Agent({self._loop.engine.describe()})"

    @property
    def session(self) -> Session:
        """The session: its messages, usage and pending tool calls, compaction, forks."""
        return self._session

    @property
    def level(self) -> str:
        """The permission level: `yolo`, `trusted` or `sandboxed`."""
        return self._loop.level

    def run(self, message: object, *, interrupt: bool = False, **event: Unpack[EventFields]) -> Iterator[AgentEvent]:
        """Start a turn and yield its events, a `DoneEvent` with the final reply last.

        A caller that stops iterating leaves the turn open, as a crash would. Ctrl-C ends it like `cancel`.

        Args:
            message: Text, a `Message`, or a user message or its parts in any API's format.
            interrupt: Whether to end a turn that is still open, without its pending tool calls.
            event: Metadata of the message, as for `Session.ask`.

        Raises:
            ProviderError: The model gives no reply. `resume` sends the call again.
            TurnError: A turn is open, or the model was called too often.
            BudgetError: What must be sent exceeds the budget.
        """
        return drive(self._loop.run(message, interrupt=interrupt, event=event))

    def resume(self) -> Iterator[AgentEvent]:
        """Continue the open turn and yield its events. Tool calls without a stored result are run, maybe again.

        Raises:
            TurnError: No turn is open.
            ProviderError: The model gives no reply.
        """
        return drive(self._loop.resume())

    def answer(self, message: object, *, interrupt: bool = False, **event: Unpack[EventFields]) -> str:
        """Run a turn to its end and return the text of the final reply. Arguments and errors are those of `run`."""
        text = ""
        for each in self.run(message, interrupt=interrupt, **event):
            if isinstance(each, DoneEvent):
                text = each.text
        return text

    def cancel(self) -> None:
        """End the running turn, from any thread: store the partial reply and close the turn."""
        self._loop.cancel()


class AsyncAgent:
    """Durable conversation that calls a model and runs tools. `Nexus.async_agent` opens one.

    Its methods have the arguments and errors of `Agent`. Cancelling the task that iterates ends the turn like `cancel`.
    """

    def __init__(self, loop: AgentLoop) -> None:
        self._loop = loop
        self._session = AsyncSession(loop.engine)

    def __repr__(self) -> str:
        return f"AsyncAgent({self._loop.engine.describe()})"

    @property
    def session(self) -> AsyncSession:
        """The session: its messages, usage and pending tool calls, compaction, forks."""
        return self._session

    @property
    def level(self) -> str:
        """The permission level: `yolo`, `trusted` or `sandboxed`."""
        return self._loop.level

    def run(
        self, message: object, *, interrupt: bool = False, **event: Unpack[EventFields]
    ) -> AsyncIterator[AgentEvent]:
        """Start a turn and yield its events, a `DoneEvent` with the final reply last."""
        return drive_async(self._loop.run(message, interrupt=interrupt, event=event))

    def resume(self) -> AsyncIterator[AgentEvent]:
        """Continue the open turn and yield its events. Tool calls without a stored result are run, maybe again."""
        return drive_async(self._loop.resume())

    async def answer(self, message: object, *, interrupt: bool = False, **event: Unpack[EventFields]) -> str:
        """Run a turn to its end and return the text of the final reply."""
        text = ""
        async for each in self.run(message, interrupt=interrupt, **event):
            if isinstance(each, DoneEvent):
                text = each.text
        return text

    def cancel(self) -> None:
        """End the running turn: store the partial reply and close the turn."""
        self._loop.cancel()


def open_agent_loop(
    runtime: SessionRuntime, loaded: LoadedLayers, name: str, **given: Unpack[AgentArguments]
) -> AgentLoop:
    """Build the loop of an agent from its arguments.

    Args:
        runtime: Shared by all sessions of the Nexus.
        loaded: The layers of its directory.
        name: The name of its session.
        given: The arguments of `Nexus.agent`.

    Raises:
        UsageError: An argument is invalid; there is no such provider, level or role.
    """
    tools = read_agent_tools(given.pop("tools", None))
    provider, level, ask = given.pop("provider", None), given.pop("level", None), given.pop("ask", None)
    max_calls, any_directory = given.pop("max_calls", MAX_MODEL_CALLS), given.pop("any_directory", False)
    providers = runtime.host.providers(loaded)
    chosen = choose_provider(provider, providers, loaded.settings, has_model=bool(given.get("model")))
    check_loop_arguments(ask, max_calls)
    session: Any = given  # what is left are the arguments of a session
    engine = open_engine(runtime, name, any_directory=any_directory, tools=tools.definitions, **session)
    return AgentLoop(
        engine,
        lambda: runtime.ledger,
        providers=providers,
        provider=chosen,
        functions=tools.functions,
        runners=tools.runners,
        level=read_level(level, loaded.settings),
        ask=ask,
        max_calls=max_calls,
    )


def check_loop_arguments(ask: object, max_calls: object) -> None:
    """Raise a UsageError if `ask` is not a function, or `max_calls` not a positive number."""
    if ask is not None and not callable(ask):
        raise UsageError("ask must be a function", hint="ask=lambda call, reason: True lets a call run")
    if type(max_calls) is not int or max_calls < 1:
        raise UsageError(f"max_calls must be a positive number, not {max_calls!r}")


def choose_provider(
    given: str | Provider | None, providers: ContributionRegistry[Provider], settings: Settings, *, has_model: bool
) -> Provider | None:
    """Return the passed provider, or None for that of the settings or of the model.

    Args:
        given: The provider, or its name.
        providers: The providers of plugins.
        settings: The settings of the agent's directory.
        has_model: Whether the program names the model.

    Raises:
        UsageError: It has the wrong type, or a project decides where the conversation is sent.
        UnknownNameError: There is no such provider.
    """
    if given is None:
        refuse_choice_of_project(settings, has_model=has_model)
        return None
    if isinstance(given, str):
        return providers.get(given)
    if not isinstance(given, Provider):
        raise UsageError(f"provider must be a name or a Provider, not of type {type(given).__name__}")
    return given


def refuse_choice_of_project(settings: Settings, *, has_model: bool) -> None:
    """Raise if a project decides which provider gets the conversation: by name, or by a model that belongs to one.

    Raises:
        UsageError: It does.
    """
    names = ("provider.provider",) if settings.get("provider.provider") or has_model else ("provider.model",)
    for name in names:
        origins = settings.origins.get(dotted_to_pointer(name), ())
        if origins and origins[0].layer != _USER_LAYER:
            raise UsageError(
                f"{name} of a project would decide where this conversation is sent",
                where=str(origins[0]),
                hint="pass provider=…, or set provider.provider in your own config.json and remove it here",
                command="--provider NAME, or `nexus config set --global provider.provider NAME`",
            )


class AgentTools(NamedTuple):
    """The tools of an agent.

    Attributes:
        functions: Python functions, by name.
        runners: Objects that run the tools of plugins.
        definitions: The definitions that the model is offered; None for those of the session.
    """

    functions: dict[str, FunctionTool]
    runners: tuple[ToolRunner, ...]
    definitions: list[Any] | None


def read_agent_tools(given: Iterable[object] | None) -> AgentTools:
    """Read the tools of an agent: functions, and objects that run the tools of plugins.

    Raises:
        UsageError: One of them is neither, or a function cannot be a tool.
    """
    if isinstance(given, str) or (given is not None and not hasattr(given, "__iter__")):
        raise UsageError("tools must be a list", hint="tools=[read_file]")
    functions: dict[str, FunctionTool] = {}
    runners: list[ToolRunner] = []
    definitions: list[Any] = []
    for each in given or ():
        if isinstance(each, ToolRunner):
            runners.append(each)
            definitions += [each.tool] if hasattr(each, "tool") else []
        elif isinstance(each, FunctionTool) or callable(each):
            function: FunctionTool = each if isinstance(each, FunctionTool) else FunctionTool(each)
            functions[function.name] = function
            definitions.append(function.definition)
        else:
            raise UsageError(
                f"a tool of an agent must be a function, not of type {type(each).__name__}",
                hint="an agent runs its tools; nexus.session(…) takes definitions without a function",
            )
    return AgentTools(functions, tuple(runners), None if given is None else definitions)
