"""`nexus show`: the system prompt of a directory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from nexus_core.cli.options import (
    AgentFileOption,
    AgentOption,
    JsonOption,
    ModeOption,
    PermissionsOption,
    RendererOption,
    RequireTrustedOption,
    RoleOption,
    SkillOption,
    TaskOption,
    check_agent_files,
)
from nexus_core.errors import UnknownNameError, UsageError
from nexus_core.layers import OWN_PROFILE
from nexus_core.text.safety import visible_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nexus_core.cli.context import CliContext
    from nexus_core.layers.agent_view import AgentView
    from nexus_core.nexus import Nexus
    from nexus_core.text.console import Console
    from nexus_core.types.layers import LoadedLayers
    from nexus_core.types.prompt import Section

app = typer.Typer()

SectionOption = Annotated[
    str, typer.Option("--section", metavar="NAME", help="Print only the section with this heading or id.")
]
LoadedOption = Annotated[bool, typer.Option("--loaded", help="Print what ContextLoader loads, with model and window.")]

EXAMPLES = """
\b
Examples:
  nexus show --role manager --mode server
  nexus -C services/auth show --section environment
"""


MAX_LISTED_FILES = 20
"""Files on demand that `nexus show` names; `nexus layers` and JSON have all."""


@app.command(epilog=EXAMPLES)
def show(
    ctx: typer.Context,
    *,
    role: RoleOption = "",
    mode: ModeOption = "",
    renderer: RendererOption = "",
    permissions: PermissionsOption = None,
    task: TaskOption = "",
    skill: SkillOption = None,
    section: SectionOption = "",
    loaded: LoadedOption = False,
    profile: AgentOption = OWN_PROFILE,
    file: AgentFileOption = None,
    json: JsonOption = False,
    require_trusted: RequireTrustedOption = False,
) -> None:
    """Print the system prompt of this directory.

    It is printed byte for byte as a new session sends it. The options are those of a session. --loaded prints the form
    of ContextLoader instead, which no session sends: with the terminal, the model and its context window. --as prints
    what another agent reads at the start; rules for some files only are listed with their condition on standard error,
    and are part of the prompt for a file that --file names.
    """
    cli: CliContext = ctx.obj
    given = {"role": role, "renderer": renderer, "permissions": permissions, "task": task, "skills": skill}
    given = {name: value for name, value in given.items() if value}
    _check_options(profile, given | ({"mode": mode} if mode else {}), loaded=loaded)
    files = check_agent_files(profile, file)
    with cli.nexus() as nexus:
        prompt, sections, read, view = _read_prompt(nexus, profile, mode, given, loaded=loaded, files=files)
    if section:
        sections = _find_sections(sections, section)
        prompt = "\n\n".join(_get_rendered_section(each, prompt) for each in sections) + "\n"
    cli.review(read, require_trusted=require_trusted)
    cli.note_outside_files(view)
    if json:
        document = {"schema": 1, "prompt": prompt, "sections": list(map(_section_to_json, sections))}
        cli.console.json({**document, "skipped": _list_skipped(read), **_agent_to_json(view)})
        return
    if sections:
        cli.console.text(prompt)
    else:
        name = view.profile.name if view else profile
        cli.console.message(f"{name} reads nothing here; `nexus layers --all --as {profile}` says where it looks")
    if view is not None:
        print_view_notes(cli.console, view)


def _find_sections(sections: Sequence[Section], name: str) -> tuple[Section, ...]:
    """Return the sections whose heading or id is `name`, whatever its case.

    Raises:
        UnknownNameError: No section has that heading or id.
    """
    wanted = name.casefold()
    found = tuple(each for each in sections if wanted in (each.title.casefold(), each.id.casefold()))
    if not found:
        raise UnknownNameError("section", name, {each.title or each.id for each in sections})
    return found


def _get_rendered_section(section: Section, prompt: str) -> str:
    """Return a section as it is in the prompt, or with a heading if its renderer adds none."""
    from nexus_core.rendering import render_section

    body = section.text.strip("\n")
    forms = (render_section(section), f"# {visible_line(section.title)}\n\n{body}")
    return next((form for form in forms if form in prompt), forms[0])


def _agent_to_json(view: AgentView | None) -> dict[str, object]:
    return {} if view is None else agent_view_to_json(view)


def _check_options(profile: str, given: Mapping[str, object], *, loaded: bool) -> None:
    """Refuse options that the wanted form of the prompt does not have."""
    if profile != OWN_PROFILE and (given or loaded):
        options = [*map(_get_option_name, given), *(["--loaded"] if loaded else [])]
        raise UsageError(f"{options[0]} says nothing about what {profile} reads", hint="leave it out, or --as")
    if loaded and given.keys() - {"mode"}:
        option = _get_option_name(next(name for name in given if name != "mode"))
        raise UsageError(f"{option} changes nothing with --loaded", hint=f"leave out {option}, or --loaded")


def _get_option_name(name: str) -> str:
    return "--skill" if name == "skills" else f"--{name}"


def _read_prompt(
    nexus: Nexus, profile: str, mode: str, given: Mapping[str, object], *, loaded: bool, files: Sequence[str]
) -> tuple[str, tuple[Section, ...], LoadedLayers, AgentView | None]:
    """Return the prompt, its sections, the loaded layers, and with --as the view of that agent."""
    if profile != OWN_PROFILE or loaded:
        context = nexus.context(mode=mode or "repl", profile=profile, files=files)  # type: ignore[arg-type] # as above
        return context.system_prompt, context.sections, context.loaded, context.agent_view
    modes = {"mode": mode} if mode else {}
    static = nexus.static_context(**modes, **given)  # type: ignore[arg-type] # as above
    return static.system_prompt, static.sections, static.loaded, None


def _list_skipped(loaded: LoadedLayers) -> list[dict[str, object]]:
    from nexus_core.trust.report import list_inactive

    return list_inactive(loaded.active)


def _section_to_json(section: Section) -> dict[str, object]:
    source = section.source
    return {
        "id": section.id,
        "title": section.title,
        "kind": section.kind,
        "order": section.order,
        "source": source and {"uri": source.uri, "layer": source.layer, "plugin": source.plugin},
        "files": [{"path": str(path), "read_by": how} for path, how in section.files.items()],
        "digest": section.digest,
        "text": section.text,
    }


def agent_view_to_json(view: AgentView) -> dict[str, object]:
    """Return what JSON output has besides texts."""
    return {
        "agent": view.profile.name,
        "on_demand": [
            {"path": str(each.path), "when": each.when, "paths": list(each.paths)} for each in view.on_demand
        ],
        "on_demand_complete": view.is_complete,
        "unknown": view.profile.unknown,
        "rules": [rule._asdict() for rule in view.profile.rules],
    }


def print_view_notes(console: Console, view: AgentView) -> None:
    """Print what comes beside a prompt on standard error."""
    for each in view.on_demand[:MAX_LISTED_FILES]:
        console.message(visible_line(f"On demand: {each.path}, {each.when}"), style="dim")
    more = len(view.on_demand) - MAX_LISTED_FILES
    if more > 0:
        rest = f"On demand: {more:,} more files; `nexus layers --as {view.agent}` has all"
        console.message(rest, style="dim")
    if not view.is_complete:
        console.message("On demand: not all directories were searched; there are too many", style="dim")
    console.message(f"Not known: {view.profile.unknown}.", style="dim")
