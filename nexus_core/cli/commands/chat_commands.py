"""The commands of a chat: `/help`, `/compact`, `/model` and the others."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, NamedTuple

from nexus_core.cli.output import format_time
from nexus_core.cli.root import build_root_command
from nexus_core.cli.run import report_error
from nexus_core.cli.session_lookup import find_session, get_session_names
from nexus_core.errors import UnknownNameError, UsageError
from nexus_core.text.console import format_count
from nexus_core.text.safety import visible_line
from nexus_core.text.secrets import completable_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from nexus_core.agents.events import AgentEvent
    from nexus_core.cli.commands.chat import Chat


MAX_LISTED_SESSIONS = 20
"""Sessions that fit on a screen."""
MAX_LISTED_NAME_CHARACTERS = 28
"""Characters of a name beside the other columns: a row with a longer one takes two lines of 80 columns."""


class ChatCommand(NamedTuple):
    """A command of a chat.

    Attributes:
        name: The word behind the slash.
        arguments: Its arguments, for help.
        help: One line for help.
    """

    name: str
    arguments: str
    help: str


COMMANDS = (
    ChatCommand("help", "", "List the commands."),
    ChatCommand("init", "", "Create a .nexus3 directory here."),
    ChatCommand("compact", "[FOCUS]", "Summarize earlier turns, with an eye to FOCUS."),
    ChatCommand("undo", "", "Revert the latest compaction."),
    ChatCommand("context", "", "Show how the tokens of the next call are used."),
    ChatCommand("tokens", "[FILE...]", "Show the tokens and costs of this session, or count those of files."),
    ChatCommand("memory", "[COMMAND]", "List memories, or run `nexus memory COMMAND`."),
    ChatCommand("mcp", "[connect|disconnect NAME]", "List MCP servers, start or stop one, or run `nexus mcp …`."),
    ChatCommand("model", "[NAME]", "Show the model, or call another from now on."),
    ChatCommand("agent", "[ROLE]", "Show the agent role, or take another: unified, manager or worker."),
    ChatCommand("session", "[NAME]", "List sessions, or continue another."),
    ChatCommand("fork", "NAME", "Continue in a copy of this session."),
    ChatCommand("explain", "X", "Show where a setting, server, file or sentence comes from."),
    ChatCommand("show", "", "Show the last turn in full, with its tool results."),
    ChatCommand("resume", "", "Continue a turn that was not finished."),
    ChatCommand("quit", "", "Leave. The session is stored."),
)
"""In the order of the help page. A message that begins with a slash is written with two."""


class ChatCommandRunner:
    """Runs the commands of a chat.

    Args:
        chat: The conversation.
        ledger: The value of `--ledger`.
        run_turn: Prints the events of a turn.
        use_terminal: Returns a block in which a command may read the terminal.
    """

    def __init__(
        self,
        chat: Chat,
        ledger: str,
        run_turn: Callable[[Iterator[AgentEvent]], None],
        use_terminal: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._chat = chat
        self._ledger = ledger
        self._run_turn = run_turn
        self._use_terminal = use_terminal

    def run(self, text: str) -> bool:
        """Run a command and return False if the chat is over.

        Raises:
            UnknownNameError: There is no such command.
            UsageError: Its arguments are invalid.
        """
        name, _, rest = text[1:].partition(" ")
        rest = rest.strip()
        if name in {"quit", "exit", "q"}:
            return False
        names = [command.name for command in COMMANDS]
        if name not in names:
            raise UnknownNameError("command of the chat", f"/{name}", [f"/{each}" for each in names])
        run: Callable[[str], None] = getattr(self, f"_run_{name}")
        run(rest)
        return True

    def complete(self, name: str, text: str) -> list[str]:
        """Return the names that an argument may become."""
        nexus = self._chat.nexus
        known: list[str] = []
        if name == "session":
            known = get_session_names(nexus.ledger)
        elif name == "model":
            known = [each.rstrip("*") for each in nexus.host.models()]
        elif name == "agent":
            known = self._list_roles()
        elif name == "mcp":
            known = ["list", "tools", "test", "enable", "disable", "connect", "disconnect"]
            _, space, text = text.rpartition(" ")
            if space:
                known = [server.config.name for server in nexus.load().servers]
        elif name == "memory":
            known = ["list", "search", "add", "forget", "why"]
        return sorted(each for each in completable_names(known) if each.startswith(text))

    # ---- what Nexus commands do -------------------------------------------------------------------------------------

    def _run_nexus(self, *arguments: str) -> bool:
        """Run a command of `nexus` in this process and return True if it ends well. Errors are printed."""
        cli = self._chat.cli
        try:
            with (
                self._use_terminal(),
                build_root_command().make_context("nexus", [*arguments], obj=cli) as ctx,
            ):
                ctx.command.invoke(ctx)
        except Exception as error:  # noqa: BLE001 - a command that fails does not end the chat
            return report_error(cli, error) == 0
        return True

    def _with_ledger(self) -> list[str]:
        return ["--ledger", self._ledger] if self._ledger else []

    def _require_session(self) -> str:
        name = self._chat.name
        if self._chat.nexus.ledger.session(name) is None:
            raise UsageError("this session has no message yet", hint="type a message first")
        return name

    def _run_init(self, rest: str) -> None:
        if self._run_nexus("init", *_split(rest)):
            self._chat.reload()

    def _run_compact(self, rest: str) -> None:
        focus = ["--focus", rest] if rest else []
        self._run_nexus("session", "compact", self._require_session(), *focus, *self._with_ledger())

    def _run_undo(self, rest: str) -> None:
        _refuse_arguments("undo", rest)
        self._run_nexus("session", "compact", self._require_session(), "--undo", *self._with_ledger())

    def _run_context(self, rest: str) -> None:
        self._run_nexus("context", "--session", self._require_session(), *_split(rest), *self._with_ledger())

    def _run_tokens(self, rest: str) -> None:
        if rest:
            self._run_nexus("tokens", *_split(rest))
        else:
            self._run_nexus("session", "stats", self._require_session(), *self._with_ledger())

    def _run_memory(self, rest: str) -> None:
        self._run_nexus("memory", *(_split(rest) or ["list"]), *self._with_ledger())

    def _run_mcp(self, rest: str) -> None:
        verb, *names = _split(rest) or ["list"]
        if verb not in {"connect", "disconnect"}:
            self._run_nexus("mcp", verb, *names)
            return
        if len(names) != 1:
            raise UsageError(f"/mcp {verb} takes the name of one server", hint=f"/mcp {verb} NAME; /mcp lists them")
        servers = self._chat.toolsets.find_servers()
        if servers is None:
            raise UsageError("there are no MCP servers", hint="the plugin mcp and its extra must be installed")
        if verb == "disconnect":
            servers.disconnect(names[0])
            self._say(f"{names[0]} is stopped; its tools are not run until you connect it again.")
            return
        tools = servers.connect(names[0])
        self._chat.reload()
        self._say(f"{names[0]} has {format_count(len(tools), 'tool')} for the model: {', '.join(tools) or '-'}")

    def _run_explain(self, rest: str) -> None:
        if not rest:
            raise UsageError("there is nothing to explain", hint="/explain provider.model, or a sentence of the prompt")
        quote = rest[0] if rest[0] in "'\"" and rest[0] == rest[-1] and len(rest) > 1 else ""
        self._run_nexus("explain", "--", rest.strip(quote) if quote else rest)  # a sentence needs no quotes here

    def _run_show(self, rest: str) -> None:
        limit = [] if rest else ["-n", "1"]
        name = self._require_session()
        self._run_nexus("session", "show", name, "--full", *limit, *_split(rest), *self._with_ledger())

    # ---- what only a chat can do ------------------------------------------------------------------------------------

    def _run_help(self, rest: str) -> None:
        _refuse_arguments("help", rest)
        rows = [(f"/{each.name} {each.arguments}".rstrip(), each.help) for each in COMMANDS]
        self._chat.cli.console.table(rows)
        keys = "Enter sends; Alt-Enter or \\ Enter begin a line; Ctrl-X Ctrl-E opens an editor; "
        self._say(keys + "Tab completes; Ctrl-C ends the turn, twice the chat. // begins a message with a slash.")

    def _run_model(self, rest: str) -> None:
        if rest:
            self._chat.reopen(model=rest)
            _ = self._chat.agent  # raises if there is no provider of that name
        self._say(f"model {self._chat.model}")

    def _run_agent(self, rest: str) -> None:
        if rest:
            if rest not in self._list_roles():
                raise UnknownNameError("agent role", rest, self._list_roles())
            self._chat.reopen(role=rest)
        record = self._chat.nexus.ledger.session(self._chat.name)
        stored = record.payload.role if record is not None else None
        self._say(f"agent role {self._chat.given.get('role') or stored or 'unified'}")

    def _run_session(self, rest: str) -> None:
        if not rest:
            self._list_sessions()
            return
        for name in ("model", "role"):  # another session has its own
            self._chat.given.pop(name, None)
        self._chat.reopen(find_session(self._chat.nexus.ledger, rest).label)
        self._say(f"session {self._chat.name}")
        if self._chat.agent.session.is_open:
            self._say("Its last turn was not finished: /resume continues it, a new message ends it.")

    def _list_sessions(self) -> None:
        """Print the sessions that changed last, with what tells them apart, in 80 columns."""
        from nexus_core.cli.commands.session.overview import read_all_overviews
        from nexus_core.ledger.queries import find_newest_sessions

        ledger = self._chat.nexus.ledger
        records, left_out = find_newest_sessions(ledger, status="active", directory=None, limit=MAX_LISTED_SESSIONS)
        found, damaged = read_all_overviews(ledger, records)
        rows = [("SESSION", "TURNS", "CHANGED", "MODEL")]
        for each in found:
            turns = f"{each.turns:,}{'*' * bool(each.record.open_turn)}"
            rows.append((each.record.label, turns, format_time(each.record.updated), each.model or "-"))
        self._chat.cli.console.table(rows, styles=["bold"], right=[1], longest_name=MAX_LISTED_NAME_CHARACTERS)
        if any(each.record.open_turn for each in found):
            self._say("* the last turn was not finished")
        more = f"{left_out:,} more; " if left_out else ""
        broken = f"{len(damaged):,} damaged; " if damaged else ""
        self._say(f"{more}{broken}/session NAME continues one; `nexus session list` has tokens, costs and directories.")

    def _run_fork(self, rest: str) -> None:
        if not rest:
            raise UsageError("a copy needs a name", hint="/fork NAME")
        self._require_session()
        self._chat.agent.session.fork(rest)
        self._chat.reopen(rest)
        self._say(f"session {rest}, a copy")

    def _run_resume(self, rest: str) -> None:
        _refuse_arguments("resume", rest)
        if not self._chat.agent.session.is_open:
            raise UsageError("the last turn was finished", hint="type a message to begin another")
        self._run_turn(self._chat.resume())

    def _list_roles(self) -> list[str]:
        from nexus_core.rendering import UNIFIED_ROLE

        return list(self._chat.nexus.host.roles([UNIFIED_ROLE]))

    def _say(self, text: str) -> None:
        self._chat.cli.console.text(visible_line(text), style="dim", wrap=True)


def _split(text: str) -> list[str]:
    """Return the arguments of a command, as a shell splits them.

    Raises:
        UsageError: A quote is not closed.
    """
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UsageError(f"the arguments cannot be read: {error}", hint="close the quotes") from None


def _refuse_arguments(name: str, rest: str) -> None:
    if rest:
        raise UsageError(f"/{name} takes no arguments, not {rest!r}")
