"""`nexus init`, which with `--global` is also `nexus --init-global`."""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager
from pathlib import Path
from shlex import quote
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from nexus_core.cli.options import DryRun, Json  # noqa: TC001 - Typer reads annotations at run time
from nexus_core.cli.shell import project_directory
from nexus_core.config.documents import read_document
from nexus_core.config.editing import set_value
from nexus_core.config.merging import is_comment
from nexus_core.config.pointers import pointer_to
from nexus_core.config.servers.normalising import normalise_servers
from nexus_core.config.servers.references import SecretReplacer
from nexus_core.config.servers.shapes import read_servers
from nexus_core.errors import ConfigError, FileError, NexusError, UsageError
from nexus_core.files.places import user_home
from nexus_core.files.reading import read_text
from nexus_core.files.writing import write_text_atomically
from nexus_core.layers.initialising import carry_out, plan_init
from nexus_core.trust.fingerprint import one_line
from nexus_core.values.layer import Layer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from nexus_core.cli.shell import CommandShell
    from nexus_core.layers.initialising import InitPlan, PlannedFile
    from nexus_core.nexus import Nexus
    from nexus_core.values.declarations import InitScope

app = typer.Typer()

SERVERS = "mcp.json"
FOUND = Path()
"""In the place of a file: whatever is found."""
OWN_FILES = {".claude.json": "Claude Code", ".cursor/mcp.json": "Cursor"}
"""In the home directory: files with servers for all projects, whose form is that of mcp.json; the first is copied."""
OTHER_FILES = {".codex/config.toml": "mcp_servers", ".gemini/settings.json": "mcpServers"}
"""Files that `nexus mcp import` copies, and the word in them that holds servers."""
_CONTAINERS = ("mcpServers", "servers")

Global = Annotated[bool, typer.Option("--global", help="Your own directory instead of the project's.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite; the old files are kept as <name>.bak.")]
CopyMcp = Annotated[Path | None, typer.Option(metavar="PATH", help="With --global: copy the MCP servers from a file.")]
NoCopy = Annotated[bool, typer.Option("--no-copy-mcp", help="With --global: copy no MCP servers of other tools.")]


@app.command(epilog="\b\nExamples:\n  nexus init\n  nexus init --global --copy-mcp ~/.claude.json")
def init(
    ctx: typer.Context,
    *,
    own: Global = False,
    force: Force = False,
    dry_run: DryRun = False,
    copy_mcp: CopyMcp = None,
    no_copy_mcp: NoCopy = False,
    json: Json = False,
) -> None:
    """Write a new .nexus3 directory with templates to fill in; with --global, your own with the defaults.

    With --global, the MCP servers that Claude Code or Cursor has for all of your projects are copied too.
    """
    if copy_mcp is not None and not own:
        raise UsageError("--copy-mcp copies to your own directory", hint="say --global too")
    if copy_mcp is not None and no_copy_mcp:
        raise UsageError("--copy-mcp and --no-copy-mcp contradict each other", hint="leave one of them out")
    scope: InitScope = "global" if own else "local"
    copied = None if no_copy_mcp else copy_mcp or FOUND
    _initialise(ctx.obj, scope, force=force, dry_run=dry_run, copied=copied, json=json)


def init_global(shell: CommandShell, *, force: bool) -> None:
    """Set up the user's own directory, as `nexus init --global` does."""
    _initialise(shell, "global", force=force)


def _initialise(
    shell: CommandShell,
    scope: InitScope,
    *,
    force: bool,
    dry_run: bool = False,
    copied: Path | None = FOUND,
    json: bool = False,
) -> None:
    with _nexus(shell, scope) as nexus:
        directory = nexus.home if scope == "global" else project_directory(nexus)
        plan = plan_init(nexus.host, directory, scope, force=force)
        servers = None
        if copied is not FOUND and copied is not None:
            servers = _named_servers(shell.cwd / copied)
            _check(nexus, servers)
        elif scope == "global" and copied is FOUND and not os.path.lexists(directory / SERVERS):
            servers = _own_servers(shell, nexus) or _offered_servers(shell, dry_run=dry_run)
        if servers is not None:
            plan = plan_init(nexus.host, directory, scope, force=force, contents={SERVERS: servers.text})
        if not dry_run:
            carry_out(plan)
    _print(shell, plan, dry_run=dry_run, json=json)
    if servers is not None:
        _print_copied(shell, servers, dry_run=dry_run)


