"""`nexus init`: a new .nexus3 directory, for a project or for the user."""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager
from pathlib import Path
from shlex import quote
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from nexus_core.cli.context import get_project_directory
from nexus_core.cli.options import DryRunOption, JsonOption
from nexus_core.config.edit import set_value
from nexus_core.config.load import read_json
from nexus_core.config.merge import is_comment
from nexus_core.config.pointers import pointer_to
from nexus_core.config.secrets import SecretReplacer
from nexus_core.config.servers import normalize_servers, read_servers
from nexus_core.errors import ConfigError, FileError, NexusError, UsageError
from nexus_core.files.places import user_home
from nexus_core.files.read import read_text
from nexus_core.files.write import write_text_atomically
from nexus_core.layers.init import execute_init_plan, plan_init
from nexus_core.text.safety import one_line
from nexus_core.types.layers import Layer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from nexus_core.cli.context import CliContext
    from nexus_core.layers.init import InitPlan, PlannedFile
    from nexus_core.nexus import Nexus
    from nexus_core.types.settings import InitScope

app = typer.Typer()

SERVERS_FILE = "mcp.json"
ANY_SERVER_FILE = Path()
"""In the place of a file: whatever is found."""
USER_SERVER_FILES = {".claude.json": "Claude Code", ".cursor/mcp.json": "Cursor"}
"""In the home directory: files with servers for all projects, whose form is that of mcp.json; the first is copied."""
IMPORTABLE_FILES = {".codex/config.toml": "mcp_servers", ".gemini/settings.json": "mcpServers"}
"""Files that `nexus mcp import` copies, and the word in them that holds servers."""
_SERVER_KEYS = ("mcpServers", "servers")

GlobalOption = Annotated[bool, typer.Option("--global", help="Your own directory instead of the project's.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Overwrite; the old files are kept as <name>.bak.")]
CopyMcpOption = Annotated[
    Path | None, typer.Option(metavar="PATH", help="With --global: copy the MCP servers from a file.")
]
NoCopyMcpOption = Annotated[
    bool, typer.Option("--no-copy-mcp", help="With --global: copy no MCP servers of other tools.")
]


@app.command(epilog="\b\nExamples:\n  nexus init\n  nexus init --global --copy-mcp ~/.claude.json")
def init(
    ctx: typer.Context,
    *,
    own: GlobalOption = False,
    force: ForceOption = False,
    dry_run: DryRunOption = False,
    copy_mcp: CopyMcpOption = None,
    no_copy_mcp: NoCopyMcpOption = False,
    json: JsonOption = False,
) -> None:
    """Create a .nexus3 directory.

    It has templates to fill in; with --global, your own directory gets the defaults. With --global, the MCP servers
    that Claude Code or Cursor has for all of your projects are copied too.
    """
    if copy_mcp is not None and not own:
        raise UsageError("--copy-mcp copies to your own directory", hint="say --global too")
    if copy_mcp is not None and no_copy_mcp:
        raise UsageError("--copy-mcp and --no-copy-mcp contradict each other", hint="leave one of them out")
    scope: InitScope = "global" if own else "local"
    copied = None if no_copy_mcp else copy_mcp or ANY_SERVER_FILE
    _initialize_directory(ctx.obj, scope, force=force, dry_run=dry_run, copied=copied, json=json)


def init_user_directory(cli: CliContext, *, force: bool) -> None:
    """Set up the user's own directory, as `nexus init --global` does."""
    _initialize_directory(cli, "global", force=force)


