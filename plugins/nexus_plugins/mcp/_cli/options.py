"""What the commands have in common."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from nexus_core import UnknownNameError
from nexus_core.plugin import completable_names, visible_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexus_core import NexusError, Request
    from nexus_core.plugin import Loaded, MCPServerWithOrigin, Shell

app = typer.Typer(
    help="List MCP servers, try them, use their tools.",
    no_args_is_help=True,
    epilog="\b\nExamples:\n  nexus mcp list\n  nexus mcp add --global time -- uvx mcp-server-time",
)


def known_names(ctx: typer.Context) -> list[str]:
    """The servers here, for completion."""
    return completable_names(server.config.name for server in look(ctx.find_root().obj)[1].servers)


Json = Annotated[bool, typer.Option("--json", help="Print JSON with a versioned schema.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would change, and write nothing.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="A server.", autocompletion=known_names)]
Names = Annotated[
    list[str] | None, typer.Argument(metavar="[NAME]...", help="Servers; all if none.", autocompletion=known_names)
]
Lenient = Annotated[bool, typer.Option("--lenient", help="Leave out a server that cannot be used.")]
Global = Annotated[bool, typer.Option("--global", help="In your own mcp.json instead of the project's.")]


def look(shell: Shell, *, lenient: bool = False, thorough: bool = False) -> tuple[Request, Loaded]:
    """What is here.

    Args:
        shell: What the command line has found out.
        lenient: Whether what is wrong with a server is a warning, and the others are there.
        thorough: Whether to warn of whatever is written about servers and not used.
    """
    with shell.nexus() as nexus:
        request = replace(nexus.request(), lenient=lenient)
        loaded = nexus.load(request)
    files = {config.path for config in loaded.configs if "mcp_servers" in config.settings} if thorough else set()
    for skipped in loaded.skipped:
        is_left_out = lenient and skipped.reason.endswith("the server is left out")
        if is_left_out or (skipped.path in files and skipped.line):
            shell.console.warning(visible_line(f"{skipped.place}: {skipped.reason}"))
    return request, loaded


def in_one_line(error: NexusError) -> str:
    """What an error says, and what to do about it."""
    return visible_line("; ".join(line.strip() for line in str(error).splitlines()))


def chosen(loaded: Loaded, names: Sequence[str] | None) -> list[MCPServerWithOrigin]:
    """The servers that were named; without names, those that may be started."""
    if not names:
        return [server for server in loaded.servers if server.status == "enabled"]
    found = {server.config.name: server for server in loaded.servers}
    for name in names:
        if name not in found:
            raise UnknownNameError("server", name, found)
    return [found[name] for name in dict.fromkeys(names)]
