"""The root command `nexus`, with its table of core commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from nexus_core._version import __version__
from nexus_core.cli.aliases import add_aliases
from nexus_core.cli.lazy_group import LazyGroup
from nexus_core.cli.options import BriefOption, JsonOption, build_global_options
from nexus_core.errors import NexusError, UsageError
from nexus_core.host.bundled import BUNDLED
from nexus_core.host.discovery import OWN_DISTRIBUTION
from nexus_core.types.plugins import Command

if TYPE_CHECKING:
    from typer._click import Command as ClickCommand  # private, but the only name of what Typer returns
    from typer._click import Context

    from nexus_core.cli.context import CliContext
    from nexus_core.host.manager import ContributionRegistry

_COMMANDS_KEY = "nexus.commands"

EXAMPLES = """
\b
Examples:
  nexus context                where the tokens of your conversations go
  nexus -C services/auth show  the prompt of that directory
"""


class RootGroup(LazyGroup):
    """The core commands, in the order of the help page, then those of plugins."""

    core = {  # noqa: RUF012 - a table, never changed
        command.name: command
        for command in (
            Command("status", "Summarize this directory in ten lines.", "nexus_core.cli.commands.status:app"),
            Command("show", "Print the system prompt of this directory.", "nexus_core.cli.commands.show:app"),
            Command("layers", "List the layers that this directory is made of.", "nexus_core.cli.commands.layers:app"),
            Command(
                "assemble", "Print the request that would be sent to a model.", "nexus_core.cli.commands.assemble:app"
            ),
            Command(
                "context",
                "Show how the tokens of a request or transcript are used.",
                "nexus_core.cli.commands.context:app",
            ),
            Command(
                "diff",
                "Show where two requests differ and why the cache broke.",
                "nexus_core.cli.commands.diff:app",
            ),
            Command("tokens", "Count the tokens of files.", "nexus_core.cli.commands.tokens:app"),
            Command(
                "explain",
                "Show where a setting, server, file or sentence comes from.",
                "nexus_core.cli.commands.explain:app",
            ),
            Command("check", "Check messages against the rules of an API.", "nexus_core.cli.commands.check:app"),
            Command("chat", "Talk to a model in this directory.", "nexus_core.cli.commands.chat:app"),
            Command("acp", "Serve an editor, or record its agent (ACP).", "nexus_core.cli.commands.acp:app"),
            Command("serve", "Serve agents to programs (JSON-RPC).", "nexus_core.cli.commands.serve:app"),
            Command("rpc", "Call a method of the running server.", "nexus_core.cli.commands.rpc:app"),
            Command("session", "Show, record, change and move sessions.", "nexus_core.cli.commands.session.group:app"),
            Command("memory", "Search, add and forget memories.", "nexus_core.cli.commands.memory:app"),
            Command("ledger", "Verify, repair and copy the ledger.", "nexus_core.cli.commands.ledger:app"),
            Command("config", "Show, change and validate settings.", "nexus_core.cli.commands.config:app"),
            Command("trust", "Approve what a project may start or connect to.", "nexus_core.cli.commands.trust:app"),
            Command("init", "Create a .nexus3 directory.", "nexus_core.cli.commands.init:app"),
            Command("doctor", "Find problems in this directory's configuration.", "nexus_core.cli.commands.doctor:app"),
            Command("plugin", "List, inspect, test and create plugins.", "nexus_core.cli.commands.plugin:app"),
        )
    }

    def list_commands(self, ctx: Context) -> list[str]:
        """Return the names of core commands in their own order, then those of plugins, sorted."""
        try:
            known = list(self._all_commands(ctx))
        except NexusError as error:  # the help page is most wanted when something is broken
            ctx.find_root().obj.console.warning(str(error))
            known = []
        return [*self.core, *(name for name in known if name not in self.core)]

    def find_command(self, ctx: Context, name: str) -> tuple[Command | None, str]:
        """Return the command of that name, or None, and the plugin it comes from."""
        if name in self.core:
            return self.core[name], OWN_DISTRIBUTION
        commands = self._all_commands(ctx)
        return (commands.get(name), commands.owner(name)) if name in commands else (None, "")

    def unknown_command(self, ctx: Context, name: str) -> UsageError:
        """Return the error for a name that no command has, or that only an inactive plugin has."""
        if owner := _find_bundled_owner(name):
            what = f"the command {name!r} belongs to the plugin {owner!r}, which is not active"
            return UsageError(what, hint=f"nexus plugin info {owner}")
        return super().unknown_command(ctx, name)

    def _all_commands(self, ctx: Context) -> ContributionRegistry[Command]:
        # Asked for once per run, and only when no core command answers.
        root = ctx.find_root()
        if _COMMANDS_KEY not in root.meta:
            cli: CliContext = root.obj
            with cli.nexus() as nexus:
                root.meta[_COMMANDS_KEY] = nexus.host.commands(self.core.values())
        commands: ContributionRegistry[Command] = root.meta[_COMMANDS_KEY]
        return commands


def _find_bundled_owner(name: str) -> str | None:
    """Return the bundled plugin that has a command of that name when it is active, or None."""
    for candidate in BUNDLED:
        answer: Any = candidate.constants.get("nexus_commands", tuple)()
        if name in {command.name for command in answer}:
            return candidate.name
    return None


app = typer.Typer(cls=RootGroup, rich_markup_mode=None, context_settings={"help_option_names": ["-h", "--help"]})


@app.callback(invoke_without_command=True, epilog=EXAMPLES)
def nexus(
    ctx: typer.Context,
    *,
    json: JsonOption = False,
    brief: BriefOption = False,
    init_global: Annotated[
        bool, typer.Option("--init-global", help="The same as `nexus init --global`.", hidden=True)
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="With --init-global: overwrite.", hidden=True)] = False,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)] = False,
) -> None:
    """Assemble what a language model reads, and show its sources.

    Without a command, `nexus` summarizes this directory in ten lines.
    """
    if version:
        ctx.obj.console.text(f"nexus {__version__}")
        raise typer.Exit
    if force and not init_global:
        raise UsageError("--force says what to do about files", hint="nexus --init-global --force, nexus init --force")
    if (json or brief) and ctx.invoked_subcommand:
        option = "--json" if json else "--brief"
        raise UsageError(f"{option} is meant for the command", hint=f"nexus {ctx.invoked_subcommand} {option}")
    if init_global:
        from nexus_core.cli.commands.init import init_user_directory as write_global

        write_global(ctx.obj, force=force)
    elif ctx.invoked_subcommand is None:
        from nexus_core.cli.commands.status import print_status

        print_status(ctx.obj, json=json, brief=brief)


def build_root_command() -> ClickCommand:
    """Return the root command with the options that every command understands."""
    command = typer.main.get_command(app)
    command.params += build_global_options(hidden=False)
    add_aliases(command, "")
    return command
