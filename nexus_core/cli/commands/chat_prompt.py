"""The prompt of `nexus chat`: input with history and completion, turns as they run, and a status line."""

from __future__ import annotations

import os
import sys
import termios
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Self

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import Completer, Completion
from prompt_toolkit.history import FileHistory, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.output import create_output
from prompt_toolkit.styles import Style

from nexus_core.agents import (
    CompactionEvent,
    DoneEvent,
    TextDelta,
    ToolCallEvent,
    ToolResultEvent,
)
from nexus_core.cli.commands.chat import cancel_on_interrupt, describe_stop
from nexus_core.cli.commands.chat_commands import COMMANDS, ChatCommandRunner
from nexus_core.cli.context import EXIT_INTERRUPTED
from nexus_core.cli.output import compute_hit_rate, excerpt_call, format_rate
from nexus_core.cli.run import report_error
from nexus_core.errors import NexusError
from nexus_core.text.console import format_count, format_percent
from nexus_core.text.layout import measure_width
from nexus_core.text.safety import shorten, visible, visible_line
from nexus_core.text.secrets import redact
from nexus_core.tokens.messages import to_compact_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from prompt_toolkit.completion import CompleteEvent
    from prompt_toolkit.document import Document
    from prompt_toolkit.history import History
    from prompt_toolkit.key_binding import KeyPressEvent

    from nexus_core.agents.events import AgentEvent
    from nexus_core.cli.commands.chat import Chat
    from nexus_core.thread.state import RecordedCall
    from nexus_core.types.messages import ToolResult

HISTORY_FILE = "chat_history"
"""Messages that were typed, in the Nexus home."""
_PROMPT = "> "
_QUESTION = "Run it? [y]es, [n]o, [a]lways in this chat: "
_MAX_RESULT_CHARACTERS = 100
_STYLE = Style.from_dict({"bottom-toolbar": "noreverse", "bottom-toolbar.text": "noreverse"})


def run_chat(chat: Chat, ledger: str) -> None:
    """Talk until the user leaves.

    Args:
        chat: The conversation.
        ledger: The value of `--ledger`.
    """
    TerminalChat(chat, ledger).run()


class TerminalChat:
    """Interactive chat: reads input, runs turns, prints their events.

    Args:
        chat: The conversation.
        ledger: The value of `--ledger`.
    """

    def __init__(self, chat: Chat, ledger: str) -> None:
        self._chat = chat
        self._console = chat.cli.console
        self._allowed: set[str] = set()  # tools that the user allowed for this chat
        self._status: tuple[str, ...] = ()
        self._output = create_output(stdout=self._console.output)
        self._terminal = QuietTerminal()
        self._commands = ChatCommandRunner(chat, ledger, self._run_turn, self._terminal.paused)
        self._input: PromptSession[str] = PromptSession(
            output=self._output,
            history=open_history(chat.nexus.home),
            completer=ChatCompleter(self._commands),
            complete_while_typing=False,
            key_bindings=build_key_bindings(),
            multiline=True,  # Enter sends nevertheless; pasted lines stay together
            prompt_continuation=". ",
            bottom_toolbar=lambda: fit_status(self._status, self._output.get_size().columns),
            style=_STYLE,
            enable_open_in_editor=True,
            tempfile_suffix=".md",
        )
        chat.ask = self._ask
        chat.mode = "repl"

    def run(self) -> None:
        """Read messages and commands until the user leaves."""
        agent = self._chat.agent  # raises at once if no model is configured
        self._chat.require_provider()
        with self._terminal:
            self._greet(is_open=agent.session.is_open)
            self._read_messages()

    def _read_messages(self) -> None:
        was_interrupted = False
        while True:
            self._update_status()
            try:
                text = self._input.prompt(_PROMPT).strip()
            except KeyboardInterrupt:
                if was_interrupted and not self._input.default_buffer.text:  # with a text, it discards that
                    raise
                was_interrupted = True
                self._say("(Ctrl-C again, Ctrl-D or /quit leaves)")
                continue
            except EOFError:
                return
            was_interrupted = False
            if not text:
                continue
            try:
                if text.startswith("/") and not text.startswith("//"):
                    if not self._commands.run(text):
                        return
                else:
                    self._run_turn(self._chat.run(text.removeprefix("/") if text.startswith("//") else text))
            except Exception as error:  # noqa: BLE001 - the chat survives what a command or a turn raises
                self._report(error)

    def _greet(self, *, is_open: bool) -> None:
        chat = self._chat
        self._say(f"{chat.model} in {chat.nexus.cwd}, session {chat.name}. /help lists the commands.")
        if is_open:
            self._say("The last turn was not finished: /resume continues it, a new message ends it.")

    # ---- turns ------------------------------------------------------------------------------------------------------

    def _run_turn(self, events: Iterator[AgentEvent]) -> None:
        """Print the events of a turn until it is done."""
        stream = self._console.stream()
        with cancel_on_interrupt(self._chat.agent), self._waiting() as end_waiting:
            try:
                for event in events:
                    end_waiting()
                    if isinstance(event, TextDelta):
                        stream.write(event.text)
                    elif isinstance(event, ToolCallEvent):
                        stream.close()
                        self._say(f"▸ {excerpt_call(event.call.call)}")
                    elif isinstance(event, ToolResultEvent):
                        self._say(f"  {_describe_result(event.result, event.seconds)}")
                    elif isinstance(event, CompactionEvent):
                        self._say("(earlier turns were summarized to fit the context window)")
                    elif isinstance(event, DoneEvent):
                        stream.close()
                        self._end_turn(event)
                        self._console.text("")
            finally:
                end_waiting()
                stream.close()

    def _end_turn(self, done: DoneEvent) -> None:
        if done.cancelled:
            self._say("(stopped; what was said is stored)")
        elif remark := describe_stop(done):
            self._console.warning(remark)

    @contextmanager
    def _waiting(self) -> Iterator[Callable[[], None]]:
        """Show that the model is thinking, until the returned function is called."""
        is_shown = self._console.is_rich
        out = self._console.output
        if is_shown:
            out.write("…")
            out.flush()

        def end() -> None:
            nonlocal is_shown
            if is_shown:
                is_shown = False
                out.write("\r\x1b[K")
                out.flush()

        try:
            yield end
        finally:
            end()

    def _ask(self, call: RecordedCall, reason: str) -> bool:
        """Ask whether a tool call may run. What is not understood is a no."""
        if call.name in self._allowed:
            return True
        arguments = to_compact_json(call.arguments)
        self._console.text(visible(f"{call.name} {arguments}"), wrap=True)
        self._say(f"It needs your permission: {reason}.")
        answer = PromptSession[str](output=self._output).prompt(_QUESTION).strip().lower()
        if answer in {"a", "always"}:
            self._allowed.add(call.name)
        return answer in {"y", "yes", "a", "always"}

    # ---- messages ---------------------------------------------------------------------------------------------------

    def _say(self, text: str) -> None:
        self._console.text(visible_line(text), style="dim", wrap=True)

    def _report(self, error: Exception) -> None:
        code = report_error(self._chat.cli, error)
        if code == EXIT_INTERRUPTED:
            return
        with suppress(NexusError):
            if self._chat.agent.session.is_open:
                self._say("The turn is open: /resume sends the call again, a new message ends the turn.")

    def _update_status(self) -> None:
        try:
            self._status = describe_status(self._chat)
        except NexusError as error:  # the status is not worth an error of its own
            self._status = (error.what,)


