"""`nexus mcp pin`."""

from __future__ import annotations

import json as json_module
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from nexus_core import ConfigError
from nexus_core.plugin import one_line
from nexus_plugins.mcp._cli.options import Name, app, chosen, look
from nexus_plugins.mcp._telling.records import approve, read_record

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nexus_core.plugin import Shell
    from nexus_plugins.mcp._telling.records import Definition

FINDINGS = 1


@app.command(epilog="\b\nExamples:\n  nexus mcp pin github\n  nexus mcp pin github --yes")
def pin(
    ctx: typer.Context,
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Show what changed in the tools of a server since you approved them, and approve it.

    Exits with 1 if something changed and was not approved.
    """
    shell: Shell = ctx.obj
    request, loaded = look(shell)
    (server,) = chosen(loaded, [name])
    record = read_record(request.home, server)
    if record is None:
        raise ConfigError(f"nothing is known of the tools of {name!r} yet", hint=f"nexus mcp tools {name}")
    from difflib import unified_diff  # noqa: PLC0415 - `list` needs none of it

    lines = list(unified_diff(_lines(record.approved), _lines(record.current), "approved", "present", lineterm=""))
    if not lines:
        shell.console.message("Its tools are those that you approved.")
        return
    shell.console.text("\n".join(map(one_line, lines)))
    if not yes and not _agrees(shell):
        shell.console.message("Left as it was: what changed stays withheld.")
        raise typer.Exit(FINDINGS)
    approve(request.home, server)
    shell.console.message(f"Approved the tools of {one_line(name)}.")


def _lines(definitions: Iterable[Definition]) -> list[str]:
    # ASCII, so that no two texts look alike.
    shown = [each._asdict() for each in sorted(definitions, key=lambda each: each.name)]
    return json_module.dumps(shown, indent=2, sort_keys=True).splitlines()


def _agrees(shell: Shell) -> bool:
    if sys.stdin is None or not sys.stdin.isatty() or not sys.stderr.isatty():
        return False
    shell.console.message("Approve it? [y/N]")
    return sys.stdin.readline().strip().lower() in {"y", "yes"}
