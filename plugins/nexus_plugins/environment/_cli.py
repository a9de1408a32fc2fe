"""The command `nexus environment`, in no help page: `nexus show --section environment` replaces it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from nexus_plugins.environment import list_facts

if TYPE_CHECKING:
    from nexus_core.plugin import CommandContext

app = typer.Typer()


@app.command(epilog="\b\nExamples:\n  nexus environment\n  nexus -C services/auth environment --json")
def environment(
    ctx: typer.Context,
    *,
    mode: Annotated[
        str,
        typer.Option("--mode", metavar="MODE", help="Say who drives the agent: repl (a person) or server (programs)."),
    ] = "",
    json: Annotated[bool, typer.Option("--json", help="Print the facts as JSON.")] = False,
) -> None:
    """Print the facts about this machine that a model reads.

    `nexus show --section environment` prints them as they are in the prompt.
    """
    cli: CommandContext = ctx.obj
    with cli.nexus() as nexus:
        request = replace(nexus.request(mode=mode), is_call=True)  # type: ignore[arg-type] # validated by Request
        facts = list_facts(request, nexus.load(request).settings)
    if json:
        keys = {name.lower().replace(" ", "_"): value for name, value in facts.items()}
        cli.console.json({"schema": 1, "environment": keys})
    else:
        cli.console.table(list(facts.items()))