def describe_status(chat: Chat) -> tuple[str, ...]:
    """Return share of the window, cost, share that came from the cache, model and session; what changes is first."""
    budget, cost = chat.measure()
    cached = [f"{format_rate(compute_hit_rate(chat.usage))} from the cache"] if chat.usage.input_tokens else []
    used = f"{format_percent(budget.estimate, budget.limit)} of {budget.limit:,} tokens"
    return used, f"cost {cost}", *cached, chat.model, chat.name


def fit_status(parts: Sequence[str], columns: int) -> str:
    """Return as many parts of a status as fit into a line, at least the first one."""
    line = visible_line(f" {parts[0]}") if parts else ""
    for part in parts[1:]:
        longer = visible_line(f"{line} · {part}")
        if measure_width(longer) >= columns:
            break
        line = longer
    return line


def _describe_result(result: ToolResult, seconds: float) -> str:
    """Return a tool result in one line: its first line if it is an error, else its size and time."""
    text = result.text
    if result.is_error:
        return f"failed: {shorten(' '.join(redact(text).text.split()), _MAX_RESULT_CHARACTERS)}"
    return f"{format_count(len(text.splitlines()), 'line')} in {seconds:.1f} s"


# ---- input ----------------------------------------------------------------------------------------------------------


def build_key_bindings() -> KeyBindings:
    """Return the keys: Enter sends; Alt-Enter and a backslash before Enter begin a new line."""
    keys = KeyBindings()

    @keys.add("enter")
    def _send(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.document.char_before_cursor == "\\":
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        else:
            buffer.validate_and_handle()

    @keys.add("escape", "enter")
    def _break_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return keys


def open_history(home: Path) -> History:
    """Return the history of typed messages: a file that only the user can read, or none if it cannot be written."""
    path = home / HISTORY_FILE
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY | os.O_NOFOLLOW, 0o600))
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))


class ChatCompleter(Completer):
    """Completes the commands of the chat, and the names that they take.

    Args:
        commands: The commands.
    """

    def __init__(self, commands: ChatCommandRunner) -> None:
        self._commands = commands

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:  # noqa: ARG002 - as the base class
        """Yield what the text before the cursor may become."""
        text = document.text_before_cursor
        if not text.startswith("/") or "\n" in text:
            return
        name, space, rest = text[1:].partition(" ")
        if not space:
            for command in COMMANDS:
                if command.name.startswith(name):
                    yield Completion(command.name, -len(name), display_meta=command.help)
        else:
            with suppress(NexusError):
                for each in self._commands.complete(name, rest):
                    yield Completion(each, -len(rest.rpartition(" ")[2]))


class QuietTerminal:
    """Keeps what is typed ahead for the next prompt, without showing it, as long as nothing else reads the terminal."""

    def __init__(self) -> None:
        self._before: list[Any] | None = None

    def __enter__(self) -> Self:
        with suppress(OSError, ValueError, termios.error):  # not a terminal
            self._before = termios.tcgetattr(sys.stdin.fileno())
            self._set_quiet()
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, self._before)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Let a command read the terminal as it was before."""
        if self._before is None:
            yield
            return
        termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, self._before)
        try:
            yield
        finally:
            self._set_quiet()

    def _set_quiet(self) -> None:
        quiet = termios.tcgetattr(sys.stdin.fileno())
        quiet[3] &= ~(termios.ECHO | termios.ICANON)
        termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, quiet)