def _initialize_directory(
    cli: CliContext,
    scope: InitScope,
    *,
    force: bool,
    dry_run: bool = False,
    copied: Path | None = ANY_SERVER_FILE,
    json: bool = False,
) -> None:
    with _open_nexus(cli, scope) as nexus:
        directory = nexus.home if scope == "global" else get_project_directory(nexus)
        servers = None
        # First, so that a wrong name is not hidden by existing files.
        if copied is not ANY_SERVER_FILE and copied is not None:
            servers = _read_named_file(cli.cwd / copied)
            _check_servers(nexus, servers)
        plan = plan_init(nexus.host, directory, scope, force=force)
        is_searched = scope == "global" and copied is ANY_SERVER_FILE
        if is_searched and not os.path.lexists(directory / SERVERS_FILE):
            servers = _find_user_servers(cli, nexus) or _offer_project_servers(cli, dry_run=dry_run)
        if servers is not None:
            plan = plan_init(nexus.host, directory, scope, force=force, contents={SERVERS_FILE: servers.text})
        if not dry_run:
            execute_init_plan(plan)
    _print_plan(cli, plan, dry_run=dry_run, json=json)
    if servers is not None:
        _print_copied(cli, servers, dry_run=dry_run)


@contextmanager
def _open_nexus(cli: CliContext, scope: InitScope) -> Iterator[Nexus]:
    """Yield a Nexus that does not stumble over settings that may be about to be overwritten."""
    with ExitStack() as opened:
        try:
            nexus = opened.enter_context(cli.nexus(layers=False))
        except NexusError:
            if scope != "global":
                raise
            # Which plugins the user has disabled cannot be known, so that none is loaded that could be.
            nexus = opened.enter_context(cli.nexus(layers=False, installed=False))
            cli.console.warning("your config.json cannot be used, so only plugins that ship with Nexus were asked")
        yield nexus


def _print_plan(cli: CliContext, plan: InitPlan, *, dry_run: bool, json: bool) -> None:
    if json:
        cli.console.json({"schema": 1, "scope": plan.scope, "files": list(map(_planned_file_to_json, plan.files))})
    for file in plan.files:
        if file in plan.written and not json:
            cli.console.text(one_line(str(file.path)))
        if file.action == "kept":
            cli.console.message(f"{file.path.name} is kept as it is; --force overwrites it.")
        if file.action == "unchanged":
            cli.console.message(f"{file.path.name} is unchanged: it already says this.")
        if file.backup is not None:
            kept = "would be kept" if dry_run else "is kept"
            cli.console.message(f"The old {file.path.name} {kept} as {file.backup.name}.")
    if dry_run:
        cli.console.message("Nothing was written.")
    elif plan.written:
        cli.console.message("Next: fill in these files; `nexus show` prints the prompt that they make.")


def _planned_file_to_json(file: PlannedFile) -> dict[str, object]:
    return {"path": str(file.path), "action": file.action, "backup": file.backup and str(file.backup)}


# ---- MCP servers that are there already -------------------------------------------------------------------


class McpServerFile(NamedTuple):
    """A file with MCP servers.

    Attributes:
        path: The file.
        names: The names of its servers.
        text: An mcp.json with the same servers, with references in the place of secrets.
        remarks: The references, and the secrets that they replace.
    """

    path: Path
    names: list[str]
    text: str
    remarks: tuple[str, ...] = ()


def _read_named_file(path: Path) -> McpServerFile:
    if found := _read_server_file(path):
        return found
    hint = "name a file with `mcpServers` or `servers`"
    if not path.exists():
        raise UsageError("no such file", where=str(path), hint=hint)
    raise FileError("holds no MCP servers", where=str(path), hint=hint)


def _find_user_servers(cli: CliContext, nexus: Nexus) -> McpServerFile | None:
    """Return the servers that another tool has for all of the user's projects."""
    home = user_home()
    copied = None
    for found in _iterate_server_files(cli, [home / name for name in USER_SERVER_FILES]):
        try:
            _check_servers(nexus, found)
        except NexusError as error:
            cli.console.message(f"{one_line(str(found.path))} was skipped: {one_line(error.what)}")
            _suggest_import(cli, found.path, " --lenient")
            continue
        if copied is not None:
            cli.console.message(f"There are MCP servers in {one_line(str(found.path))} too.")
            _suggest_import(cli, found.path)
        copied = copied or found
    for path in (home / name for name, word in IMPORTABLE_FILES.items() if _contains_word(home / name, word)):
        cli.console.message(f"There may be MCP servers in {one_line(str(path))}.")
        _suggest_import(cli, path)
    return copied


