"""`nexus show`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from nexus_core.cli.options import (  # noqa: TC001 - Typer reads annotations at run time
    Json,
    ModeName,
    Permissions,
    Profile,
    RendererName,
    RequireTrusted,
    RoleName,
    Skills,
    Task,
)
from nexus_core.errors import UsageError
from nexus_core.layers.loader import OWN_PROFILE
from nexus_core.text.visible import visible_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nexus_core.cli.shell import CommandShell
    from nexus_core.layers.profiles import ProfileView
    from nexus_core.nexus import Nexus
    from nexus_core.text.console import Console
    from nexus_core.values.loaded import Loaded
    from nexus_core.values.section import Section

app = typer.Typer()

LoadedForm = Annotated[bool, typer.Option("--loaded", help="Print what ContextLoader loads, with model and window.")]

EXAMPLES = """
\b
Examples:
  nexus show --role manager --mode server
  nexus -C services/auth show --json
"""


MAX_LISTED = 20
"""Files on demand that `nexus show` names; `nexus layers` and JSON have all."""


@app.command(epilog=EXAMPLES)
def show(
    ctx: typer.Context,
    *,
    role: RoleName = "",
    mode: ModeName = "",
    renderer: RendererName = "",
    permissions: Permissions = None,
    task: Task = "",
    skill: Skills = None,
    loaded: LoadedForm = False,
    profile: Profile = OWN_PROFILE,
    json: Json = False,
    require_trusted: RequireTrusted = False,
) -> None:
    """Print the system prompt of a directory, byte for byte as a new session sends it.

    The options are those of a session. --loaded prints the form of ContextLoader instead, which no session sends: with
    the terminal, the model and its context window.
    """
    shell: CommandShell = ctx.obj
    given = {"role": role, "renderer": renderer, "permissions": permissions, "task": task, "skills": skill}
    given = {name: value for name, value in given.items() if value}
    _require_sense(profile, given | ({"mode": mode} if mode else {}), loaded=loaded)
    with shell.nexus() as nexus:
        prompt, sections, read, view = _read(nexus, profile, mode, given, loaded=loaded)
    shell.review(read, require_trusted=require_trusted)
    if json:
        document = {"schema": 1, "prompt": prompt, "sections": list(map(_describe, sections))}
        shell.console.json({**document, "skipped": _skipped(read), **_describe_agent(view)})
        return
    if sections:
        shell.console.text(prompt)
    else:
        name = view.profile.name if view else profile
        shell.console.message(f"{name} reads nothing here; `nexus layers --as {profile}` says where it looks")
    if view is not None:
        print_view_notes(shell.console, view)


def _describe_agent(view: ProfileView | None) -> dict[str, object]:
    return {} if view is None else profile_view_to_json(view)


def _require_sense(profile: str, given: Mapping[str, object], *, loaded: bool) -> None:
    """Refuse options that the wanted form of the prompt does not have."""
    if profile != OWN_PROFILE and (given or loaded):
        options = [*map(_option, given), *(["--loaded"] if loaded else [])]
        raise UsageError(f"{options[0]} says nothing about what {profile} reads", hint="leave it out, or --as")
    if loaded and given.keys() - {"mode"}:
        option = _option(next(name for name in given if name != "mode"))
        raise UsageError(f"{option} changes nothing with --loaded", hint=f"leave out {option}, or --loaded")


def _option(name: str) -> str:
    return "--skill" if name == "skills" else f"--{name}"


def _read(
    nexus: Nexus, profile: str, mode: str, given: Mapping[str, object], *, loaded: bool
) -> tuple[str, tuple[Section, ...], Loaded, ProfileView | None]:
    """Return the prompt, its sections, what was loaded for them, and with --as what is known of that agent."""
    if profile != OWN_PROFILE or loaded:
        context = nexus.context(mode=mode or "repl", profile=profile)  # type: ignore[arg-type] # others are refused
        return context.system_prompt, context.sections, context.loaded, context.agent_view
    modes = {"mode": mode} if mode else {}
    static = nexus.static_context(**modes, **given)  # type: ignore[arg-type] # as above
    return static.system, static.sections, static.loaded, None


def _skipped(loaded: Loaded) -> list[dict[str, object]]:
    from nexus_core.trust.mentioning import left_off  # noqa: PLC0415 - only with --json

    return left_off(loaded.active)


def _describe(section: Section) -> dict[str, object]:
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


def profile_view_to_json(view: ProfileView) -> dict[str, object]:
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


def print_view_notes(console: Console, view: ProfileView) -> None:
    """Print what comes beside a prompt on standard error."""
    for each in view.on_demand[:MAX_LISTED]:
        console.message(visible_line(f"On demand: {each.path}, {each.when}"), style="dim")
    if len(view.on_demand) > MAX_LISTED:
        rest = f"On demand: {len(view.on_demand) - MAX_LISTED:,} more files; `nexus layers --as {view.agent}` has all"
        console.message(rest, style="dim")
    if not view.is_complete:
        console.message("On demand: not all directories were searched; there are too many", style="dim")
    console.message(f"Not known: {view.profile.unknown}.", style="dim")
