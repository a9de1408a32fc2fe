"""The commands `nexus skill list` and `nexus skill show`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from nexus_core import FileError
from nexus_core.plugin.text import neutralize, visible_line
from nexus_plugins.skills._guides import (
    SkillCapability,
    find_capabilities,
    find_guides,
    mark_guide_used,
    read_guide_text,
)
from nexus_plugins.skills._section import count_credentials, format_missing
from nexus_plugins.skills.call import find_skill, format_guide

if TYPE_CHECKING:
    from nexus_core.plugin import CommandContext
    from nexus_plugins.skills._guides import GuideProblem

app = typer.Typer(
    help="List skills and print their guides.",
    no_args_is_help=True,
    epilog="\b\nExamples:\n  nexus skill list\n  nexus skill show deploy",
)

MAX_DESCRIPTION_CHARACTERS = 60


def _complete_names(ctx: typer.Context) -> list[str]:
    return [each.guide.name for each in _load_skills(ctx.find_root().obj)[0]]


JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON with a versioned schema.")]
RawOption = Annotated[bool, typer.Option("--raw", help="Print Markdown as it is written, on a terminal, too.")]
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Name of a skill.", autocompletion=_complete_names)]


@app.command("list", epilog="\b\nExamples:\n  nexus skill list\n  nexus -C services/auth skill list --json")
def list_skills(ctx: typer.Context, json: JsonOption = False) -> None:
    """List skills and what they need."""
    cli: CommandContext = ctx.obj
    capabilities, faults = _load_skills(cli)
    for fault in faults:
        location = f"{fault.path}:{fault.line}" if fault.line else str(fault.path)
        cli.console.warning(visible_line(f"{location}: {fault.message}"))
    if json:
        configured, broken = count_credentials(capabilities)
        document = {
            "skills": list(map(_describe_skill, capabilities)),
            "credentials": {"configured": configured, "broken": broken},
        }
        cli.console.json({"schema": 1, **document})
    elif capabilities:
        rows = [("NAME", "STATUS", "CATEGORY", "LAYER", "DESCRIPTION"), *map(_build_row, capabilities)]
        cli.console.table(rows, styles=["bold"])
    else:
        cli.console.message(
            "There are no skills here; one is a file .nexus3/skills/NAME/SKILL.md (or .claude, .agents, .codex)."
        )


@app.command(epilog="\b\nExamples:\n  nexus skill show deploy\n  nexus skill show deploy --json")
def show(ctx: typer.Context, name: NameArgument, raw: RawOption = False, json: JsonOption = False) -> None:
    """Print the guide of a skill.

    Marks it as used. Nothing in it is run. A guide of a project is what the project says, not what you say.
    """
    cli: CommandContext = ctx.obj
    with cli.nexus() as nexus:
        capability = find_skill(name, nexus.load(), nexus)
        text = format_guide(capability)
        try:
            mark_guide_used(nexus.home, capability.guide.path)
        except FileError as error:  # the guide can be read nevertheless
            cli.console.warning(f"not marked as used: {error}")
    if json:
        guide = neutralize(read_guide_text(capability.guide))
        cli.console.json({"schema": 1, "skill": {**_describe_skill(capability), "guide": guide}})
        return
    if raw:
        cli.console.text(text)
    else:
        cli.console.markdown(text)


def _load_skills(cli: CommandContext) -> tuple[list[SkillCapability], list[GuideProblem]]:
    with cli.nexus() as nexus:
        loaded = nexus.load()
        found = find_guides(loaded)
        return find_capabilities(found.guides, nexus.home, loaded.settings), found.faults


def _describe_skill(capability: SkillCapability) -> dict[str, object]:
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


def _build_row(capability: SkillCapability) -> tuple[str, ...]:
    guide = capability.guide
    status = f"needs {format_missing(capability)}" if capability.missing else capability.status
    text = guide.description
    short = text if len(text) <= MAX_DESCRIPTION_CHARACTERS else f"{text[:MAX_DESCRIPTION_CHARACTERS]}…"
    return guide.name, status, guide.category, guide.layer.name, short
