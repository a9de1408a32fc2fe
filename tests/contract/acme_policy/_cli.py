"""`nexus policy`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from nexus_core.plugin import CommandContext

app = typer.Typer()


@app.command()
def policy(ctx: typer.Context) -> None:
    """Print who may decide."""
    shell: CommandContext = ctx.obj
    with shell.nexus() as nexus:
        shell.console.text(str(nexus.load().settings.get("plugins.policy.teams")))
