"""`nexus chat`: a conversation with a model, at a terminal or for one answer."""

from __future__ import annotations

import signal
import sys
import time
from contextlib import contextmanager
from shlex import quote
from threading import Thread, current_thread, main_thread
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nexus_core.cli.context import EXIT_INTERRUPTED
from nexus_core.cli.options import LevelOption, ProviderOption, RoleOption, build_model_option
from nexus_core.cli.session_lookup import LedgerOption, build_session_option, open_session_nexus
from nexus_core.errors import MissingExtraError, ProviderError, UsageError
from nexus_core.text.safety import visible_line
from nexus_core.types.messages import Usage
from nexus_core.types.plugins import Extra

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from types import TracebackType
    from typing import Self

    from nexus_core.agents import Agent, DoneEvent
    from nexus_core.agents.events import AgentEvent
    from nexus_core.agents.toolsets import ToolsetRunner
    from nexus_core.cli.context import CliContext
    from nexus_core.nexus import Nexus
    from nexus_core.thread.state import RecordedCall
    from nexus_core.tokens.prices import Cost
    from nexus_core.types.budget import TokenBudget
    from nexus_core.types.messages import Stop
    from nexus_core.types.settings import Settings

app = typer.Typer()

CHAT_EXTRA = Extra("chat", modules=("httpx2", "prompt_toolkit"))
_STOP_REMARKS: dict[Stop, str] = {
    "length": "the reply was cut off at the output limit of the model",
    "refusal": "the model refused to answer",
    "broken": "the stream ended before the reply was complete",
}
EXAMPLES = """
\b
Examples:
  nexus chat --session auth-bug
  git diff | nexus chat -p "Write a commit message."
"""


@app.command(epilog=EXAMPLES)
def chat(
    ctx: typer.Context,
    *,
    prompt: Annotated[
        str, typer.Option("-p", "--prompt", metavar="TEXT", help="Answer this once, and print only the answer.")
    ] = "",
    session: Annotated[str, build_session_option("Continue this session, or begin it; a new one by default.")] = "",
    model: Annotated[str, build_model_option("Call this model; provider.model by default.")] = "",
    provider: ProviderOption = "",
    role: RoleOption = "",
    level: LevelOption = "",
    ledger: LedgerOption = "",
) -> None:
    """Talk to a model in this directory.

    With -p, or text on standard input, it answers once and prints only the answer. Every step is stored in the ledger.
    At the prompt, /help lists the commands.
    """
    cli: CliContext = ctx.obj
    message = _read_message(cli, prompt)
    if not message:
        _require_terminal(cli)
    given = {"model": model, "provider": provider, "role": role, "level": level}
    with (
        open_session_nexus(ctx, session, ledger, writes=True, exact=True) as nexus,
        Chat(cli, nexus, session, {name: value for name, value in given.items() if value}) as conversation,
    ):
        if message:
            _answer_once(conversation, message)
        else:
            from nexus_core.cli.commands.chat_prompt import run_chat

            run_chat(conversation, ledger)


def _read_message(cli: CliContext, prompt: str) -> str:
    """Return the text of `-p` and of piped input, or "" for a chat.

    Raises:
        UsageError: There is neither, or no text in it.
    """
    from nexus_core.cli.input import STANDARD_INPUT, read_input_text

    piped = ""
    if sys.stdin is not None and not sys.stdin.isatty():
        piped = read_input_text(cli.cwd, STANDARD_INPUT)[1]
        if not prompt.strip() and not piped.strip():
            raise UsageError("there is nothing to answer: standard input is empty", hint="nexus chat -p '…'")
    elif prompt and not prompt.strip():
        raise UsageError("-p has no text", hint="nexus chat -p '…'")
    return "\n\n".join(filter(str.strip, (prompt, piped)))


def _require_terminal(cli: CliContext) -> None:
    """Raise unless a person can chat here.

    Raises:
        UsageError: The output is no terminal.
        MissingExtraError: The extra `chat` is not installed.
    """
    if not cli.console.is_terminal:
        raise UsageError(
            "there is no terminal to chat on", hint="nexus chat -p '…' answers once and prints only the answer"
        )
    from importlib.util import find_spec

    if find_spec("prompt_toolkit") is None:  # httpx2 is not needed by every provider
        raise MissingExtraError("chat", CHAT_EXTRA)


