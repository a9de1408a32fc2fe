"""`nexus status`, which is also `nexus` alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from nexus_core.cli.options import Brief, Json, RequireTrusted  # noqa: TC001 - Typer reads annotations at run time
from nexus_core.cli.picture import Picture

if TYPE_CHECKING:
    from nexus_core.cli.shell import CommandShell
    from nexus_core.text.console import Style

app = typer.Typer()


@app.command(epilog="\b\nExamples:\n  nexus\n  nexus -C services/auth status --json --brief")
def status(
    ctx: typer.Context, json: Json = False, brief: Brief = False, require_trusted: RequireTrusted = False
) -> None:
    """This directory in ten lines."""
    print_status(ctx.obj, json=json, brief=brief, require_trusted=require_trusted)


def print_status(shell: CommandShell, *, json: bool, brief: bool, require_trusted: bool = False) -> None:
    """Print what an agent reads here, what it may do, and what to look at."""
    with shell.nexus(warn=False) as nexus:  # what is wrong with plugins is among the findings
        picture = Picture(nexus)
    shell.review(picture.loaded, require_trusted=require_trusted, warn=False)
    if json:
        shell.console.json({"schema": 1, **(picture.numbers() if brief else picture.facts())})
    elif brief:
        shell.console.text(picture.line())
    else:
        rows = picture.rows()
        styles: list[Style] = ["yellow" if name == "Warnings" and picture.findings else "plain" for name, _ in rows]
        shell.console.table(rows, styles=styles)
