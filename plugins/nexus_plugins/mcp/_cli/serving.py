"""`nexus mcp serve`."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

import typer  # noqa: TC002 - Typer reads annotations at run time

from nexus_core import MissingExtraError
from nexus_plugins.mcp._cli.loop import run_loop
from nexus_plugins.mcp._cli.options import app

if TYPE_CHECKING:
    from nexus_core.plugin import Shell


@app.command(epilog="\b\nExamples:\n  nexus mcp serve\n  claude mcp add nexus -- nexus mcp serve")
def serve(ctx: typer.Context) -> None:
    """Serve what Nexus knows of this directory to any MCP client, over standard input and output."""
    try:
        from nexus_plugins.mcp._serving.server import serve as serve_client  # noqa: PLC0415 - comes with the extra
    except ModuleNotFoundError:
        from nexus_plugins.mcp.call import EXTRA  # noqa: PLC0415 - `list` needs none of it

        raise MissingExtraError("mcp", EXTRA) from None
    shell: Shell = ctx.obj
    if os.isatty(0):
        shell.console.message("Waiting for an MCP client on standard input; press Ctrl-C to stop.")
    # Descriptors of their own: nothing that plugins and their children print or read gets between us and the client.
    source, sink = os.dup(0), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    with shell.nexus() as nexus:
        run_loop(partial(serve_client, nexus, source, sink))