class Chat:
    """A conversation at the command line: its agent, its options, and what it used so far.

    Attributes:
        cli: The command.
        nexus: The Nexus that the agent belongs to.
        name: The session's name.
        agent: The agent.
        usage: The tokens of the last turn.
        cost: The cost of the session so far; None before it is computed.

    Args:
        cli: The command.
        nexus: As above.
        name: The session's name; "" for a new one.
        given: Options of the agent that the user gave, by the name of the argument of `Nexus.agent`.
    """

    def __init__(self, cli: CliContext, nexus: Nexus, name: str, given: dict[str, Any]) -> None:
        self.cli = cli
        self.nexus = nexus
        self.name = name or name_new_session(nexus)
        self.given = given
        self.ask: Callable[[RecordedCall, str], bool] | None = None
        self.mode: str | None = None
        self.usage = Usage()
        self.cost: Cost | None = None
        self._toolsets: ToolsetRunner | None = None
        self._settings: Settings | None = None
        self._agent: Agent | None = None

    @property
    def agent(self) -> Agent:
        """The agent, opened when it is first used.

        Raises:
            UsageError: No model is configured, or an option is invalid.
        """
        if self._agent is None:
            if not self.model:
                from nexus_core.cli.commands.chat_setup import missing_model_error

                raise missing_model_error()
            given: dict[str, Any] = dict(self.given)
            if self.mode:
                given["mode"] = self.mode
            self._agent = self.nexus.agent(self.name, tools=[self.toolsets], ask=self.ask, any_directory=True, **given)
        return self._agent

    @property
    def toolsets(self) -> ToolsetRunner:
        """Runner of the plugins' tools."""
        if self._toolsets is None:
            from nexus_core.agents.toolsets import ToolsetRunner

            self._toolsets = ToolsetRunner(self.nexus.host, self.nexus)
        return self._toolsets

    @property
    def settings(self) -> Settings:
        """The settings of the directory, as they were when the agent was opened."""
        if self._settings is None:
            self._settings = self.nexus.load().settings
        return self._settings

    @property
    def model(self) -> str:
        """The model that is called: as given, else the session's own, else that of the settings; "" for none."""
        record = self.nexus.ledger.session(self.name)
        stored = (record.payload.model or "") if record is not None else ""
        return self.settings.model_id(self.given.get("model") or stored)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop servers that were started."""
        if self._toolsets is not None:
            self._toolsets.close()

    def reopen(self, name: str = "", **given: str) -> None:
        """Continue with another session, or with other options of this one."""
        self.name = name or self.name
        self.given |= given
        self.usage, self.cost = Usage(), None
        self._agent = self._settings = None

    def reload(self) -> None:
        """Read the directory and its servers again for the next call."""
        self.reopen()
        if self.nexus.ledger.session(self.name) is not None:
            self.agent.session.reload()

    def require_provider(self) -> None:
        """Raise if the session has not begun and its model cannot be called, as far as is known without a connection.

        So a call without a key leaves no session behind. One that has begun can be read and compacted without a call.

        Raises:
            ProviderError: The provider cannot send a call, for example without a key.
            UnknownNameError: There is no such provider.
        """
        if self.nexus.ledger.session(self.name) is not None:
            return
        name = self.given.get("provider")
        if not name:
            request = self.nexus.request(model=self.model)
            name = self.nexus.assemble(request, must_fit=False, announce=False).provider
        provider = self.nexus.host.providers(self.nexus.load()).get(name)
        if provider.check is not None:
            provider.check()

    def run(self, message: str) -> Iterator[AgentEvent]:
        """Start a turn and yield its events. A turn that was left open is ended first."""
        return self._watch(self.agent.run(message, interrupt=True))

    def resume(self) -> Iterator[AgentEvent]:
        """Continue the open turn and yield its events."""
        return self._watch(self.agent.resume())

    def _watch(self, events: Iterable[AgentEvent]) -> Iterator[AgentEvent]:
        from nexus_core.agents import DoneEvent

        for event in events:
            if isinstance(event, DoneEvent):
                self.usage, self.cost = event.usage, None
            yield event

    def measure(self) -> tuple[TokenBudget, Cost]:
        """Return the budget of the next call, and the cost of the session so far."""
        record = self.nexus.ledger.session(self.name)
        if self.cost is None:
            from nexus_core.thread.state import sum_costs
            from nexus_core.tokens.prices import PriceList

            prices = PriceList(self.nexus.host, self.settings)
            self.cost = sum_costs(self.nexus.ledger, record.tip if record else None, prices).cost
        is_stored = record is not None and record.tip is not None
        request = self.nexus.request(session=self.name if is_stored else "", model=self.model)
        return self.nexus.assemble(request, must_fit=False, announce=False).token_budget, self.cost


@contextmanager
def cancel_on_interrupt(agent: Agent) -> Iterator[None]:
    """Cancel the turn on the first Ctrl-C and store the partial reply. The second raises KeyboardInterrupt."""
    is_pressed = False

    def stop(_number: int, _frame: object) -> None:
        nonlocal is_pressed
        if is_pressed:
            raise KeyboardInterrupt
        is_pressed = True
        # In another thread: this one may hold the lock that `cancel` takes.
        Thread(target=agent.cancel, name="nexus cancel", daemon=True).start()

    if current_thread() is not main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def name_new_session(nexus: Nexus, reserved: Collection[str] = ()) -> str:
    """Return a name that no session has, from the time of day.

    Args:
        nexus: Its ledger is asked.
        reserved: Names of sessions that are not in the ledger yet.
    """
    stem = name = time.strftime("chat-%Y-%m-%d-%H%M%S", time.gmtime())
    number = 1
    while name in reserved or nexus.ledger.session(name) is not None:
        number += 1
        name = f"{stem}-{number}"
    return name


def describe_stop(done: DoneEvent) -> str:
    """Return why a reply is not a whole answer; "" if it is one."""
    return _STOP_REMARKS.get(done.stop, "")


def _answer_once(conversation: Chat, message: str) -> None:
    """Run one turn and print the final reply.

    Raises:
        typer.Exit: The turn was cancelled.
    """
    from nexus_core.agents import DoneEvent, TextDelta

    cli = conversation.cli
    agent = conversation.agent
    conversation.require_provider()
    # A model that can call tools may write text before it does, and only the final reply is the answer.
    is_streamed = cli.console.is_terminal or not conversation.nexus.load().servers
    stream = cli.console.stream()
    done: DoneEvent | None = None
    try:
        with cancel_on_interrupt(agent):
            for event in conversation.run(message):
                if isinstance(event, TextDelta) and is_streamed:
                    stream.write(event.text)
                elif isinstance(event, DoneEvent):
                    done = event
                    if not is_streamed:
                        stream.write(event.text)
    except ProviderError:
        name = agent.session.name
        cli.console.message(visible_line(f"The message is stored: `nexus chat --session {quote(name)}` continues."))
        raise
    finally:
        stream.close()
    if done is None or done.cancelled:
        raise typer.Exit(EXIT_INTERRUPTED)
    if remark := describe_stop(done):
        cli.console.warning(visible_line(f"{remark}; session {agent.session.name}"))
