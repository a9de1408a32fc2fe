"""`nexus show`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from nexus_core.cli.options import Json, Profile, RequireTrusted  # noqa: TC001 - Typer reads annotations at run time
from nexus_core.layers.loader import OWN_PROFILE

if TYPE_CHECKING:
    from nexus_core.cli.shell import CommandShell
    from nexus_core.layers.context import LoadedContext
    from nexus_core.values.loaded import Loaded
    from nexus_core.values.section import Section

app = typer.Typer()

Server = Annotated[bool, typer.Option("--server", help="As an agent behind an HTTP server would read it.")]


@app.command(epilog="\b\nExamples:\n  nexus show\n  nexus -C services/auth show --json")
def show(
    ctx: typer.Context,
    json: Json = False,
    server: Server = False,
    profile: Profile = OWN_PROFILE,
    require_trusted: RequireTrusted = False,
) -> None:
    """Print the labelled system prompt of a directory."""
    shell: CommandShell = ctx.obj
    with shell.nexus() as nexus:
        context = nexus.context(mode="server" if server else "repl", profile=profile)
        prompt, sections = context.system_prompt, context.sections
    shell.review(context.loaded, require_trusted=require_trusted)
    if json:
        document = {"schema": 1, "prompt": prompt, "sections": list(map(_describe, sections))}
        shell.console.json({**document, "skipped": _skipped(context.loaded), **_describe_agent(context)})
        return
    if sections:
        shell.console.text(prompt)
    else:
        shell.console.message(f"{profile} reads nothing here; `nexus layers --as {profile}` says where it looks")
    if context.agent_view is not None:
        from nexus_core.cli.agent_view import print_view_notes  # noqa: PLC0415 - only with --as

        print_view_notes(shell.console, context.agent_view)


def _describe_agent(context: LoadedContext) -> dict[str, object]:
    if context.agent_view is None:
        return {}
    from nexus_core.cli.agent_view import describe_view  # noqa: PLC0415 - as above

    return describe_view(context.agent_view)


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
        "digest": section.digest,
        "text": section.text,
    }