@contextmanager
def _nexus(shell: CommandShell, scope: InitScope) -> Iterator[Nexus]:
    """A Nexus that does not stumble over settings that may be about to be overwritten."""
    with ExitStack() as opened:
        try:
            nexus = opened.enter_context(shell.nexus(layers=False))
        except NexusError:
            if scope != "global":
                raise
            # Which plugins the user has disabled cannot be known, so that none is loaded that could be.
            nexus = opened.enter_context(shell.nexus(layers=False, installed=False))
            shell.console.warning("your config.json cannot be used, so only plugins that ship with Nexus were asked")
        yield nexus


def _print(shell: CommandShell, plan: InitPlan, *, dry_run: bool, json: bool) -> None:
    if json:
        shell.console.json({"schema": 1, "scope": plan.scope, "files": list(map(_describe, plan.files))})
    for file in plan.files:
        if file.action != "unchanged" and not json:
            shell.console.text(one_line(str(file.path)))
        if file.action == "unchanged":
            shell.console.message(f"{file.path.name} is unchanged: it already says this.")
        if file.backup is not None:
            kept = "would be kept" if dry_run else "is kept"
            shell.console.message(f"The old {file.path.name} {kept} as {file.backup.name}.")
    if dry_run:
        shell.console.message("Nothing was written.")
    elif plan.written:
        shell.console.message("Next: fill in these files; `nexus show` prints the prompt that they make.")


def _describe(file: PlannedFile) -> dict[str, object]:
    return {"path": str(file.path), "action": file.action, "backup": file.backup and str(file.backup)}


# ---- MCP servers that are there already -------------------------------------------------------------------


class ServerFile(NamedTuple):
    """A file with MCP servers.

    Attributes:
        path: The file.
        names: The names of its servers.
        text: An mcp.json with the same servers, with references in the place of secrets.
        remarks: The references, and what they stand for.
    """

    path: Path
    names: list[str]
    text: str
    remarks: tuple[str, ...] = ()


def _named_servers(path: Path) -> ServerFile:
    if found := _read_servers(path):
        return found
    what = "holds no MCP servers" if path.exists() else "no such file"
    raise FileError(what, where=str(path), hint="name a file with `mcpServers` or `servers`")


def _own_servers(shell: CommandShell, nexus: Nexus) -> ServerFile | None:
    """Return the servers that another tool of the user has for all projects; those of a project are asked about."""
    home = user_home()
    copied = None
    for found in _find_servers(shell, [home / name for name in OWN_FILES]):
        try:
            _check(nexus, found)
        except NexusError as error:
            shell.console.message(f"{one_line(str(found.path))} was skipped: {one_line(error.what)}")
            _suggest_import(shell, found.path, " --lenient")
            continue
        if copied is not None:
            shell.console.message(f"There are MCP servers in {one_line(str(found.path))} too.")
            _suggest_import(shell, found.path)
        copied = copied or found
    for path in (home / name for name, word in OTHER_FILES.items() if _mentions(home / name, word)):
        shell.console.message(f"There may be MCP servers in {one_line(str(path))}.")
        _suggest_import(shell, path)
    return copied


def _suggest_import(shell: CommandShell, path: Path, option: str = "") -> None:
    shell.console.message(f"  To copy them: nexus mcp import {quote(str(path))} --global{option}")


def _mentions(path: Path, word: str) -> bool:
    try:
        return word in (read_text(path) or "")
    except NexusError:
        return False