def _suggest_import(cli: CliContext, path: Path, option: str = "") -> None:
    cli.console.message(f"  To copy them: nexus mcp import {quote(str(path))} --global{option}")


def _contains_word(path: Path, word: str) -> bool:
    try:
        return word in (read_text(path) or "")
    except NexusError:
        return False


def _print_copied(cli: CliContext, servers: McpServerFile, *, dry_run: bool) -> None:
    names = ", ".join(one_line(name[:60]) for name in servers.names)
    verb = "would be copied" if dry_run else "were copied"
    cli.console.message(f"MCP servers {verb} from {one_line(str(servers.path))}: {names}")
    for remark in servers.remarks:
        cli.console.message(f"  {one_line(remark)}.")
    if servers.remarks:
        cli.console.message("  Set these variables; the values stay where they are.")
    if not dry_run:
        cli.console.message(
            "  As your own they need no approval in any project; `nexus mcp remove --global` removes one."
        )


def _offer_project_servers(cli: CliContext, *, dry_run: bool) -> McpServerFile | None:
    """Return the first server file of the project that the user wants to copy, or None."""
    for found in _iterate_server_files(cli, [cli.cwd / ".nexus3" / SERVERS_FILE, cli.cwd / ".mcp.json"]):
        names = ", ".join(one_line(name[:60]) for name in found.names)
        cli.console.message(f"There are MCP servers in {one_line(str(found.path))}: {names}")
        if not dry_run and cli.can_ask:
            if cli.agrees("Copy them? As your own they need no approval in any project."):
                return found
        else:
            force = "" if dry_run else " --force"  # by then the file will be there
            cli.console.message(f"  To copy them: nexus init --global{force} --copy-mcp {quote(str(found.path))}")
    return None


def _iterate_server_files(cli: CliContext, paths: Iterable[Path]) -> Iterator[McpServerFile]:
    for path in paths:
        try:
            found = _read_server_file(path)
        except NexusError as error:
            cli.console.message(f"{one_line(str(path))} was skipped: {error.what}")
            continue
        if found is not None:
            yield found


def _read_server_file(path: Path) -> McpServerFile | None:
    """Return the servers in a file, or None if it does not exist or has no servers."""
    document = read_json(path, comments=True, empty={}, quote=False)  # any line may hold a password
    if document is None or not isinstance(document.value, dict):
        return None
    table = {key: value for key, value in document.value.items() if not is_comment(key)}
    for key in _SERVER_KEYS:
        if not isinstance(table.get(key, {}), dict | list):
            raise FileError(f"`{key}` is not an object of servers", where=str(path))
        if names := _list_server_names(table.get(key)):
            whole, span = document.lines.text, document.span(f"/{key}")
            if not table.keys() <= set(_SERVER_KEYS) and span is not None:
                whole = f'{{\n  "{key}": {whole[span.start : span.end]}\n}}\n'
            return _replace_secrets(McpServerFile(path, names, whole), table[key], f"/{key}")
    is_bare = all(isinstance(entry, dict) and entry.keys() & {"command", "url"} for entry in table.values())
    if not table or not is_bare:
        return None
    return _replace_secrets(McpServerFile(path, list(table), document.lines.text), table, "")


def _replace_secrets(file: McpServerFile, container: object, pointer: str) -> McpServerFile:
    """Return a server file with references instead of secrets, otherwise unchanged."""
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


def _list_server_names(container: object) -> list[str]:
    if isinstance(container, dict):
        return [name for name in container if not is_comment(name)]
    entries = container if isinstance(container, list) else []
    return [str(entry.get("name")) for entry in entries if isinstance(entry, dict)]


def _check_servers(nexus: Nexus, servers: McpServerFile) -> None:
    """Raise if the servers could not be loaded again, because every command would fail."""
    with TemporaryDirectory() as scratch:
        write_text_atomically(Path(scratch) / SERVERS_FILE, servers.text)
        try:
            layer = Layer("global", Path(scratch), "global")
            normalize_servers(nexus.host.layer_config(layer, nexus.request())[0], [])
        except NexusError as error:
            raise ConfigError(error.what, where=str(servers.path), hint=error.hint) from None
