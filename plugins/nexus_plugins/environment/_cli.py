"""`nexus environment`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from nexus_plugins.environment._facts import told_facts

if TYPE_CHECKING:
    from nexus_core.plugin import Shell

app = typer.Typer()


@app.command(epilog="\b\nExamples:\n  nexus environment\n  nexus -C services/auth environment --json")
def environment(
    ctx: typer.Context,
    json: Annotated[bool, typer.Option("--json", help="Print the facts as JSON.")] = False,
) -> None:
    """What the model is told about this machine."""
    shell: Shell = ctx.obj
    with shell.nexus() as nexus:
        facts = told_facts(nexus.request(), nexus.load().settings)
    if json:
        keys = {name.lower().replace(" ", "_"): value for name, value in facts.items()}
        shell.console.json({"schema": 1, "environment": keys})
    else:
        shell.console.table(list(facts.items()))
