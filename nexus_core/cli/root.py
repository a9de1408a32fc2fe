"""The root command: what `nexus` alone does, and the list of core commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from nexus_core._version import __version__
from nexus_core.cli.lazy import LazyGroup
from nexus_core.cli.options import Brief, Json, shared_options
from nexus_core.errors import UsageError
from nexus_core.values.command import Command

if TYPE_CHECKING:
    from typer._click import Command as ClickCommand  # private, but the only name of what Typer returns

EXAMPLES = """
\b
Examples:
  nexus show                     the prompt of this directory
  nexus -C services/auth layers  what contributes to the prompt over there
"""


class RootGroup(LazyGroup):
    """The core commands, in the order of the help page."""

    core = {  # noqa: RUF012 - a table, never changed
        command.name: command
        for command in (
            Command("status", "This directory in ten lines.", "nexus_core.cli.status:app"),
            Command("show", "Print the labelled system prompt.", "nexus_core.cli.show:app"),
            Command("layers", "List the layers that were found.", "nexus_core.cli.layers:app"),
            Command("assemble", "Print what would be sent to a model.", "nexus_core.cli.request.assemble:app"),
            Command("context", "Show where the tokens go.", "nexus_core.cli.context.command:app"),
            Command(
                "diff",
                "Show where two requests differ, and why the cache breaks.",
                "nexus_core.cli.request.diff:app",
            ),
            Command("tokens", "Count the tokens of files.", "nexus_core.cli.tokens:app"),
            Command("explain", "Show where something comes from, or why it is missing.", "nexus_core.cli.explain:app"),
            Command("check", "Check a list of messages against the rules of an API.", "nexus_core.cli.check:app"),
            Command("session", "Inspect, move and repair conversations.", "nexus_core.cli.session.commands:app"),
            Command("config", "Show, change and check settings.", "nexus_core.cli.config:app"),
            Command("trust", "Decide what a project may start or connect to.", "nexus_core.cli.trust:app"),
            Command("init", "Create a .nexus3 directory.", "nexus_core.cli.init:app"),
            Command("doctor", "Check this directory for problems.", "nexus_core.cli.doctor:app"),
            Command("plugins", "List, inspect, create and check plugins.", "nexus_core.cli.plugins:app"),
        )
    }


app = typer.Typer(cls=RootGroup, rich_markup_mode=None, context_settings={"help_option_names": ["-h", "--help"]})


@app.callback(invoke_without_command=True, epilog=EXAMPLES)
def nexus(
    ctx: typer.Context,
    *,
    json: Json = False,
    brief: Brief = False,
    init_global: Annotated[bool, typer.Option("--init-global", help="The same as `nexus init --global`.")] = False,
    force: Annotated[bool, typer.Option("--force", help="With --init-global: overwrite.", hidden=True)] = False,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)] = False,
) -> None:
    """Assemble what a language model reads, and show where each piece comes from.

    Without a command: this directory in ten lines.
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
        from nexus_core.cli.init import init_global as write_global  # noqa: PLC0415 - other commands do not need it

        write_global(ctx.obj, force=force)
    elif ctx.invoked_subcommand is None:
        from nexus_core.cli.status import print_status  # noqa: PLC0415 - other commands do not need it

        print_status(ctx.obj, json=json, brief=brief)


def root_command() -> ClickCommand:
    """The root command with the options that every command understands."""
    command = typer.main.get_command(app)
    command.params += shared_options(hidden=False)
    return command