def _print_copied(shell: CommandShell, servers: ServerFile, *, dry_run: bool) -> None:
    names = ", ".join(one_line(name[:60]) for name in servers.names)
    verb = "would be copied" if dry_run else "were copied"
    shell.console.message(f"MCP servers {verb} from {one_line(str(servers.path))}: {names}")
    for remark in servers.remarks:
        shell.console.message(f"  {one_line(remark)}.")
    if servers.remarks:
        shell.console.message("  Set these variables; the values stay where they are.")
    if not dry_run:
        shell.console.message(
            "  As your own they need no approval in any project; `nexus mcp remove --global` removes one."
        )


def _offered_servers(shell: CommandShell, *, dry_run: bool) -> ServerFile | None:
    """The servers that the user wants to be copied, of those in the places where other tools keep them."""
    for found in _find_servers(shell, [shell.cwd / ".nexus3" / SERVERS, shell.cwd / ".mcp.json"]):
        names = ", ".join(one_line(name[:60]) for name in found.names)
        shell.console.message(f"There are MCP servers in {one_line(str(found.path))}: {names}")
        if not dry_run and shell.can_ask:
            if shell.agrees("Copy them? As your own they need no approval in any project."):
                return found
        else:
            force = "" if dry_run else " --force"  # by then the file will be there
            shell.console.message(f"  To copy them: nexus init --global{force} --copy-mcp {quote(str(found.path))}")
    return None


def _find_servers(shell: CommandShell, paths: Iterable[Path]) -> Iterator[ServerFile]:
    for path in paths:
        try:
            found = _read_servers(path)
        except NexusError as error:
            shell.console.message(f"{one_line(str(path))} was skipped: {error.what}")
            continue
        if found is not None:
            yield found


def _read_servers(path: Path) -> ServerFile | None:
    """The servers in a file, or None when there is no such file or it holds none."""
    document = read_document(path, comments=True, empty={}, quote=False)  # any line may hold a password
    if document is None or not isinstance(document.value, dict):
        return None
    table = {key: value for key, value in document.value.items() if not is_comment(key)}
    for key in _CONTAINERS:
        if not isinstance(table.get(key, {}), dict | list):
            raise FileError(f"`{key}` is not an object of servers", where=str(path))
        if names := _names(table.get(key)):
            whole, span = document.lines.text, document.span(f"/{key}")
            if not table.keys() <= set(_CONTAINERS) and span is not None:
                whole = f'{{\n  "{key}": {whole[span.start : span.end]}\n}}\n'
            return _with_references(ServerFile(path, names, whole), table[key], f"/{key}")
    is_bare = all(isinstance(entry, dict) and entry.keys() & {"command", "url"} for entry in table.values())
    if not table or not is_bare:
        return None
    return _with_references(ServerFile(path, list(table), document.lines.text), table, "")


def _with_references(file: ServerFile, container: object, pointer: str) -> ServerFile:
    """Return a file of servers with references instead of secrets; everything else stays as it is written."""
    references, text, remarks = SecretReplacer(), file.text, []
    for server in read_servers(container, pointer, lenient=True).servers:
        name = str(server.settings["name"])
        for secret in references.find(name, server.settings):
            key, *rest = secret.part
            place = server.place_of(pointer_to(key, rest[0]) if rest else key)
            try:
                text = set_value(text, place, secret.reference, comments=True)
            except ValueError:  # a command that is the name of a program, and no list
                text = set_value(text, server.place_of(key), secret.reference, comments=True)
            remarks.append(f"{secret.reference} stands for {secret.what} of server {name[:60]!r}")
    return file._replace(text=text, remarks=tuple(remarks))


def _names(container: object) -> list[str]:
    if isinstance(container, dict):
        return [name for name in container if not is_comment(name)]
    entries = container if isinstance(container, list) else []
    return [str(entry.get("name")) for entry in entries if isinstance(entry, dict)]


def _check(nexus: Nexus, servers: ServerFile) -> None:
    """Raise if the servers could not be loaded again; every command would fail then."""
    with TemporaryDirectory() as scratch:
        write_text_atomically(Path(scratch) / SERVERS, servers.text)
        try:
            layer = Layer("global", Path(scratch), "global")
            normalise_servers(nexus.host.layer_config(layer, nexus.request())[0], [])
        except NexusError as error:
            raise ConfigError(error.what, where=str(servers.path), hint=error.hint) from None
