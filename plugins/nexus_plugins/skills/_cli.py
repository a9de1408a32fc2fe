"""`nexus skill list|use`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from nexus_core import FileError
from nexus_core.plugin import neutralise, visible_line
from nexus_plugins.skills._block import credentials, needs
from nexus_plugins.skills._capabilities import Capability, capabilities_of
from nexus_plugins.skills._guides import find_guides, read_words
from nexus_plugins.skills._used import mark_used
from nexus_plugins.skills.call import find_skill, format_guide

if TYPE_CHECKING:
    from nexus_core.plugin import Shell
    from nexus_plugins.skills._guides import Fault

app = typer.Typer(
    help="List skills, and read their guides.",
    no_args_is_help=True,
    epilog="\b\nExamples:\n  nexus skill list\n  nexus skill use deploy",
)

LONGEST_SHOWN = 60  # characters of a description in the list


def _names(ctx: typer.Context) -> list[str]:
    return [each.guide.name for each in _look(ctx.find_root().obj)[0]]


Json = Annotated[bool, typer.Option("--json", help="Print JSON with a versioned schema.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="A skill.", autocompletion=_names)]


@app.command("list", epilog="\b\nExamples:\n  nexus skill list\n  nexus -C services/auth skill list --json")
def list_skills(ctx: typer.Context, json: Json = False) -> None:
    """List what an agent is told it can do here, and what is missing for the rest."""
    shell: Shell = ctx.obj
    capabilities, faults = _look(shell)
    for fault in faults:
        place = f"{fault.path}:{fault.line}" if fault.line else str(fault.path)
        shell.console.warning(visible_line(f"{place}: {fault.message}"))
    if json:
        configured, broken = credentials(capabilities)
        document = {
            "skills": list(map(_describe, capabilities)),
            "credentials": {"configured": configured, "broken": broken},
        }
        shell.console.json({"schema": 1, **document})
    elif capabilities:
        rows = [("NAME", "STATUS", "CATEGORY", "LAYER", "DESCRIPTION"), *map(_row, capabilities)]
        shell.console.table(rows, styles=["bold"])
    else:
        shell.console.message(
            "There are no skills here; one is a file .nexus3/skills/NAME/SKILL.md (or .claude, .agents, .codex)."
        )


@app.command(epilog="\b\nExamples:\n  nexus skill use deploy\n  nexus skill use deploy --json")
def use(ctx: typer.Context, name: Name, json: Json = False) -> None:
    """Print the guide of a skill, and remember that it was used.

    Nothing in it is run. A guide of a project is what the project says, not what you say.
    """
    shell: Shell = ctx.obj
    with shell.nexus() as nexus:
        capability = find_skill(name, nexus.load(), nexus)
        text = format_guide(capability)
        try:
            mark_used(nexus.home, capability.guide.path)
        except FileError as error:  # whoever wanted to read it can
            shell.console.warning(f"not remembered: {error}")
    if json:
        guide = neutralise(read_words(capability.guide))
        shell.console.json({"schema": 1, "skill": {**_describe(capability), "guide": guide}})
        return
    shell.console.text(text)


def _look(shell: Shell) -> tuple[list[Capability], list[Fault]]:
    with shell.nexus() as nexus:
        loaded = nexus.load()
        found = find_guides(loaded)
        return capabilities_of(found.guides, nexus.home, loaded.settings), found.faults


def _describe(capability: Capability) -> dict[str, object]:
    guide = capability.guide
    return {
        **capability.facts,
        "description": guide.description,
        "requires": {"env": list(guide.variables), "bin": list(guide.programs)},
        "credentials": capability.credentials,
        "path": str(guide.path),
        "layer": guide.layer.name,
        "trust": "user" if guide.layer.is_own else "project",
    }


def _row(capability: Capability) -> tuple[str, ...]:
    guide = capability.guide
    status = f"needs {needs(capability)}" if capability.missing else capability.status
    words = guide.description
    short = words if len(words) <= LONGEST_SHOWN else f"{words[:LONGEST_SHOWN]}…"
    return guide.name, status, guide.category, guide.layer.name, short
