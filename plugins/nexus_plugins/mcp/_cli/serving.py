"""`nexus mcp serve`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import typer  # noqa: TC002 - Typer reads annotations at run time

from nexus_core import MissingExtraError
from nexus_plugins.mcp._cli.options import app

if TYPE_CHECKING:
    from nexus_core.plugin import Shell


@app.command(epilog="\b\nExamples:\n  nexus mcp serve\n  claude mcp add nexus -- nexus mcp serve")
def serve(ctx: typer.Context) -> None:
    """Serve what Nexus knows of this directory to any MCP client, over standard input and output."""
    try:
        from nexus_plugins.mcp._server import serve_stdio  # noqa: PLC0415 - comes with the extra
    except ModuleNotFoundError:
        from nexus_plugins.mcp.call import EXTRA  # noqa: PLC0415 - `list` needs none of it

        raise MissingExtraError("mcp", EXTRA) from None
    shell: Shell = ctx.obj
    # A descriptor of its own, because what plugins print while they are at work is kept out of the other one.
    with open(os.dup(1), "w", encoding="utf-8", newline="\n") as out, shell.nexus() as nexus:  # noqa: PTH123 - not a file
        serve_stdio(nexus, out)
