"""`nexus environment`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from nexus_plugins.environment._facts import told_facts

if TYPE_CHECKING:
    from nexus_core.plugin import Shell

app = typer.Typer()


@app.command(epilog="\b\nExamples:\n  nexus environment\n  nexus -C services/auth environment --json")
def environment(
    ctx: typer.Context,
    *,
    mode: Annotated[
        str, typer.Option("--mode", metavar="MODE", help="The agent's driver: repl (a person), server (programs).")
    ] = "",
    json: Annotated[bool, typer.Option("--json", help="Print the facts as JSON.")] = False,
) -> None:
    """Print what a session tells the model about this machine: the facts under `Environment` in `nexus show`."""
    shell: Shell = ctx.obj
    with shell.nexus() as nexus:
        request = replace(nexus.request(mode=mode), is_call=True)  # type: ignore[arg-type] # others are refused
        facts = told_facts(request, nexus.load(request).settings)
    if json:
        keys = {name.lower().replace(" ", "_"): value for name, value in facts.items()}
        shell.console.json({"schema": 1, "environment": keys})
    else:
        shell.console.table(list(facts.items()))
