"""`nexus mcp import|export`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from nexus_core import FileError, UnknownNameError
from nexus_core.plugin import Layer, LayerConfig, SecretReferences, visible_line
from nexus_plugins.mcp._cli.changing import save, say_who_decides, target
from nexus_plugins.mcp._cli.options import DryRun, Global, Lenient, Names, app, look
from nexus_plugins.mcp._files.dialects import CLAUDE_HOME, DIALECTS, NEXUS, TARGETS, dialect_of

if TYPE_CHECKING:
    from nexus_core.plugin import Shell, Skipped
    from nexus_plugins.mcp._files.dialects import Dialect


@app.command("import", epilog="\b\nExamples:\n  nexus mcp import claude\n  nexus mcp import ~/.claude.json --global")
def import_servers(
    ctx: typer.Context,
    source: Annotated[
        str,
        typer.Argument(
            metavar="TOOL|FILE", help=f"{', '.join(DIALECTS)}, or a file.", autocompletion=lambda: [*DIALECTS]
        ),
    ],
    *,
    for_all: Global = False,
    lenient: Lenient = False,
    force: Annotated[bool, typer.Option("--force", help="Replace servers that have the same names.")] = False,
    dry_run: DryRun = False,
) -> None:
    """Copy the servers of another tool into mcp.json. None is started.

    References stay references, and what looks like a secret becomes one: you are told which variables to set.

    Of ~/.claude.json, those are meant that Claude Code has for this directory; with --global, those for all projects.
    """
    shell: Shell = ctx.obj
    path, dialect = _source(shell, source)
    within = ("projects", os.path.realpath(shell.cwd)) if dialect is CLAUDE_HOME and not for_all else ()
    entries = _read(shell, path, dialect, within, lenient=lenient)
    goal = target(shell, for_all=for_all)
    from nexus_plugins.mcp._files.editing import read_file  # noqa: PLC0415 - `list` needs none of it

    file = read_file(goal)
    added = [name for name in entries if force or name not in file.servers]
    references = SecretReferences()
    remarks: list[str] = []
    for name in added:
        entry, secrets = references.replace(name, entries[name])
        remarks += [f"{each.reference} stands for {each.what} of server {name!r}" for each in secrets]
        file = file._replace(text=file.with_server(name, entry))
    for name in entries:
        what = f"adds {name!r}" if name in added else f"leaves {name!r}, which is there already; --force replaces it"
        shell.console.message(visible_line(f"Import {what}."))
    if added:
        save(shell, goal, file.text, own=for_all, dry_run=dry_run)
        for remark in remarks:
            shell.console.message(visible_line(f"{remark}."))
        if remarks:
            shell.console.message(visible_line(f"Set these variables where it is used; {path} has their values."))
        if not for_all and not dry_run:
            say_who_decides(shell)
    elif not entries:
        more = " for this directory; --global copies those for all projects" if within else ""
        shell.console.message(f"There are no servers in it{more}.")


@app.command(
    "export", epilog="\b\nExamples:\n  nexus mcp export --to claude > .mcp.json\n  nexus mcp export github --to codex"
)
def export_servers(
    ctx: typer.Context,
    names: Names = None,
    to: Annotated[
        str, typer.Option("--to", help=f"Whose words: {', '.join(TARGETS)}.", autocompletion=lambda: [*TARGETS])
    ] = "nexus",
) -> None:
    """Print servers as another tool writes them.

    Values of variables and headers that are written out in your files become references, so that no secret is printed.
    """
    if to not in TARGETS:
        raise UnknownNameError("tool to export to", to, TARGETS)
    shell: Shell = ctx.obj
    _, loaded = look(shell)
    found = {server.config.name: server.config for server in loaded.servers}
    for name in names or ():
        if name not in found:
            raise UnknownNameError("server", name, found)
    from nexus_plugins.mcp._files.exporting import export  # noqa: PLC0415 - `list` needs none of it

    exported = export([found[name] for name in names or found], to)
    shell.console.text(exported.text.rstrip("\n"))
    if exported.variables:
        listed = visible_line(", ".join(exported.variables))
        shell.console.message(f"Set these variables where it is used: {listed}.")
    for loss in exported.losses:
        shell.console.warning(visible_line(loss))


def _source(shell: Shell, source: str) -> tuple[Path, Dialect]:
    if source in DIALECTS:
        dialect = DIALECTS[source]
        places = [shell.cwd / name for name in dialect.files]
        path = next((place for place in places if place.is_file()), None)
        if path is None:
            raise FileError(f"{dialect.tool} has no servers here", where=str(places[0]), hint="name a file instead")
        return path, dialect
    path = Path(source).expanduser()
    path = path if path.is_absolute() else shell.cwd / path
    if not path.is_file():
        if path.suffix or "/" in source:
            raise FileError("no such file", where=str(path))
        raise UnknownNameError("tool", source, DIALECTS)
    dialect = dialect_of(str(path))
    return path, DIALECTS["codex"] if dialect is NEXUS and path.suffix == ".toml" else dialect


def _read(
    shell: Shell, path: Path, dialect: Dialect, within: tuple[str, ...], *, lenient: bool
) -> dict[str, dict[str, Any]]:
    """The servers of a file in the one form, by name."""
    layer = Layer("global", path.parent, "global")  # named by the user, and read as one of the user's own
    from nexus_plugins.mcp._files.reader import read_servers  # noqa: PLC0415 - `list` needs none of it

    answers = read_servers(path, layer, dialect, within)
    from nexus_core.plugin import normalise_servers  # noqa: PLC0415 - `list` needs none of it

    configs = [answer for answer in answers if isinstance(answer, LayerConfig)]
    skipped: list[Skipped] = []
    normal = normalise_servers(configs, skipped, lenient=lenient)
    for each in skipped:
        shell.console.warning(visible_line(f"{each.place}: {each.reason}"))
    held: list[Any] = [server for config in normal for server in cast("list[Any]", config.settings["mcp_servers"])]
    return {server["name"]: _as_written(server) for server in held}


def _as_written(server: dict[str, Any]) -> dict[str, Any]:
    """What has to be written down of a server: nothing that goes without saying."""
    usual = {"stdio": "stdio", "http": "http"}
    drop = {"name", *(["type"] if server["type"] in usual else []), *(["enabled"] if server["enabled"] else [])}
    return {key: value for key, value in server.items() if key not in drop}
