"""`nexus hello`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from nexus_hello import greeting

if TYPE_CHECKING:
    from nexus_core.plugin import CommandContext

app = typer.Typer()


@app.command(epilog="\b\nExamples:\n  nexus hello\n  nexus -C services/auth hello --json")
def hello(
    ctx: typer.Context,
    json: Annotated[bool, typer.Option("--json", help="Print the greeting as JSON.")] = False,
) -> None:
    """Greet the working directory."""
    cli: CommandContext = ctx.obj
    text = greeting(cli.cwd)
    if json:
        cli.console.json({"schema": 1, "greeting": text})
    else:
        cli.console.text(text)
