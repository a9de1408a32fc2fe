"""`nexus status`, which is also `nexus` alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from nexus_core.cli.options import Json  # noqa: TC001 - Typer reads annotations at run time

if TYPE_CHECKING:
    from nexus_core.cli.shell import CommandShell
    from nexus_core.nexus import Nexus

app = typer.Typer()


@app.command(epilog="\b\nExamples:\n  nexus\n  nexus -C services/auth status --json")
def status(ctx: typer.Context, json: Json = False) -> None:
    """This directory in ten lines."""
    print_status(ctx.obj, json=json)


def print_status(shell: CommandShell, *, json: bool) -> None:
    """Print what Nexus sees here."""
    with shell.nexus() as nexus:
        facts = _facts(nexus)
    if json:
        shell.console.json({"schema": 1, **facts})
        return
    shell.console.table([(name.replace("_", " ").capitalize(), _text(value)) for name, value in facts.items()])


def _facts(nexus: Nexus) -> dict[str, object]:
    context = nexus.context()
    plugins = nexus.plugins
    return {
        "directory": str(nexus.cwd),
        "home": str(nexus.home),
        "layers": [layer.name for layer in context.loaded.layers],
        "sections": [section.title for section in context.sections],
        "prompt_characters": len(context.system_prompt),
        "plugins_active": [plugin.name for plugin in plugins if plugin.status == "active"],
        "plugins_inactive": [f"{plugin.name} ({plugin.status})" for plugin in plugins if plugin.status != "active"],
        "warnings": [*map(str, nexus.problems), *map(str, context.loaded.findings)],
    }


def _text(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(value) or "-"
    return str(value)
